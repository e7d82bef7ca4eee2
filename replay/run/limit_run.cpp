// SPDX-License-Identifier: MIT
#include "replay/run/limit_run.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/mounted.h"
#include "formats/oplog/held_memory.h"
#include "formats/support/error.h"
#include "formats/support/unique_fd.h"
#include "replay/prepare/residency.h"

namespace reprise {
namespace {

int64_t end_of(const LogReader& log) {
    int64_t end = 0;
    for (const BlockInfo& block : log.blocks()) {
        end = std::max(end, block.end);
    }
    return end;
}

/// The recorded job's own memory over time; none: not recorded. Where it was made longer in another way than by
/// scaling, it holds as much for so much longer.
std::optional<std::vector<HeldTotal>> job_memory(const Plan& plan, const ReplayOptions& options) {
    const LogReader& recording = options.recording != nullptr ? *options.recording : *plan.log;
    const std::optional<HeldMemories> held = held_memory(recording);
    if (!held) {
        return std::nullopt;
    }
    const int64_t recorded = end_of(recording), here = end_of(*plan.log);
    const double longer = recorded > 0 ? static_cast<double>(here) / static_cast<double>(recorded) : 1.0;
    std::vector<HeldTotal> total = total_held(*held);
    for (HeldTotal& point : total) {
        point.bytes *= options.copies;
        point.time_ns = static_cast<int64_t>(static_cast<double>(point.time_ns) * longer);
    }
    return total;
}

bool in_memory(const std::filesystem::path& place) {
    const UniqueFd fd(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return fd.valid() && lies_in_memory(fd.get());
}

/// Why the limit of one disk is not that of the run; empty: it is.
std::string on_several_disks(const Plan& plan, const std::filesystem::path& root, dev_t disk) {
    if (const size_t more = further_devices(root); more != 0) {
        return escape_line(root.string()) + " is on " + std::to_string(more + 1) + " devices";
    }
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(root, error);
    const std::optional<std::string> shared = plan.maps.map("/dev/shm");
    for (const std::string& place : mounts_below(real)) {
        if (place == shared && in_memory(real / place)) {
            continue;  // as the job's own (memory_files.h)
        }
        const auto is_there = [&](FileId file) {
            const char* const path = plan.keeps_file(file) ? plan.paths[file].relative : nullptr;
            return path != nullptr && std::string_view(path).starts_with(place) &&
                   (path[place.size()] == '/' || path[place.size()] == '\0');
        };
        const std::optional<dev_t> other = disk_of(real / place);
        for (FileId file = 1; other != disk && file < plan.paths.size(); ++file) {
            if (is_there(file)) {
                return escape_line((real / place).string()) + ", on another disk than the root, has files of the job";
            }
        }
    }
    return {};
}

}  // namespace

std::unique_ptr<LimitedRun> limit_run(const Plan& plan, const ReplayOptions& options, CacheKeeper& cache) {
    CacheRequest request = *options.cache;
    request.regime = request.regime.value_or(CacheRegime::cold);
    if (options.limits.memory_limited()) {
        cache.apply({CacheRegime::cold, request.drop_all});
        if (const CacheReport& report = cache.report(); report.files != 0 && report.memory_files == report.files) {
            throw machine_error(
                std::string(options.limits.ratio ? "--ratio" : "--memory") + ": " + escape_line(options.root.string()) +
                    " has all files that are read in memory (tmpfs), where no limit would take them back",
                "use a root on a disk");
        }
    }
    if (options.limits.ratio && cache.report().recorded.hides_touches()) {
        throw machine_error(
            "no memory limit follows from --ratio: mapped files were in memory when recorded, so it is not known how "
            "much "
            "of them the job used",
            "use --memory SIZE, or record cold");
    }
    auto limited = std::make_unique<LimitedRun>(options.limits, cache.wanted_bytes(), job_memory(plan, options),
                                                plan.processes.size() - 1);
    if (options.limits.io.any()) {
        const std::optional<dev_t> device = disk_of(options.root);
        if (!device) {
            throw machine_error(
                "--io-limit: " + escape_line(options.root.string()) + " is on no block device that can be limited",
                "use a root on a local disk");
        }
        if (const std::string why = on_several_disks(plan, options.root, *device); !why.empty()) {
            throw machine_error("--io-limit: " + why + "; the kernel limits each disk alone", "use a root on one disk");
        }
        limited->limit_io(options.limits.io, *device);
    }
    limited->count_io();
    if (!options.limits.memory_limited()) {
        cache.apply(*options.cache);
    } else if (request.regime != CacheRegime::cold) {
        if (!limited->group().enter()) {
            throw machine_error("cannot enter the control group " + limited->group().name(), "");
        }
        cache.apply({request.regime, false});
        limited->group().leave();
        cache.look_before();
    }
    return limited;
}

}  // namespace reprise
