// SPDX-License-Identifier: MIT
#include "replay/limit/io_limits.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "formats/support/quantity.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

uint64_t lower(uint64_t a, uint64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

/// The lines of a file "MAJOR:MINOR REST", each to `each`. False: it cannot be read; a kernel without such limits, and
/// the root group, have no such file.
template <class Each>
bool for_disks(const fs::path& path, Each each) {
    errno = 0;
    std::ifstream in(path);
    if (!in) {
        return errno == ENOENT;
    }
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        unsigned int first = 0, second = 0;
        char colon = 0;
        if (!(words >> first >> colon >> second) || colon != ':') {
            return false;
        }
        each(makedev(first, second), words);
    }
    return !in.bad();
}

bool add_throttles(const fs::path& group, DiskLimits& limits) {
    return std::all_of(std::begin(kThrottleFiles), std::end(kThrottleFiles), [&](const ThrottleFile& file) {
        return for_disks(group / file.name, [&](dev_t disk, std::istringstream& words) {
            uint64_t limit = 0;
            if (words >> limit && limit != 0) {
                limits[disk].*file.member = limit;
            }
        });
    });
}

bool add_max(const fs::path& group, DiskLimits& limits) {
    return for_disks(group / "io.max", [&](dev_t disk, std::istringstream& words) {
        IoLimits here;
        for (std::string word; words >> word;) {
            const size_t equals = word.find('=');
            for (const MaxWord& known : kMaxWords) {
                if (equals != std::string::npos && word.compare(0, equals, known.name) == 0) {
                    std::istringstream(word.substr(equals + 1)) >> here.*known.member;  // "max" stays 0
                }
            }
        }
        if (here.any()) {
            limits[disk] = stricter(limits[disk], here);
        }
    });
}

/// "loop0"; "7:0" where it is gone.
std::string disk_name(dev_t disk) {
    const std::string number = std::to_string(major(disk)) + ":" + std::to_string(minor(disk));
    std::error_code error;
    const fs::path at = fs::canonical("/sys/dev/block/" + number, error);
    return error ? number : at.filename().string();
}

}  // namespace

IoLimits stricter(const IoLimits& a, const IoLimits& b) {
    return {lower(a.read_bytes, b.read_bytes), lower(a.write_bytes, b.write_bytes), lower(a.reads, b.reads),
            lower(a.writes, b.writes)};
}

std::string limits_text(const IoLimits& limits) {
    std::string text;
    const auto put = [&](const char* what, uint64_t value, bool bytes) {
        if (value != 0) {
            text += (text.empty() ? "" : ", ") + std::string(what) + " " +
                    (bytes ? format_bytes(value) + "/s" : format_count(value) + " a second");
        }
    };
    put("reads", limits.read_bytes, true);
    put("reads", limits.reads, false);
    put("writes", limits.write_bytes, true);
    put("writes", limits.writes, false);
    return text;
}

std::string limits_text(const DiskLimits& limits) {
    std::string text;
    for (const auto& [disk, each] : limits) {
        text += (text.empty() ? "" : "; ") + disk_name(disk) + ": " + limits_text(each);
    }
    return text;
}

std::optional<DiskLimits> limits_left_behind(int version, const fs::path& own, const fs::path& parent) {
    DiskLimits limits;
    if (version == 1) {
        return add_throttles(own, limits) ? std::optional(limits) : std::nullopt;
    }
    for (fs::path at = own; at != parent; at = at.parent_path()) {
        if (!add_max(at, limits)) {
            return std::nullopt;
        }
        if (at == at.parent_path()) {
            break;
        }
    }
    return limits;
}

IoLimits limits_on(dev_t disk, const GroupTexts& texts) {
    IoLimits on;
    const auto add = [&](int version, const std::optional<OwnGroup>& own) {
        // Where the group is not shown, its mount has the limits of another one.
        const auto limits =
            own && own->shown ? limits_left_behind(version, own->folder, own->mount.parent_path()) : std::nullopt;
        if (limits && limits->contains(disk)) {
            on = stricter(on, limits->at(disk));
        }
    };
    add(1, own_group_of("blkio", texts));
    add(2, own_unified_group(texts));
    return on;
}

}  // namespace reprise
