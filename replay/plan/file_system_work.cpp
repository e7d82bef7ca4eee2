// SPDX-License-Identifier: MIT
#include "replay/plan/file_system_work.h"

#include <fcntl.h>

#include <algorithm>

#include "formats/support/quantity.h"
#include "formats/support/sums.h"

namespace reprise {
namespace {

constexpr uint64_t kLittleWork = 1 << 20;  // bytes

/// What overlayfs copies a lower file for, the first time.
bool changes_file(OpKind kind, int64_t flags) {
    switch (kind) {
        case OpKind::open: return (flags & O_ACCMODE) != O_RDONLY;
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::setxattr:
        case OpKind::removexattr:
        case OpKind::truncate:
        case OpKind::rename:
        case OpKind::link: return true;
        default: return false;
    }
}

/// Bytes of the files whose file system is one of some, and of all.
template <class Is>
std::pair<uint64_t, uint64_t> bytes_on(const std::vector<FileSystemUse>& used, const Is& is) {
    uint64_t there = 0, all = 0;
    for (const FileSystemUse& use : used) {
        sum(all, use.bytes);
        sum(there, is(use) ? use.bytes : 0);
    }
    return {there, all};
}

bool is_much(uint64_t bytes, uint64_t all, double share) {
    return bytes > kLittleWork && static_cast<double>(bytes) > share * static_cast<double>(all);
}

}  // namespace

FileSystemWorkScan::FileSystemWorkScan(const LogReader& log)
    : tables_(log.tables()), types_(log.header()), changed_(tables_.files.size()) {
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        found_.serves_files = found_.serves_files || tables_.path(file) == "/dev/fuse";
    }
}

void FileSystemWorkScan::see(const OpBlock& block, size_t i) {
    // A copy within memory moves less than 10 GB/s; a call that copies nothing takes a few us.
    constexpr int64_t kNoCopy = 100'000;
    constexpr uint64_t kBytesPerNs = 10;
    if (!changes_file(static_cast<OpKind>(block.kind[i]), block.flags[i]) || block.result[i] < 0) {
        return;
    }
    const FileId file = tables_.file_of(block.row(i));
    if (file == 0 || file >= changed_.size() || changed_[file]) {
        return;
    }
    changed_[file] = true;
    const FileRow& row = tables_.files[file];
    const auto copy_ns = static_cast<int64_t>(std::min<uint64_t>(row.size / kBytesPerNs, INT64_MAX / 2));
    if (row.type == FileType::regular && row.origin == Origin::existed && block.duration[i] >= kNoCopy + copy_ns &&
        types_.type(row.device) == "overlay") {
        sum(found_.copied_up_bytes, row.size);
        sum(found_.copied_up_ns, block.duration[i]);
    }
}

std::string copied_up(const FileSystemWork& work, uint64_t kept_bytes, double share) {
    if (!is_much(work.copied_up_bytes, kept_bytes, share)) {
        return {};
    }
    return "overlayfs copied " + format_bytes(work.copied_up_bytes) + " of lower files (" +
           format_duration(work.copied_up_ns) + " when recorded) before the job first changed them: a replay does not";
}

std::string compressed_by_type(const std::vector<FileSystemUse>& used, double share) {
    const auto [packed, all] = bytes_on(used, [](const FileSystemUse& use) { return use.type == "squashfs"; });
    if (!is_much(packed, all, share)) {
        return {};
    }
    return format_bytes(packed) + " of the " + format_bytes(all) +
           " lay on squashfs, which compresses them: they are not compressed here";
}

std::string served_by_job(const FileSystemWork& work, const std::vector<FileSystemUse>& used, double share) {
    constexpr unsigned kMajor = 20;  // bits of a minor number before it
    const auto is_fuse = [](const FileSystemUse& use) {
        // What the job mounts and unmounts, the recorder may not have seen. It has no device of its own.
        const bool unseen = use.type.empty() && use.device != 0 && use.device >> kMajor == 0;
        return unseen || use.type == "fuse" || use.type.starts_with("fuse.");
    };
    const auto [served, all] = bytes_on(used, is_fuse);
    if (!work.serves_files || !is_much(served, all, share)) {
        return {};
    }
    return "the job serves " + format_bytes(served) +
           " of its files itself, by FUSE: the replay reads both those and the files behind them; leave one out "
           "(--not)";
}

}  // namespace reprise
