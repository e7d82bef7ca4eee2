// SPDX-License-Identifier: MIT
#include "capture/ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr uint64_t kPublishBytes = 65536;  // how much is read between two updates of our position

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Ring::Ring(int map_fd, uint64_t bytes) : bytes_(bytes) {
    const uint64_t page = page_bytes();
    void* mine = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
    if (mine == MAP_FAILED) {
        throw machine_error(std::string("the ring cannot be mapped: ") + std::strerror(errno), "");
    }
    consumer_ = static_cast<uint64_t*>(mine);
    void* theirs = ::mmap(nullptr, page + 2 * bytes, PROT_READ, MAP_SHARED, map_fd, static_cast<off_t>(page));
    if (theirs == MAP_FAILED) {
        const int error = errno;
        ::munmap(mine, page);
        throw machine_error(std::string("the ring cannot be mapped: ") + std::strerror(error),
                            "choose a smaller one with --ring");
    }
    producer_ = static_cast<const uint64_t*>(theirs);
    data_ = static_cast<const uint8_t*>(theirs) + page;
}

Ring::~Ring() {
    ::munmap(consumer_, page_bytes());
    ::munmap(const_cast<uint64_t*>(producer_), page_bytes() + 2 * bytes_);
}

template <class Take>
uint64_t Ring::consume(const Take& take) {
    uint64_t at = *consumer_;
    const uint64_t begin = at;
    const uint64_t end = __atomic_load_n(producer_, __ATOMIC_ACQUIRE);
    uint64_t published = at;
    while (at < end) {
        const uint8_t* record = data_ + (at & (bytes_ - 1));
        const uint32_t head = __atomic_load_n(reinterpret_cast<const uint32_t*>(record), __ATOMIC_ACQUIRE);
        if (head & BPF_RINGBUF_BUSY_BIT) {
            break;  // being written; the next drain takes it
        }
        const uint32_t size = head & ~BPF_RINGBUF_DISCARD_BIT;
        if (size == head) {
            take(ByteView(record + BPF_RINGBUF_HDR_SZ, size));
        }
        at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        if (at - published >= kPublishBytes) {
            __atomic_store_n(consumer_, at, __ATOMIC_RELEASE);
            published = at;
        }
    }
    __atomic_store_n(consumer_, at, __ATOMIC_RELEASE);
    return at - begin;
}

uint64_t Ring::drain(RawWriter& to, Noticed& noticed) {
    return consume([&](ByteView record) {
        const uint8_t type = record[offsetof(raw_head, type)];
        ++by_type_[type];
        if (type == RAW_EXEC) {
            raw_u32 pid = 0;
            std::memcpy(&pid, record.data() + offsetof(raw_head, pid), sizeof pid);
            noticed.execs.push_back(static_cast<pid_t>(pid));
        }
        // Some records are reserved larger than they became.
        raw_u16 size = 0;
        std::memcpy(&size, record.data(), sizeof size);
        const ByteView told = record.first(std::min<size_t>(size, record.size()));
        note_sparse(*reinterpret_cast<const raw_head*>(told.data()), noticed.sparse);
        to.append(told);
    });
}

uint64_t Ring::records() const { return std::accumulate(by_type_.begin(), by_type_.end(), uint64_t{0}); }

uint64_t Ring::used() const { return __atomic_load_n(producer_, __ATOMIC_ACQUIRE) - *consumer_; }

void Ring::discard(const std::function<void(const raw_head&)>& see) {
    consume([&](ByteView record) { see(*reinterpret_cast<const raw_head*>(record.data())); });
}

}  // namespace reprise
