// SPDX-License-Identifier: MIT
#include "replay/prepare/residency.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr long kCachestatCall = 451;  // newer than Debian 12's headers
struct CachestatRange {
    uint64_t offset, length;
};
struct Cachestat {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

constexpr uint64_t kWindow = uint64_t{1} << 30;  // bytes looked at by one mincore
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr const char* kDropCaches = "/proc/sys/vm/drop_caches";

uint64_t page_size() {
    static const auto size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

bool is_overlay(int fd) {
    struct statfs found {};
    return ::fstatfs(fd, &found) == 0 && found.f_type == OVERLAYFS_SUPER_MAGIC;
}

/// 0 or -errno.
int64_t cachestat(int fd, uint64_t from, uint64_t to, Cachestat& found) {
    CachestatRange range{from, to - from};
    return ::syscall(kCachestatCall, fd, &range, &found, 0) == 0 ? 0 : -errno;
}

/// Whether the kernel tells this user what of the file is in memory.
bool may_ask(int fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) {
        return false;
    }
    const uid_t user = ::geteuid();
    const std::string place = "/proc/self/fd/" + std::to_string(fd);
    return user == 0 || user == st.st_uid || ::faccessat(AT_FDCWD, place.c_str(), W_OK, AT_EACCESS) == 0;
}

}  // namespace

int64_t resident_by_cachestat(int fd, uint64_t from, uint64_t to) {
    if (from >= to) {
        return 0;  // a length of 0 would mean the rest of the file
    }
    Cachestat found{};
    if (const int64_t error = cachestat(fd, from, to, found); error != 0) {
        return error;
    }
    return static_cast<int64_t>(std::min(found.cached * page_size(), to - from));
}

int64_t resident_by_mincore(int fd, uint64_t from, uint64_t to) {
    std::vector<unsigned char> pages;
    uint64_t bytes = 0;
    for (uint64_t at = from / page_size() * page_size(); at < to; at += kWindow) {
        const uint64_t size = std::min(kWindow, to - at);
        void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(at));
        if (memory == MAP_FAILED) {
            return -errno;
        }
        pages.resize((size + page_size() - 1) / page_size());
        const int error = ::mincore(memory, size, pages.data()) == 0 ? 0 : errno;
        ::munmap(memory, size);
        if (error != 0) {
            return -error;
        }
        for (size_t i = 0; i < pages.size(); ++i) {
            const uint64_t begin = std::max(at + i * page_size(), from);
            const uint64_t end = std::min(at + (i + 1) * page_size(), to);
            bytes += (pages[i] & 1) != 0 ? end - begin : 0;
        }
    }
    return static_cast<int64_t>(bytes);
}

std::optional<uint64_t> resident_bytes(int fd, const RangeSet& ranges) {
    if (!may_ask(fd)) {
        return std::nullopt;
    }
    bool by_cachestat = !is_overlay(fd);
    uint64_t sum = 0;
    for (const auto& [from, to] : ranges.ranges()) {
        int64_t bytes = by_cachestat ? resident_by_cachestat(fd, from, to) : -ENOSYS;
        if (bytes < 0) {
            by_cachestat = false;
            bytes = resident_by_mincore(fd, from, to);
        }
        if (bytes < 0) {
            return std::nullopt;
        }
        sum += static_cast<uint64_t>(bytes);
    }
    return sum;
}

bool lies_in_memory(int fd) {
    struct statfs found {};
    return ::fstatfs(fd, &found) == 0 &&
           (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC || found.f_type == HUGETLBFS_MAGIC);
}

int drop_cached(int fd) { return -::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

int fill_cache(int fd, uint64_t from, uint64_t to, const std::atomic<bool>& stop, std::atomic<uint64_t>& done) {
    static thread_local std::vector<char> buffer(kReadBytes);
    // No read-ahead beyond the range.
    if (const int error = ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); error != 0) {
        return -error;
    }
    while (from < to && !stop.load(std::memory_order_relaxed)) {
        const auto wanted = static_cast<size_t>(std::min<uint64_t>(to - from, kReadBytes));
        const ssize_t n = ::pread(fd, buffer.data(), wanted, static_cast<off_t>(from));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : 0;
        }
        from += static_cast<uint64_t>(n);
        done.fetch_add(static_cast<uint64_t>(n), std::memory_order_relaxed);
    }
    return 0;
}

std::string why_cached(int fd) {
    if (lies_in_memory(fd)) {
        return "its file system is memory";
    }
    Cachestat found{};
    struct stat st {};
    if (!is_overlay(fd) && ::fstat(fd, &st) == 0 &&
        cachestat(fd, 0, static_cast<uint64_t>(std::max<off_t>(st.st_size, 1)), found) == 0) {
        if (found.writeback != 0) {
            return "it is being written back";
        }
        if (found.dirty != 0) {
            return "it is being written";
        }
        return "another process maps, locks or reads it";
    }
    return "another process maps, locks, reads or writes it";
}

void drop_machine_caches() {
    const UniqueFd file(::open(kDropCaches, O_WRONLY | O_CLOEXEC));
    const auto refuse = [](int error) {
        return machine_error(
            std::string("cannot empty the caches of the machine: ") + kDropCaches + ": " + std::strerror(error),
            "run as root, or leave out --drop-caches: --cache cold drops the files of the replay only");
    };
    if (!file.valid()) {
        throw refuse(errno);
    }
    ::sync();  // dirty pages stay
    if (::write(file.get(), "3\n", 2) != 2) {
        throw refuse(errno);
    }
}

}  // namespace reprise
