// SPDX-License-Identifier: MIT
#include "capture/early_holes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <span>

#include "capture/context_records.h"
#include "capture/holes.h"
#include "formats/support/bytes.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr unsigned kMinorBits = 20;  // of raw_fd::device

dev_t device_of(const raw_fd& file) {
    return makedev(file.device >> kMinorBits, file.device & ((1U << kMinorBits) - 1));
}

/// The file at a path, if it is the one that was opened. Does not change when it was read last.
UniqueFd opened(const std::string& path, const raw_fd& file, struct stat& status) {
    constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    // Looked at first: opening something else, a FIFO or a device, may have effects.
    if (::stat(path.c_str(), &status) != 0 || status.st_ino != file.inode ||
        !is_device(status.st_dev, device_of(file)) || !S_ISREG(status.st_mode)) {
        return {};
    }
    UniqueFd fd(::open(path.c_str(), kFlags | O_NOATIME));
    if (!fd.valid()) {
        fd = UniqueFd(::open(path.c_str(), kFlags));
    }
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_ino != file.inode ||
        !is_device(status.st_dev, device_of(file))) {
        return {};
    }
    return fd;
}

/// By the task's own descriptor; where it is closed already, by the path, also once the task has ended.
UniqueFd find(const SparseOpen& from, struct stat& status) {
    const std::string task = "/proc/" + std::to_string(from.tid);
    std::vector<std::string> places;
    if (from.file.fd >= 0) {
        places.push_back(task + "/fd/" + std::to_string(from.file.fd));
    }
    if (from.path.starts_with('/')) {
        places.push_back(task + "/root" + from.path);
        places.push_back(from.path);
    } else if (!from.path.empty()) {
        places.push_back(task + (from.directory == AT_FDCWD ? "/cwd/" : "/fd/" + std::to_string(from.directory) + "/") +
                         from.path);
        places.push_back(from.path);  // a command begins where its recorder is
    }
    for (const std::string& place : places) {
        if (UniqueFd fd = opened(place, from.file, status); fd.valid()) {
            return fd;
        }
    }
    return {};
}

void put_holes(const SparseOpen& from, uint64_t size, const RangeSet& holes, RawWriter& to) {
    constexpr size_t kOfARecord = 2'000;  // holes; sizes have 16 bits
    std::vector<raw_s64> ends;
    for (const auto& [begin, end] : holes.ranges()) {
        ends.push_back(static_cast<raw_s64>(begin));
        ends.push_back(static_cast<raw_s64>(end));
    }
    raw_holes record{};
    record.head.type = RAW_HOLES;
    record.head.time = monotonic_ns();
    record.inode = from.file.inode;
    record.size = size;
    record.device = from.file.device;
    size_t at = 0;
    do {  // one record also where it has none any more
        const size_t count = std::min(ends.size() - at, kOfARecord * 2);
        raw_part part{};
        part.type = RAW_PART_LIST;
        part.size = static_cast<raw_u16>(sizeof part + count * sizeof(raw_s64));
        part.length = static_cast<raw_u16>(count);
        record.head.size = static_cast<raw_u16>(sizeof record + part.size);
        Bytes bytes;
        put_fixed(bytes, record);
        put_fixed(bytes, part);
        const auto* const first = reinterpret_cast<const uint8_t*>(ends.data() + at);
        bytes.insert(bytes.end(), first, first + count * sizeof(raw_s64));
        to.append(bytes);
        at += count;
    } while (at < ends.size());
}

}  // namespace

void note_sparse(const raw_head& record, std::vector<SparseOpen>& to) {
    if (record.type != RAW_CALL && record.type != RAW_URING_COMPLETE && record.type != RAW_SEED_FD) {
        return;
    }
    const uint16_t wanted = record.type == RAW_SEED_FD ? 0 : RAW_WHICH_RESULT;
    SparseOpen found;
    bool is_sparse = false;
    const raw_part* path = nullptr;
    for (const raw_part& part : RawParts(record)) {
        if (part.type == RAW_PART_FD && part.which == wanted) {
            found.file = *static_cast<const raw_fd*>(raw_part_data(part));
            is_sparse = (found.file.info & (RAW_FD_SPARSE | RAW_FD_CREATED)) == RAW_FD_SPARSE;
        } else if (part.type == RAW_PART_PATH || (record.type == RAW_SEED_FD && part.type == RAW_PART_STRING)) {
            path = &part;
        }
    }
    if (!is_sparse) {
        return;
    }
    found.pid = static_cast<pid_t>(record.pid);
    found.tid = static_cast<pid_t>(record.tid);
    found.directory = AT_FDCWD;
    if (path != nullptr) {
        found.path = raw_part_text(*path);
        if (record.type == RAW_CALL && path->which == 1) {  // the descriptor is the argument before it
            found.directory = static_cast<int>(reinterpret_cast<const raw_call&>(record).args[0]);
        }
    }
    to.push_back(std::move(found));
}

void EarlyHoles::look(std::vector<SparseOpen>& files, RawWriter& to) {
    const auto begin = std::chrono::steady_clock::now();
    for (const SparseOpen& file : files) {
        const std::pair<uint64_t, uint64_t> key{file.file.device, file.file.inode};
        struct stat status {};
        if (looked_.contains(key) || spent_ + (std::chrono::steady_clock::now() - begin) >= kMost) {
            continue;
        }
        if (const UniqueFd fd = find(file, status); fd.valid()) {
            uint64_t compressed = 0;
            const auto size = static_cast<uint64_t>(status.st_size);
            put_holes(file, size, holes_of(fd.get(), size, compressed), to);
            looked_.insert(key);
        }
    }
    if (!files.empty()) {
        spent_ += std::chrono::steady_clock::now() - begin;
        files.clear();
    }
}

}  // namespace reprise
