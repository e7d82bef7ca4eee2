// SPDX-License-Identifier: MIT
// Several recordings of one job: `capture --runs` makes them, `replay` and `prepare` take them in place of one.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/table.h"
#include "experiment/recordings.h"
#include "replay/interval/interval.h"

namespace reprise::cli {

inline constexpr unsigned kMostRuns = 1'000;
/// The value of --runs. Throws Error (usage) where it is none.
unsigned wanted_runs(const po::variables_map& values);
/// Name of one of several files: "job.oplog" becomes "job.3.oplog".
std::filesystem::path numbered(const std::filesystem::path& path, size_t number);

class Recordings {
public:
    /// Reads the logs. Throws Error where one cannot be read or they are not of one job.
    explicit Recordings(const std::vector<std::string>& logs);

    /// The one nearest to the median of those that nothing disturbed.
    const std::string& chosen() const { return logs_[verdict_.median_run]; }
    Scatter times() const;
    bool several() const { return logs_.size() > 1; }
    void print(std::ostream& out) const;
    Json json() const;
    /// What speaks against them as recordings of one job, a line each.
    std::vector<std::string> warnings() const;

private:
    Table table() const;

    std::vector<std::string> logs_;
    std::vector<RecordingFacts> facts_;
    std::vector<RunOutcome> outcomes_;
    SeriesVerdict verdict_;
};

struct ChosenLog {
    std::string path;
    Scatter times;  // of the recordings that count
    std::vector<std::string> warnings = {};
};
/// The log to use of those on the command line. Of several, says which and why on standard error.
ChosenLog chosen_log(const po::variables_map& values);

/// Records `runs` times, each in a process of its own: `record` is given the name of the log and returns the exit code.
/// Ends after the first run that does not return 0, and with its code. Then says how the recordings compare.
int record_runs(unsigned runs, const std::filesystem::path& output, const po::variables_map& values,
                const std::function<int(const std::filesystem::path&)>& record);

}  // namespace reprise::cli
