// SPDX-License-Identifier: MIT
#include "cli/show_cache.h"

#include "cli/units.h"

namespace reprise::cli {
namespace {

/// Below the usual read-ahead, opening a file may cost as much as reading it.
constexpr uint64_t kSmallFile = uint64_t{128} << 10;

std::string reason(const CacheReport& report) {
    using Why = CacheChoice::Why;
    const RecordedCache& recorded = report.recorded;
    const auto fetched = [&] {
        const uint64_t around = recorded.around_bytes;
        return std::string(recorded.pages_known ? "" : "about ") +
               format_bytes(recorded.fetched_bytes.value_or(0) + around) + " of " +
               format_bytes(recorded.read_bytes + around);
    };
    switch (report.choice.why) {
        case Why::asked: return "as asked";
        case Why::fetched: return "default: the recording fetched " + fetched();
        case Why::in_memory: return "default: the recording fetched only " + fetched();
        case Why::unknown:
            // Pages that faults find in memory are not read.
            if (recorded.fetched_bytes && recorded.read_bytes == 0) {
                return report.files == 0 ? "default" : "default: the recording fetched nothing";
            }
            return report.choice.asked ? "not recorded: the log does not say what was in memory"
                                       : "default: the log does not say what was in memory";
    }
    return "";
}

/// Where files are in memory. `root`: the root's file system; another one may be mounted below.
std::string where_in_memory(const CacheReport& report, const std::string& root) {
    const bool of_root = root == "tmpfs" || root == "ramfs" || root == "hugetlbfs";
    if (report.memory_files == report.files && of_root) {
        return "The root is on " + root + ", which is memory";
    }
    const std::string files =
        report.memory_files == report.files
            ? (report.files == 1 ? "The only file that is read is" : "All files that are read are")
            : format_count(report.memory_files) + " of " + counted(report.files, "file") +
                  (report.memory_files == 1 ? " is" : " are");
    return files + " on a tmpfs, which is memory" + (of_root || root.empty() ? "" : " and not the root's " + root);
}

std::string part(const std::optional<uint64_t>& bytes) { return bytes ? format_bytes(*bytes) : "unknown"; }

Json number_or_null(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string cache_line(const CacheReport& report) {
    std::string line = std::string(cache_regime_name(report.choice.regime)) + " (" + reason(report) +
                       (report.dropped_all ? "; all caches dropped" : "") + ")";
    if (report.files == 0) {
        return line + "; no file that was there before is read through the page cache";
    }
    line += "; " + part(report.before) + " of " + format_bytes(report.bytes) + " in memory before";
    if (report.after) {
        line += ", " + format_bytes(*report.after) + " after";
    }
    return line;
}

std::vector<std::string> cache_notes(const CacheReport& report, const MachineFacts& machine) {
    std::vector<std::string> notes;
    const CacheRegime regime = report.choice.regime;
    if (report.memory_files != 0) {
        notes.push_back(where_in_memory(report, machine.file_system) +
                        ": no regime is cold there, and the run measures memory, not storage.");
    }
    const bool should_be_cold = regime == CacheRegime::cold || regime == CacheRegime::recorded;
    for (const StillCached& file : report.stayed) {
        notes.push_back(format_bytes(file.bytes) + " of " + printable(file.path) +
                        " stayed in memory when they were dropped: " + file.why + ".");
    }
    if (report.stayed_files > report.stayed.size()) {
        notes.push_back("In all " + format_bytes(report.stayed_bytes) + " of " + counted(report.stayed_files, "file") +
                        " stayed in memory.");
    }
    if (regime == CacheRegime::recorded && report.recorded.guessed_files != 0) {
        notes.push_back("Of " + counted(report.recorded.guessed_files, "file") +
                        " the recording says how much was in memory, but not which part: taken to be the beginning.");
    }
    if (report.missing_bytes != 0) {
        notes.push_back(format_bytes(report.missing_bytes) +
                        " were read into memory before the run, and the kernel took them back (" +
                        format_bytes(machine.memory_bytes) + " of memory here, and perhaps a container's limit).");
    }
    if (report.sparse_files != 0) {
        notes.push_back(format_bytes(report.hole_bytes) + " of what is read of " +
                        counted(report.sparse_files, "file") +
                        " have no blocks on the device (sparse or compressed): reading them is neither storage nor "
                        "memory.");
    }
    if (report.unseen != 0) {
        notes.push_back("What of " + counted(report.unseen, "file") +
                        " is in memory is unknown: this user neither owns them nor may write them.");
    }
    const bool is_cold = 2 * report.before.value_or(0) < report.bytes;
    if (should_be_cold && is_cold && !report.dropped_all && report.files > report.memory_files &&
        report.uncached_names == 0 && report.bytes / report.files < kSmallFile) {
        notes.push_back(
            "The files are small, and only their data is cold: names and inodes are in memory (--drop-caches "
            "drops those, too).");
    }
    if (!report.dropped_all && report.uncached_names != 0) {
        notes.push_back(counted(report.uncached_names, "file") +
                        " were not looked at before the run, as their names were not in memory, so that their data was "
                        "hardly there either.");
    }
    return notes;
}

Json cache_json(const CacheReport& report) {
    Json stayed = Json::array();
    for (const StillCached& file : report.stayed) {
        stayed.push_back({{"path", printable(file.path)}, {"bytes", file.bytes}, {"why", file.why}});
    }
    return {{"regime", cache_regime_name(report.choice.regime)},
            {"asked", report.choice.asked ? Json(cache_regime_name(*report.choice.asked)) : Json(nullptr)},
            {"why", cache_why_name(report.choice.why)},
            {"dropped_all", report.dropped_all},
            {"files", report.files},
            {"bytes", report.bytes},
            {"found_bytes", number_or_null(report.found)},
            {"resident_before_bytes", number_or_null(report.before)},
            {"resident_after_bytes", number_or_null(report.after)},
            {"memory_files", report.memory_files},
            {"memory_file_bytes", report.memory_file_bytes},
            {"unseen_files", report.unseen},
            {"uncached_names", report.uncached_names},
            {"stayed_files", report.stayed_files},
            {"stayed_bytes", report.stayed_bytes},
            {"stayed", std::move(stayed)},
            {"missing_bytes", report.missing_bytes},
            {"sparse_files", report.sparse_files},
            {"hole_bytes", report.hole_bytes},
            {"data_bytes", number_or_null(report.data_bytes)},
            {"recorded_read_bytes", report.recorded.read_bytes},
            {"recorded_fetched_bytes", number_or_null(report.recorded.fetched_bytes)},
            {"recorded_pages_known", report.recorded.pages_known},
            {"recorded_guessed_files", report.recorded.guessed_files},
            {"recorded_touched_bytes", report.recorded.touched_bytes},
            {"recorded_touched_in_memory_bytes", report.recorded.touched_in_memory},
            {"recorded_around_bytes", report.recorded.around_bytes}};
}

}  // namespace reprise::cli
