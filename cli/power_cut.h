// SPDX-License-Identifier: MIT
// Power cuts: the disk as it was at some moment of a run, mounted again; what was synced by then must be there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/regress_suite.h"
#include "cli/run_files.h"

namespace reprise::cli {

/// Where the power is cut: `write` writes of the log were made. `loses_cache`: of those after the last flush, only
/// some, as the disk had them in its own cache.
struct PowerCut {
    size_t write = 0;
    bool loses_cache = false;
};

/// Half of them right after a sync, where what it promised is youngest; the others anywhere. Each second one loses the
/// disk's cache. Ascending.
std::vector<PowerCut> choose_cuts(const std::vector<int64_t>& arrived_ns, const std::vector<int64_t>& synced_ns,
                                  size_t count, uint64_t seed);

/// The newest sync of a file that had returned by then; its begin INT64_MIN: none.
Sync last_sync(const ModelFile& file, const FileModel& model, int64_t time);

/// Of the files below `root` (a descriptor) those bytes that had been on the device before the run, or were synced, and
/// not changed since, at `time` of the run's log. `model` has seen all ops that began by then.
struct DurableCheck : TreeCheck {
    uint64_t synced_bytes = 0;  // of bytes: that a sync of the run had promised
};
DurableCheck check_durable(int root, const FileModel& model, int64_t time);

/// A disk whose writes were logged, to be looked at as it was at any moment.
struct CutDisk {
    std::filesystem::path folder;  // for images and a mount; needs room for two images
    std::filesystem::path before;  // the image before the first write
    std::filesystem::path writes;
    std::string job, mount_options;
    uint64_t seed = 1;
    std::optional<size_t> lost = {};  // for tests: a write that the disk acknowledges and loses
};
struct CutResults {
    std::vector<std::string> failures;  // what is wrong after each cut, a sentence each
    size_t cuts = 0;
    uint64_t bytes = 0, synced_bytes = 0;  // that were compared, of all cuts together
};
/// `progress`: with the number of cuts done.
CutResults results_of_cuts(const std::vector<PowerCut>& cuts, const CutDisk& disk, const RunFiles& files,
                           const std::function<void(size_t)>& progress);

struct CutWork {
    std::filesystem::path folder;  // for images and mounts; needs room for four images
    size_t cuts = 20;
    uint64_t seed = 1;
    /// Prepares the cell's root; runs the job in it, verified, and gives its row: none where it was interrupted.
    std::function<void(const RegressCell&)> prepare;
    std::function<std::optional<RowFile::Json>(const RegressCell&)> run;
    std::function<std::filesystem::path()> run_log;
};

/// Makes a file system on a disk that logs its writes, runs the job there, then cuts. Everything it makes is gone
/// afterwards, unless REPRISE_KEEP_CUTS is in the environment.
CheckedThing check_power_cuts(const RegressCell& cell, const CutWork& work);

}  // namespace reprise::cli
