// SPDX-License-Identifier: MIT
// What tests of importers share: run one on text, and look into the log.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/import/importer.h"
#include "formats/oplog/oplog.h"
#include "tests/support.h"

namespace reprise::test {

/// Imports files as `reprise import` does and opens the log, which lives in `dir`.
inline LogReader import_files(const TempDir& dir, const std::vector<std::filesystem::path>& inputs,
                              std::string_view from = {}, ImportOptions options = {}) {
    const auto files = importable_files(inputs);
    options.writer.sync = false;
    find_importer(files, from).import(files, dir / "out.oplog", options);
    return LogReader(dir / "out.oplog");
}

inline LogReader import_text(const TempDir& dir, std::string_view text, std::string_view from = {},
                             ImportOptions options = {}) {
    write_file(dir / "input", text);
    return import_files(dir, {dir / "input"}, from, std::move(options));
}

/// Value of a counter, 0 where there is none.
inline uint64_t counter(const LogReader& log, std::string_view name) {
    for (const Counter& c : log.tables().counters) {
        if (c.name == name) {
            return c.value;
        }
    }
    return 0;
}

struct Row {
    TaskId task = 0;
    Op op;
    std::string path;
};

/// All ops in time order (spans of lists and edges are not kept).
inline std::vector<Row> rows(const LogReader& log) {
    std::vector<Row> out;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        out.push_back({task, op, std::string(log.tables().path(log.tables().file_of(op)))});
    });
    return out;
}

/// One line per op: "tid name path fd offset+size=result", what a test of a small input compares.
inline std::string listing(const LogReader& log) {
    std::string text;
    for (const Row& row : rows(log)) {
        const OpInfo& what = info(row.op.kind);
        text += std::to_string(log.tables().tasks[row.task].tid) + " " + std::to_string(row.op.begin / 1000) + "+" +
                std::to_string(row.op.duration / 1000) + " " + std::string(what.name);
        if (!row.path.empty()) {
            text += " " + row.path;
        }
        if (row.op.file2) {
            text += " -> " + std::string(log.tables().path(row.op.file2));
        }
        if (what.has(Field::fd)) {
            text += " fd" + std::to_string(row.op.fd);
        }
        if (what.has(Field::offset)) {
            text += " @" + std::to_string(row.op.offset);
        }
        if (what.has(Field::size)) {
            text += " #" + std::to_string(row.op.size);
        }
        if (what.has(Field::text) && row.op.text) {
            text += " '" + std::string(log.tables().strings[row.op.text]) + "'";
        }
        if (what.has(Field::arg)) {
            text += " arg" + std::to_string(row.op.arg);
        }
        text += " = " + std::to_string(row.op.result) + "\n";
    }
    return text;
}

}  // namespace reprise::test
