// SPDX-License-Identifier: MIT
// A recorded job made by hand, its log on a larger data set, and what must hold of such a log.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/prepare/prepare.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"
#include "transform/scale.h"

namespace reprise::test {

struct ScaledJob {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    std::optional<LogReader> recording, scaled;
    ScaleResult result;
    int number = 0;

    FileId sized(const std::string& path, uint64_t size, Origin origin = Origin::existed, Role role = Role::dataset,
                 FileType type = FileType::regular) {
        const FileId file = job.file(path, origin, role, type);
        FileRow row = job.writer().tables().files[file];
        row.size = size;
        row.size_exact = true;
        job.writer().update_file(file, row);
        return file;
    }
    const LogReader& recorded() {
        if (!recording) {
            recording.emplace(job.finish());
        }
        return *recording;
    }
    const LogReader& scale(double factor, uint32_t epochs = 0, std::vector<SampleOverride> as = {}) {
        ScaleOptions options;
        options.factor = factor;
        options.epochs = epochs;
        options.as = std::move(as);
        const std::filesystem::path path = dir / ("scaled" + std::to_string(++number) + ".oplog");
        result = scale_log(recorded(), path, options);
        scaled.emplace(path);
        return *scaled;
    }
    void compute(TaskId task, int64_t ns) {
        job.add(task, {.kind = OpKind::compute, .duration = ns});
        job.skip(ns);
    }
    void checkpoint(TaskId task, int epoch) {
        const FileId file = job.file("/out/epoch_" + std::to_string(epoch) + ".pt", Origin::created, Role::checkpoint);
        const HandleId handle = job.open(task, file, O_WRONLY | O_CREAT | O_TRUNC);
        job.write(task, handle, 0, 100'000);
        job.close(task, handle);
    }
};

/// What a file that was read has, by what its reads returned.
inline void check_sizes(const LogReader& log) {
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::read || op.kind == OpKind::pread) {
            const auto size = static_cast<int64_t>(log.tables().files[log.tables().handles[op.handle].file].size);
            CHECK(op.result == std::clamp<int64_t>(size - op.offset, 0, op.size));
        }
    });
}

/// Edges lead to ops that are there and that are of a kind that the recording has as a source.
inline void check_edges(const LogReader& log) {
    std::map<TaskId, std::vector<std::pair<OpKind, int64_t>>> ends;
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        int64_t before = INT64_MIN;
        log.for_each(task, [&](const Op& op, uint64_t) {
            CHECK(op.begin >= before);
            before = op.begin;
            ends[task].emplace_back(op.kind, op.end());
        });
    }
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        for (const Edge& edge : op.edges) {
            REQUIRE(edge.op < ends[edge.task].size());
            if (edge.kind == EdgeKind::message) {
                CHECK(ends[edge.task][edge.op].first == OpKind::send);
            }
        }
    });
}

/// Lays the root out and replays there; every op must get its result.
inline void check_replay(const LogReader& log) {
    TempDir dir;
    PrepareOptions options;
    options.root = dir / "root";
    options.log_name = "scaled";
    {
        Preparation preparation(log, options);
        preparation.check();
        WriteState state;
        CHECK(preparation.run(state, [] {}));
    }
    const ReplayResult run = replay(log, afap(dir / "root"));
    INFO(describe(run));
    CHECK(run.ended == "complete");
    CHECK(run.mismatches == 0);
    for (const Counter& counter : run.counters) {
        CHECK(counter.name != "edges_given_up");
        CHECK(counter.name != "edges_against_time");
    }
}

}  // namespace reprise::test
