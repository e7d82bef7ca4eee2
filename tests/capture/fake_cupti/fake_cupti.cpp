// SPDX-License-Identifier: MIT
// A CUPTI that tells of one made-up step when it is flushed: a kernel launched 40 ms ago that ran for 30 ms, and a call
// that waited for it; a call that does not matter; one dropped record. FAKE_CUPTI=taken: has another client.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "cupti.h"

namespace {
CUpti_TimestampCallbackFunc now;
CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
unsigned enabled;
size_t next;

template <class Activity>
void put(std::vector<uint8_t>& into, const Activity& activity) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&activity);
    into.insert(into.end(), bytes, bytes + sizeof activity);
}
size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
        case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization);
        default: return sizeof(CUpti_ActivityMemcpy);
    }
}
}  // namespace

extern "C" {
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
    now = callback;
    return enabled == 0 ? CUPTI_SUCCESS : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c) {
    if (const char* how = std::getenv("FAKE_CUPTI"); how != nullptr && std::strcmp(how, "taken") == 0) {
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
    }
    request = r;
    complete = c;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
    ++enabled;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t cbid, const char** name) {
    *name = cbid == 1 ? "cudaLaunchKernel_v7000" : cbid == 2 ? "cudaStreamSynchronize_v3020" : "cudaGetDevice_v3020";
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    *dropped = 1;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
    if (next >= valid) {
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *record = reinterpret_cast<CUpti_Activity*>(buffer + next);
    next += size_of((*record)->kind);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
    if (enabled < 5 || now == nullptr) {
        return CUPTI_SUCCESS;
    }
    constexpr uint64_t kMs = 1'000'000;
    const uint64_t at = now() - 40 * kMs;
    const auto pid = static_cast<uint32_t>(getpid());
    std::vector<uint8_t> all;
    put(all, CUpti_ActivityAPI{CUPTI_ACTIVITY_KIND_RUNTIME, 3, at, at + 10, pid, pid, 8});
    put(all, CUpti_ActivityAPI{CUPTI_ACTIVITY_KIND_RUNTIME, 1, at, at + 1000, pid, pid, 9});
    put(all,
        CUpti_ActivityKernel9{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, at + 2000, at + 30 * kMs, 0, 1, 7, 9, "gemm"});
    put(all, CUpti_ActivitySynchronization{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                           CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, at + 5000,
                                           at + 30 * kMs, 10, 1, 7});
    put(all, CUpti_ActivityAPI{CUPTI_ACTIVITY_KIND_RUNTIME, 2, at + 5000, at + 30 * kMs + 500, pid, pid, 10});
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0;
    request(&buffer, &size, &most);
    if (size < all.size()) {
        return CUPTI_SUCCESS;
    }
    std::memcpy(buffer, all.data(), all.size());
    next = 0;
    complete(nullptr, 0, buffer, size, all.size());
    return CUPTI_SUCCESS;
}
}
