// SPDX-License-Identifier: MIT
#include "replay/mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace reprise {
namespace {

thread_local sigjmp_buf* touching = nullptr;

void on_fault(int signal) {
    if (touching != nullptr) {
        // The jump leaves the handler: what it blocks must not stay blocked.
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGBUS);
        sigaddset(&set, SIGSEGV);
        pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        siglongjmp(*touching, signal);
    }
    // Not a touch: a bug. Die of it as usual.
    std::signal(signal, SIG_DFL);
    raise(signal);
}

size_t page_size() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

}  // namespace

void install_touch_guard() {
    struct sigaction action {};
    action.sa_handler = on_fault;
    sigaction(SIGBUS, &action, nullptr);
    sigaction(SIGSEGV, &action, nullptr);
}

namespace {

[[gnu::noinline]] void touch_all(std::byte* at, size_t bytes, bool write) {
    const size_t page = page_size();
    const std::byte* const end = at + bytes;
    for (std::byte* byte = at; byte < end; byte += page - (reinterpret_cast<uintptr_t>(byte) & (page - 1))) {
        // An atomic access: other threads may touch the same page.
        if (write) {
            __atomic_fetch_or(reinterpret_cast<unsigned char*>(byte), 0, __ATOMIC_RELAXED);
        } else {
            static_cast<void>(__atomic_load_n(reinterpret_cast<volatile unsigned char*>(byte), __ATOMIC_RELAXED));
        }
    }
}

}  // namespace

int touch_pages(std::byte* at, size_t bytes, bool write) {
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        touching = nullptr;
        return -EFAULT;
    }
    touching = &here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    touch_all(at, bytes, write);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    touching = nullptr;
    return 0;
}

MappingTable::Range MappingTable::range(uint32_t map, int64_t offset, int64_t bytes) const {
    const std::lock_guard guard(lock_);
    if (map >= ranges_.size() || offset < 0 || bytes <= 0) {
        return {};
    }
    const Range& whole = ranges_[map];
    if (static_cast<uint64_t>(offset) >= whole.bytes) {
        return {};
    }
    return {whole.at + offset, std::min<size_t>(static_cast<size_t>(bytes), whole.bytes - static_cast<size_t>(offset))};
}

void MappingTable::put(uint32_t map, Range range) {
    const std::lock_guard guard(lock_);
    if (map == 0 || map >= limit_) {
        munmap(range.at, range.bytes);
        return;
    }
    if (map >= ranges_.size()) {
        ranges_.resize(std::min<size_t>(limit_, std::max<size_t>(map + 1, ranges_.size() * 2)));
    }
    if (ranges_[map].at != nullptr) {
        munmap(ranges_[map].at, ranges_[map].bytes);
    }
    ranges_[map] = range;
}

int MappingTable::unmap(uint32_t map, int64_t offset, int64_t bytes) {
    const Range part = range(map, offset, bytes);
    if (part.bytes == 0 || reinterpret_cast<uintptr_t>(part.at) % page_size() != 0) {
        return -EINVAL;
    }
    const std::lock_guard guard(lock_);
    Range& whole = ranges_[map];
    if (part.at == whole.at && part.bytes == whole.bytes) {
        const int result = munmap(whole.at, whole.bytes) == 0 ? 0 : -errno;
        whole = {};
        return result;
    }
    const size_t pages = (part.bytes + page_size() - 1) / page_size() * page_size();
    void* const hole = mmap(part.at, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return hole == MAP_FAILED ? -errno : 0;
}

int MappingTable::remap(uint32_t map, int64_t bytes) {
    const std::lock_guard guard(lock_);
    if (map >= ranges_.size() || ranges_[map].at == nullptr) {
        return -EFAULT;
    }
    if (bytes <= 0) {
        return -EINVAL;
    }
    Range& whole = ranges_[map];
    // The recorded call may have grown in place; here its neighbours are others, so it may always move.
    void* const at = mremap(whole.at, whole.bytes, static_cast<size_t>(bytes), MREMAP_MAYMOVE);
    if (at == MAP_FAILED) {
        return -errno;
    }
    whole = {static_cast<std::byte*>(at), static_cast<size_t>(bytes)};
    return 0;
}

void MappingTable::set_absent(uint32_t map, LeftOut reason) {
    const std::lock_guard guard(lock_);
    absent_[map] = reason;
}

LeftOut MappingTable::absent_reason(uint32_t map) const {
    const std::lock_guard guard(lock_);
    const auto found = absent_.find(map);
    return found == absent_.end() ? LeftOut::not_open : found->second;
}

void MappingTable::clear() {
    const std::lock_guard guard(lock_);
    absent_.clear();
    for (Range& range : ranges_) {
        if (range.at != nullptr) {
            munmap(range.at, range.bytes);
            range = {};
        }
    }
}

}  // namespace reprise
