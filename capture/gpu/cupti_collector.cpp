// SPDX-License-Identifier: MIT
// The collector that CUDA loads into a job (CUDA_INJECTION64_PATH): accelerator work, the calls that submitted it or
// waited for it, on the recorder's clock, to one file per process in $REPRISE_GPU_DIR. Built where CUPTI's headers are.
// Nothing here may disturb the job: what fails is left out.
#include <cupti.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>

#include "formats/import/profile/gpu_buffer.h"

namespace {

#if CUPTI_API_VERSION >= 18
using Kernel = CUpti_ActivityKernel9;
#else
using Kernel = CUpti_ActivityKernel4;
#endif

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kAlign = 8;

int64_t now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

uint64_t CUPTIAPI timestamp() { return static_cast<uint64_t>(now(CLOCK_MONOTONIC)); }

class File {
public:
    bool open(const char* folder) {
        const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + "." +
                                 std::to_string(now(CLOCK_MONOTONIC)) + GPU_BUFFER_SUFFIX;
        fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644);
        gpu_file_head head{};
        std::memcpy(head.magic, GPU_BUFFER_MAGIC, sizeof head.magic);
        head.bytes = sizeof head;
        head.pid = static_cast<uint32_t>(getpid());
        head.monotonic = now(CLOCK_MONOTONIC);
        head.realtime = now(CLOCK_REALTIME);
        pending_.assign(reinterpret_cast<const char*>(&head), sizeof head);
        return fd_ >= 0 && flush();
    }
    void add(gpu_record record, const char* name) {
        const size_t length = name == nullptr ? 0 : strnlen(name, 200);
        record.name_bytes = static_cast<uint32_t>(length);
        record.bytes = static_cast<uint32_t>((sizeof record + length + 7) / 8 * 8);
        pending_.append(reinterpret_cast<const char*>(&record), sizeof record);
        if (length != 0) {
            pending_.append(name, length);
        }
        pending_.append(record.bytes - sizeof record - length, '\0');
    }
    bool flush() {
        size_t done = 0;
        while (done < pending_.size()) {
            const ssize_t n = ::write(fd_, pending_.data() + done, pending_.size() - done);
            if (n <= 0) {
                break;
            }
            done += static_cast<size_t>(n);
        }
        const bool whole = done == pending_.size();
        pending_.clear();
        return whole;
    }

private:
    int fd_ = -1;
    std::string pending_;
};

std::mutex lock;
File file;

gpu_record record_of(gpu_record_type type, uint64_t begin, uint64_t end, uint32_t correlation) {
    gpu_record out{};
    out.type = type;
    out.begin = static_cast<int64_t>(begin);
    out.end = static_cast<int64_t>(end);
    out.device = out.stream = GPU_BUFFER_NONE;
    out.correlation = correlation;
    return out;
}

template <class Activity>
void work(gpu_record_type type, const Activity& activity, const char* name) {
    gpu_record out = record_of(type, activity.start, activity.end, activity.correlationId);
    out.device = activity.deviceId;
    out.stream = activity.streamId;
    file.add(out, name);
}

// Of the host's many calls those that submit or wait.
bool matters(const char* name) {
    for (const char* part : {"Launch", "Memcpy", "Memset", "Synchronize"}) {
        if (std::strstr(name, part) != nullptr) {
            return true;
        }
    }
    return false;
}

void call(const CUpti_ActivityAPI& activity) {
    const char* name = nullptr;
    const CUpti_CallbackDomain domain =
        activity.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
    if (cuptiGetCallbackName(domain, activity.cbid, &name) != CUPTI_SUCCESS || name == nullptr || !matters(name)) {
        return;
    }
    gpu_record out = record_of(GPU_RECORD_CALL, activity.start, activity.end, activity.correlationId);
    out.tid = activity.threadId;
    file.add(out, name);
}

void one(const CUpti_Activity* activity) {
    switch (activity->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const auto& kernel = *reinterpret_cast<const Kernel*>(activity);
            return work(GPU_RECORD_KERNEL, kernel, kernel.name);
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return work(GPU_RECORD_COPY, *reinterpret_cast<const CUpti_ActivityMemcpy*>(activity), nullptr);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return work(GPU_RECORD_FILL, *reinterpret_cast<const CUpti_ActivityMemset*>(activity), nullptr);
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: return call(*reinterpret_cast<const CUpti_ActivityAPI*>(activity));
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            const auto& sync = *reinterpret_cast<const CUpti_ActivitySynchronization*>(activity);
            gpu_record out = record_of(GPU_RECORD_SYNC, sync.start, sync.end, sync.correlationId);
            if (sync.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE) {
                out.stream = sync.streamId;
            }
            return file.add(out, nullptr);
        }
        default: return;
    }
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* most) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlign, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *most = 0;
}

void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
    {
        const std::lock_guard guard(lock);
        CUpti_Activity* activity = nullptr;
        while (valid != 0 && cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS) {
            one(activity);
        }
        size_t dropped = 0;
        if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped != 0) {
            file.add(record_of(GPU_RECORD_LOST, 0, 0, static_cast<uint32_t>(dropped)), nullptr);
        }
        file.flush();
    }
    std::free(buffer);
}

pid_t owner;

// A forked child that ends the usual way has nothing of its own to tell.
void at_end() {
    if (getpid() == owner) {
        cuptiActivityFlushAll(1);
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    const char* const folder = std::getenv("REPRISE_GPU_DIR");
    if (folder == nullptr || !file.open(folder)) {
        return 1;
    }
    owner = getpid();
    // Before anything is enabled, so that all times are the recorder's.
    cuptiActivityRegisterTimestampCallback(timestamp);
    if (cuptiActivityRegisterCallbacks(requested, completed) != CUPTI_SUCCESS) {
        std::fputs("reprise: CUPTI has another client (a profiler) in this process; its work is not recorded\n",
                   stderr);
        return 1;
    }
    for (const CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
          CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}) {
        cuptiActivityEnable(kind);
    }
    std::atexit(at_end);
    return 1;
}
