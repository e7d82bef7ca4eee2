// SPDX-License-Identifier: MIT
#include "cli/file_system_of.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>

#include "calibrate/mounted.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

std::optional<struct statx> status_of(const fs::path& path) {
    struct statx status {};
    constexpr unsigned kMask = STATX_BTIME | STATX_MNT_ID;
    return ::statx(AT_FDCWD, path.c_str(), 0, kMask, &status) == 0 ? std::optional(status) : std::nullopt;
}

/// When the directory that is mounted was made: that of a file system that was made anew is new.
std::string made(const fs::path& folder) {
    std::error_code error;
    fs::path at = fs::canonical(folder, error);
    std::optional<struct statx> status = status_of(at);
    while (!error && status && at.has_relative_path()) {
        const std::optional<struct statx> above = status_of(at.parent_path());
        if (!above || above->stx_mnt_id != status->stx_mnt_id || above->stx_dev_major != status->stx_dev_major ||
            above->stx_dev_minor != status->stx_dev_minor) {
            break;
        }
        at = at.parent_path();
        status = above;
    }
    if (error || !status || (status->stx_mask & STATX_BTIME) == 0) {
        return {};
    }
    const time_t seconds = status->stx_btime.tv_sec;
    std::tm parts{};
    std::array<char, 64> text{};
    return ::gmtime_r(&seconds, &parts) != nullptr &&
                   std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts) != 0
               ? ", made " + std::string(text.data()) + "." + std::to_string(status->stx_btime.tv_nsec)
               : std::string();
}

/// Of the mount; those of the file system are in its options.
std::string mount_words(const fs::path& folder) {
    struct statvfs found {};
    if (::statvfs(folder.c_str(), &found) != 0) {
        return {};
    }
    struct Word {
        unsigned long flag;
        const char* name;
    };
    std::string text;
    for (const Word& word : {Word{ST_NOATIME, ",noatime"}, Word{ST_RELATIME, ",relatime"},
                             Word{ST_NODIRATIME, ",nodiratime"}, Word{ST_SYNCHRONOUS, ",synchronous"}}) {
        text += (found.f_flag & word.flag) != 0 ? word.name : "";
    }
    return text;
}

std::string id_of(const fs::path& folder) {
    struct statfs found {};
    if (::statfs(folder.c_str(), &found) != 0) {
        return {};
    }
    uint64_t id = 0;
    static_assert(sizeof id == sizeof found.f_fsid);
    std::memcpy(&id, &found.f_fsid, sizeof id);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(id));
    return id != 0 ? ", id " + std::string(text.data()) : std::string();
}

}  // namespace

std::string file_system_of(const fs::path& folder) {
    const Mounted mounted = mounted_at(folder);
    const std::string id = mounted.file_system == "xfs" ? "" : id_of(folder);  // that is its device's number
    return mounted.file_system + " (" + mounted.options + mount_words(folder) + id + made(folder) + ")";
}

}  // namespace reprise::cli
