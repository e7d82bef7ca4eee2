// SPDX-License-Identifier: MIT
// The sections of a job, each written by its own code.
#pragma once

#include <functional>
#include <vector>

#include "generate/generate.h"
#include "generate/task_writer.h"

namespace reprise {

/// What the sections of a log share.
struct LogPlace {
    LogWriter& log;
    uint32_t maps = 0;      // numbered so far
    uint32_t requests = 0;  // likewise
    int32_t processes = 0;  // pids that were given
    int64_t serving = 0;    // accelerators that do not train
    GenerateResult& result;
    std::function<void(double)> progress;  // of the section, in [0,1]

    ProcessId add_process(ProcessId parent, std::string_view command);
    TaskId add_task(ProcessId process, std::string_view name);
    /// Counts what a task did, which is over.
    void count(const TaskWriter& task);
};

/// `after`: ops of earlier sections that the section begins after. Adds the last op of each of its tasks to `ends`.
void write_training(LogPlace& place, const JobSection& section, const TrainingJob& job,
                    const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends);
void write_kv_cache(LogPlace& place, const JobSection& section, const KvCacheJob& job,
                    const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends);
void write_model_load(LogPlace& place, const JobSection& section, const ModelLoadJob& job,
                      const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends);
void write_preprocess(LogPlace& place, const JobSection& section, const PreprocessJob& job,
                      const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends);
void write_io(LogPlace& place, const JobSection& section, const IoJob& job, const std::vector<TaskMoment>& after,
              std::vector<TaskMoment>& ends);

}  // namespace reprise
