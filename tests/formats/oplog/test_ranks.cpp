// SPDX-License-Identifier: MIT
#include "formats/oplog/ranks.h"

#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"

using namespace reprise;

namespace {

/// A launcher, two ranks, a worker process of each, and a process without a parent.
Tables job() {
    Tables tables;
    for (const ProcessId parent : {0, 1, 1, 2, 3, 0}) {
        ProcessRow row;
        row.parent = parent;
        tables.processes.push_back(row);
    }
    return tables;
}

}  // namespace

TEST_CASE("ranks: what is stated is inherited, and read as written") {
    const Tables tables = job();
    Header header;
    const std::vector<uint32_t> stated{kNoRank, kNoRank, 0, 1, 0, 1, kNoRank};
    write_ranks(header, tables, stated);
    CHECK(header.extra.at("ranks") == "2:0 3:1");
    const RecordedRanks ranks = recorded_ranks(header, tables);
    CHECK(ranks.count == 2);
    CHECK(ranks.of_process == stated);
    CHECK(ranks.how == "as recorded");
}

TEST_CASE("ranks: none stated") {
    Tables tables = job();
    RecordedRanks ranks = recorded_ranks({}, tables);
    CHECK(ranks.count == 1);
    CHECK(ranks.of_process == std::vector<uint32_t>{kNoRank, 0, 0, 0, 0, 0, 0});
    tables.processes[6].host = tables.strings.intern("other");
    ranks = recorded_ranks({}, tables);
    CHECK(ranks.count == 2);
    CHECK(ranks.of_process == std::vector<uint32_t>{kNoRank, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("ranks: a damaged statement is none, a circle of parents ends") {
    Tables tables = job();
    Header header;
    for (const char* text : {"2", "2:", "2:0,3:1", "9:0", "0:1", "2:99", "x:1", "2:1 "}) {
        header.extra["ranks"] = text;
        const RecordedRanks ranks = recorded_ranks(header, tables);
        CHECK_MESSAGE((ranks.count == 1 || std::string(text) == "2:1 "), text);
    }
    tables.processes[2].parent = 3;
    tables.processes[3].parent = 2;
    header.extra["ranks"] = "1:0";
    CHECK(recorded_ranks(header, tables).of_process[2] == kNoRank);
}
