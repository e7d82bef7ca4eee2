// SPDX-License-Identifier: MIT
// Exporters: op logs to other tools' formats. Adding one is one file that defines an Exporter and one row in
// formats/export/exporters.def.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise {

struct ExportOptions {
    OpFilter filter = OpFilter::all();
    std::vector<TaskId> tasks;  // empty: all
    bool overwrite = true;      // false: an Error (usage) before anything is written where a file is there already
    /// Called with each file that will be written, before any is; may be empty. What it throws ends the export.
    std::function<void(const std::filesystem::path&)> check;
    /// Called with the number of ops seen so far; may be empty.
    std::function<void(uint64_t)> progress;
};

/// Error (usage) where a file may not be written: it exists and is not to be overwritten, or options.check throws it.
void check_written(const std::filesystem::path& file, const ExportOptions& options);

/// What an exporter made, and what its format could not hold.
struct ExportReport {
    uint64_t ops = 0;       // in the output
    uint64_t left_out = 0;  // by the filter
    std::vector<Counter> counters;
    std::vector<std::filesystem::path> files;
    std::vector<std::string> notes;  // sentences without a full stop: what is not kept beyond that

    void count(Count what, uint64_t n = 1, std::string_view detail = {}) { reprise::count(counters, what, n, detail); }
};

struct Exporter {
    std::string_view name;     // --to NAME
    std::string_view summary;  // one line for --help
    /// Writes `output` (perhaps several files beside or below it, see the exporter). Throws Error.
    ExportReport (*write)(const LogReader& log, const std::filesystem::path& output, const ExportOptions& options);
    /// What it writes is performed in a root that `prepare` made: leaves out by default what prepare does.
    bool performed = false;
    /// What each file but the last is, where it writes several.
    std::string_view part = {};
};

std::span<const Exporter* const> all_exporters();
/// Error (usage) names those there are.
const Exporter& find_exporter(std::string_view name);

}  // namespace reprise
