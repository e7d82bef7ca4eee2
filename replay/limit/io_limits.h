// SPDX-License-Identifier: MIT
// Limits of I/O in control groups, and which of them a process leaves behind that goes to a group of a run's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "calibrate/own_groups.h"

namespace reprise {

/// Bytes and requests a second; 0: as many as there are.
struct IoLimits {
    uint64_t read_bytes = 0, write_bytes = 0, reads = 0, writes = 0;

    bool any() const { return (read_bytes | write_bytes | reads | writes) != 0; }
    bool operator==(const IoLimits&) const = default;
};

/// The lower of both, each of the four.
IoLimits stricter(const IoLimits& a, const IoLimits& b);
/// "reads 76.3 MiB/s, writes 100 a second"; empty: no limit.
std::string limits_text(const IoLimits& limits);

/// By the number of the disk.
using DiskLimits = std::map<dev_t, IoLimits>;
/// "loop0: reads 76.3 MiB/s; vda: ..."
std::string limits_text(const DiskLimits& limits);

/// What binds processes of the group `own`, and not those of a group that is made right below `parent`. Version 1
/// throttles each group for itself, so that only the limits of `own` count; version 2 from the root down, so that those
/// above `parent` bind both. None: it cannot be read.
std::optional<DiskLimits> limits_left_behind(int version, const std::filesystem::path& own,
                                             const std::filesystem::path& parent);

/// Limits of that disk that hold for the processes of the group this process is in. None: it has none, or they cannot
/// be read.
IoLimits limits_on(dev_t disk, const GroupTexts& texts);

/// Of version 1: a file of the group for each of the four.
struct ThrottleFile {
    const char* name;
    uint64_t IoLimits::*member;
};
inline constexpr ThrottleFile kThrottleFiles[] = {{"blkio.throttle.read_bps_device", &IoLimits::read_bytes},
                                                  {"blkio.throttle.write_bps_device", &IoLimits::write_bytes},
                                                  {"blkio.throttle.read_iops_device", &IoLimits::reads},
                                                  {"blkio.throttle.write_iops_device", &IoLimits::writes}};
/// Of version 2: a word of a line of io.max for each.
struct MaxWord {
    const char* name;
    uint64_t IoLimits::*member;
};
inline constexpr MaxWord kMaxWords[] = {{"rbps", &IoLimits::read_bytes},
                                        {"wbps", &IoLimits::write_bytes},
                                        {"riops", &IoLimits::reads},
                                        {"wiops", &IoLimits::writes}};

}  // namespace reprise
