// SPDX-License-Identifier: MIT
// `reprise graft`: merges a profile's accelerator work into a recording of the job's I/O.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/outputs.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/import/importer.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"
#include "replay/plan/stored_queues.h"
#include "transform/graft.h"

namespace reprise::cli::graft_command {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& add) {
    add.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    add.add_options()("by", po::value<std::string>()->default_value("auto")->value_name("HOW"),
                      "clock: recording and profile are of one run; step: the profile is of another run, aligned step "
                      "by step; auto: clock if it fits, else step");
    add.add_options()("force,f", "overwrite the output if it exists");
    add_json_option(add);
}

/// A profile as a log; imported if it is not a log yet.
class Profile {
public:
    explicit Profile(const fs::path& path) {
        const std::string head = read_head(path);
        for (const Importer* importer : all_importers()) {
            if (!importer->sniff(head)) {
                continue;
            }
            if (!importer->profile) {
                throw bad_input(path.native(), "is " + std::string(importer->name) + ", not a profile",
                                "give a PyTorch profile or an Nsight Systems export");
            }
            const fs::path made = scratch_.emplace().path() / "profile.oplog";
            const std::vector<fs::path> inputs{path};
            ImportOptions how;
            how.writer.sync = false;
            importer->import(inputs, made, how);
            log_.emplace(made);
            return;
        }
        if (!is_op_log(head)) {
            throw bad_input(path.native(), "is neither a profile nor an op log",
                            "give a PyTorch profile (JSON) or an Nsight Systems export (SQLite)");
        }
        log_.emplace(path);
    }
    ~Profile() = default;
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;
    const LogReader& log() const { return *log_; }

private:
    std::optional<ScratchDir> scratch_;
    std::optional<LogReader> log_;
};

int run(const po::variables_map& values) {
    const LogReader job(values["log"].as<std::string>());
    const fs::path output = values["output"].as<std::string>();
    check_log_output(output, values.count("force") != 0);
    const auto& word = values["by"].as<std::string>();
    const GraftBy by = word == "clock" ? GraftBy::clock : word == "step" ? GraftBy::step : GraftBy::automatic;
    const Profile profile(values["profile"].as<std::string>());
    GraftOptions how;
    how.writer.derive = derive_queues;
    how.profile_name = values["profile"].as<std::string>();
    const GraftResult result = graft(job, profile.log(), by, output, how);
    const LogReader written(output);
    if (json_wanted(values)) {
        Json counters = Json::array();
        for (const Counter& counter : written.tables().counters) {
            counters.push_back({{"name", counter.name},
                                {"severity", severity_name(counter.severity)},
                                {"count", counter.value},
                                {"meaning", counter.meaning}});
        }
        put_json(values, {{"output", printable(output.native())},
                          {"source", printable(profile.log().header().source)},
                          {"by", result.by == GraftBy::clock ? "clock" : "step"},
                          {"offset_ns", result.by == GraftBy::clock ? Json(result.offset_ns) : Json(nullptr)},
                          {"residual_ns", result.residual_ns ? Json(*result.residual_ns) : Json(nullptr)},
                          {"submissions", result.submissions},
                          {"waits", result.waits},
                          {"steps", result.steps},
                          {"steps_of_log", result.steps_of_log},
                          {"ops", written.op_count()},
                          {"counters", std::move(counters)}});
    }
    if (json_alone(values)) {
        return 0;
    }
    if (!quiet()) {
        std::cout << printable(output.native()) << ": " << counted(result.submissions, "accelerator submission")
                  << " and " << counted(result.waits, "wait") << " from " << printable(profile.log().header().source)
                  << ", aligned by " << (result.by == GraftBy::clock ? "clock" : "step") << ", "
                  << counted(result.steps, "common step") << ", residual "
                  << (result.residual_ns ? format_duration(*result.residual_ns) : "unknown (no step is marked in both)")
                  << '\n';
    }
    for (const Counter& counter : written.tables().counters) {
        if (counter.severity != Severity::note) {
            std::cout << "  " << severity_name(counter.severity) << ": " << format_count(counter.value) << ' '
                      << counter.name << " (" << counter.meaning << ")\n";
        }
    }
    return 0;
}

const Registration registration{{
    .name = "graft",
    .group = Group::record,
    .summary = "merge a profile's accelerator work into a recording",
    .help = "A recording of I/O does not show what an accelerator did; a profile (PyTorch JSON, Nsight Systems SQLite "
            "export, or a log imported from one) shows only that. graft merges both into one log: work is submitted "
            "and waited for by the threads that did so in the profile.\n\nIf both are of one run, they are aligned by "
            "wall clock. If the profile is of another run of the same job, they are aligned by steps: markers `step`, "
            "`batch` or spans of a loop in the recording, ProfilerStep#N or ranges `step N` in the profile. A profile "
            "of another job is refused, with the numbers that differ.",
    .examples = {{"reprise graft job.oplog profile.json -o whole.oplog", "a PyTorch profile of the same run"},
                 {"reprise graft job.oplog report.sqlite --by step -o whole.oplog",
                  "a profile of another run, step by step"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}, {.name = "profile", .label = "PROFILE"}},
    .choices = {{"by", {"auto", "clock", "step"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::graft_command
