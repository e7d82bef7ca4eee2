// SPDX-License-Identifier: MIT
// A recording of one task with requests to a file, as tests of what it did between them need it.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <optional>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {

struct RequestLog {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const ProcessId process = job.process();
    const TaskId task = job.task(process);
    const HandleId in, ring = job.handle(0, O_RDWR, HandleKind::other);
    int64_t now = kUs;
    uint32_t number = 0;  // of the last request
    std::optional<LogReader> log;

    explicit RequestLog(int64_t flags) : in(job.handle(job.file("/data/in"), flags)) {
        job.writer().header().source = "capture";
    }

    /// The end of the recording.
    Plan planned() {
        log.emplace(job.finish());
        return make_plan(*log, OpFilter::all(), PathMap{});
    }
    /// On storage whose reads take so long. Once it is planned.
    Prediction predicted(int64_t read_ns) const {
        PredictOptions options;
        options.storage.cold = true;
        options.storage.cached_bytes_per_s = 1e12;
        options.storage.read = options.storage.write = {{4'096, read_ns}};
        options.filter = OpFilter::all();
        return predict(*log, options);
    }
};

}  // namespace reprise::test
