// SPDX-License-Identifier: MIT
// `reprise graft`: what a profile tells of accelerators, put into a recording of the job's I/O.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/import/importer.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"
#include "transform/graft.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& add) {
    add.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    add.add_options()("by", po::value<std::string>()->default_value("auto")->value_name("HOW"),
                      "clock: both were recorded in one run; step: the profile is of another run, each step lies where "
                      "that step is in the recording; auto: the clock where it fits, else the steps");
    add.add_options()("force,f", "replace the output if it exists");
    add.add_options()("json", "print the result as JSON");
}

/// A profile as a log, made where it is none yet.
class Profile {
public:
    explicit Profile(const fs::path& path)
        : made_(fs::temp_directory_path() / ("reprise-profile-" + std::to_string(getpid()) + ".oplog")) {
        const std::string head = read_head(path);
        for (const Importer* importer : all_importers()) {
            if (!importer->sniff(head)) {
                continue;
            }
            if (importer->name != "kineto" && importer->name != "nsys") {
                throw bad_input(path.native(), "is " + std::string(importer->name) + ", which is no profile",
                                "name a PyTorch profile or an export of Nsight Systems");
            }
            const std::vector<fs::path> inputs{path};
            ImportOptions how;
            how.writer.sync = false;
            importer->import(inputs, made_, how);
            log_.emplace(made_);
            return;
        }
        log_.emplace(path);
    }
    ~Profile() {
        std::error_code ignored;
        fs::remove(made_, ignored);
    }
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;
    const LogReader& log() const { return *log_; }

private:
    fs::path made_;
    std::optional<LogReader> log_;
};

int run(const po::variables_map& values) {
    const LogReader job(values["log"].as<std::string>());
    const fs::path output = values["output"].as<std::string>();
    std::error_code ignored;
    if (fs::equivalent(output, job.path(), ignored)) {
        throw usage_error("the output is the recording itself", "name another file with -o");
    }
    if (fs::exists(output, ignored) && values.count("force") == 0) {
        throw usage_error(escape_line(output.native()) + " exists",
                          "name another file with -o, or replace it with --force");
    }
    const auto& word = values["by"].as<std::string>();
    const GraftBy by = word == "clock" ? GraftBy::clock : word == "step" ? GraftBy::step : GraftBy::automatic;
    const Profile profile(values["profile"].as<std::string>());
    GraftOptions how;
    how.writer.derive = derive_queues;
    const GraftResult result = graft(job, profile.log(), by, output, how);
    const LogReader written(output);
    if (values.count("json") != 0) {
        Json counters = Json::array();
        for (const Counter& counter : written.tables().counters) {
            counters.push_back({{"name", counter.name},
                                {"severity", severity_name(counter.severity)},
                                {"count", counter.value},
                                {"meaning", counter.meaning}});
        }
        print_json(std::cout, {{"output", printable(output.native())},
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
        return 0;
    }
    if (quiet()) {
        return 0;
    }
    std::cout << printable(output.native()) << ": " << format_count(result.submissions)
              << " pieces of accelerator work and " << format_count(result.waits) << " waits for them from "
              << printable(profile.log().header().source) << ", by " << (result.by == GraftBy::clock ? "clock" : "step")
              << ", " << format_count(result.steps) << " steps in common; the two differ by "
              << (result.residual_ns ? format_duration(*result.residual_ns)
                                     : "an unknown time, as no steps are marked in both")
              << '\n';
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
    .summary = "put a profile's accelerator work into a recording",
    .help =
        "A recording of I/O does not know what an accelerator did; a profile (PyTorch's JSON, Nsight Systems' SQLite "
        "export, or a log imported from one) knows nothing else. This makes one log of both: work is submitted and "
        "waited for on the threads that did so in the profile.\n\n"
        "Where both are of one run, the wall clock says which time is which. Where the profile is of another run of "
        "the same job, steps do: marks `step`, `batch` or spans of a loop in the recording, ProfilerStep#N or ranges "
        "`step N` in the profile. A profile of another job is refused, with the numbers that differ.",
    .examples = {{"reprise graft job.oplog profile.json -o whole.oplog", "a PyTorch profile of the same run"},
                 {"reprise graft job.oplog report.sqlite --by step -o whole.oplog",
                  "one of another run, step by step"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}, {.name = "profile", .label = "PROFILE"}},
    .choices = {{"by", {"auto", "clock", "step"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
