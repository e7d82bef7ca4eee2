// SPDX-License-Identifier: MIT
#include "capture/holes.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr auto kMost = std::chrono::seconds(2);  // each look costs microseconds, or milliseconds over a network
constexpr size_t kMostHoles = 10'000;            // of a file
constexpr uint64_t kBlock = 512;                 // of st_blocks

/// Collects what lies between the stretches of data of a file, in whole pages.
class Gaps {
public:
    explicit Gaps(uint64_t size) : size_(size) {}

    /// Stretches of data in ascending order.
    void data(uint64_t from, uint64_t to) {
        gap(end_, from);
        end_ = std::max(end_, to);
    }
    /// None where there are too many.
    std::optional<RangeSet> finish() {
        gap(end_, size_);
        return count_ > kMostHoles ? std::nullopt : std::optional(std::move(holes_));
    }
    bool too_many() const { return count_ > kMostHoles; }

private:
    void gap(uint64_t from, uint64_t to) {
        from = (from + RangeSet::kPage - 1) / RangeSet::kPage * RangeSet::kPage;
        to = to >= size_ ? size_ : to / RangeSet::kPage * RangeSet::kPage;  // the last page may end early
        if (from < to) {
            ++count_;
            holes_.add(from, to);
        }
    }

    uint64_t size_, end_ = 0;
    RangeSet holes_;
    size_t count_ = 0;
};

/// By the extents of the file: what is preallocated and not written counts as a hole. Adds what is compressed, bytes of
/// the file. None where the file system does not say.
std::optional<RangeSet> holes_by_extents(int fd, uint64_t size, uint64_t& compressed) {
    constexpr unsigned kExtents = 256;
    std::vector<uint64_t> memory((sizeof(fiemap) + kExtents * sizeof(fiemap_extent)) / sizeof(uint64_t));
    auto* const map = reinterpret_cast<fiemap*>(memory.data());
    Gaps gaps(size);
    for (uint64_t at = 0; at < size && !gaps.too_many();) {
        std::fill(memory.begin(), memory.end(), 0);
        map->fm_start = at;
        map->fm_length = size - at;
        map->fm_extent_count = kExtents;
        if (::ioctl(fd, FS_IOC_FIEMAP, map) != 0) {
            return std::nullopt;
        }
        if (map->fm_mapped_extents == 0) {
            break;
        }
        for (unsigned i = 0; i < map->fm_mapped_extents; ++i) {
            const fiemap_extent& extent = map->fm_extents[i];
            at = extent.fe_logical + extent.fe_length;
            if ((extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) == 0) {
                gaps.data(extent.fe_logical, at);
            }
            if ((extent.fe_flags & FIEMAP_EXTENT_ENCODED) != 0) {
                compressed += extent.fe_length;
            }
            if ((extent.fe_flags & FIEMAP_EXTENT_LAST) != 0) {
                return gaps.finish();
            }
        }
    }
    return gaps.finish();
}

/// By SEEK_HOLE. Of what is preallocated, it takes what was read since for data.
std::optional<RangeSet> holes_by_seeking(int fd, uint64_t size) {
    Gaps gaps(size);
    for (uint64_t at = 0; at < size && !gaps.too_many();) {
        const off_t from = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
        if (from < 0) {
            return errno == ENXIO ? gaps.finish() : std::nullopt;  // no data follows
        }
        const off_t to = ::lseek(fd, from, SEEK_HOLE);
        if (to <= from) {
            return std::nullopt;
        }
        gaps.data(static_cast<uint64_t>(from), static_cast<uint64_t>(to));
        at = static_cast<uint64_t>(to);
    }
    return gaps.finish();
}

struct Found {
    Holes holes;
    int64_t files = 0;   // with fewer blocks than their data needs
    uint64_t bytes = 0;  // compressed, or without blocks that the file system does not tell
};

void look(const Tables& tables, FileId file, Found& found) {
    const FileRow& row = tables.files[file];
    const std::string path(tables.path(file));
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if ((fd.valid() ? ::fstat(fd.get(), &status) : ::lstat(path.c_str(), &status)) != 0 ||
        !is_device(status.st_dev, row.device) || status.st_ino != row.inode ||
        static_cast<uint64_t>(status.st_size) != row.size) {
        return;
    }
    uint64_t compressed = 0;  // btrfs counts its blocks as if nothing were
    RangeSet holes = fd.valid() ? holes_of(fd.get(), row.size, compressed) : RangeSet();
    const uint64_t data = row.size - std::min(row.size, holes.bytes());
    const uint64_t held = static_cast<uint64_t>(status.st_blocks) * kBlock;
    constexpr uint64_t kPart = 10;  // of the data; less of it is no loss
    if (const uint64_t less = std::max(data - std::min(data, held), std::min(data, compressed));
        less >= std::max(kLeastHoles, data / kPart)) {
        ++found.files;
        found.bytes += less;
    }
    if (holes.bytes() >= kLeastHoles) {
        found.holes.emplace(file, std::move(holes));
    }
}

}  // namespace

RangeSet holes_of(int fd, uint64_t size, uint64_t& compressed) {
    std::optional<RangeSet> holes = holes_by_extents(fd, size, compressed);
    if (!holes) {
        holes = holes_by_seeking(fd, size);
    }
    return holes ? *std::move(holes) : RangeSet();
}

bool is_device(dev_t seen, uint64_t recorded) {
    return seen == recorded || (major(seen) == 0 && major(static_cast<dev_t>(recorded)) == 0);
}

void note_holes(LogWriter& writer) {
    const Tables& tables = writer.tables();
    std::vector<FileId> files(tables.files.size());
    std::iota(files.begin(), files.end(), FileId{0});
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&](FileId file) { return file == 0 || !keeps_holes(tables.files[file]); }),
                files.end());
    std::stable_sort(files.begin(), files.end(),
                     [&](FileId a, FileId b) { return tables.files[a].size > tables.files[b].size; });
    Found found;
    const auto end = std::chrono::steady_clock::now() + kMost;
    for (const FileId file : files) {
        if (std::chrono::steady_clock::now() >= end) {
            break;
        }
        look(tables, file, found);
    }
    if (!found.holes.empty()) {
        writer.keep(encode_holes(found.holes));
    }
    if (found.files != 0) {
        write_fact(writer.header(), fact::sparse_files, found.files);
        write_fact(writer.header(), fact::hole_bytes, static_cast<int64_t>(found.bytes));
    }
}

}  // namespace reprise
