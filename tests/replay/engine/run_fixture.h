// SPDX-License-Identifier: MIT
// A prepared root with a file of 20,000 bytes in it, and a job replayed in it whose results can be looked at.
#pragma once

#include <filesystem>
#include <string>

#include "tests/replay/job_builder.h"

namespace reprise::test {

struct RunInRoot : PreparedRoot {
    std::filesystem::path run_log = dir / "run.oplog";

    RunInRoot() {
        std::filesystem::create_directories(root / "d/sub");
        write_file(root / "d/in", std::string(20'000, 'a'));
    }
    ReplayResult run(JobBuilder& job) const {
        const LogReader log = job.finish();
        ReplayOptions options = afap(root);
        options.output = run_log;
        return replay(log, options);
    }
    /// Result of op `number` of a task in the run's log.
    int64_t result_of(TaskId task, uint64_t number) const {
        const LogReader log(run_log);
        int64_t result = INT64_MIN;
        log.for_each(task, [&](const Op& op, uint64_t n) {
            if (n == number) {
                result = op.result;
            }
        });
        return result;
    }
};

}  // namespace reprise::test
