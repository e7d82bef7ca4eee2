// SPDX-License-Identifier: MIT
// `reprise prepare`: creates below a root the files that existed before the recording, or restores them.

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <string_view>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/recordings.h"
#include "cli/scale_options.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "replay/prepare/prepare.h"
#include "replay/prepare/root_marker.h"
#include "transform/copies.h"

namespace reprise::cli {
namespace {

using Clock = std::chrono::steady_clock;

void options(po::options_description& add) {
    add.add_options()("root", po::value<std::string>()->value_name("DIR"),
                      "replay root: directory to create the files in; created if its parent exists");
    add.add_options()("content", po::value<std::string>()->value_name("KIND"), "content of regular files");
    add_filter_options(add);
    add_map_option(add,
                   "place recorded directory OLD at NEW below the root; may be repeated, also as /A=X,/B=Y (other "
                   "commas are the paths' own)");
    add.add_options()("gpus", po::value<std::string>()->default_value("1")->value_name("N"),
                      "for `replay --gpus N`: also the files that each copy of the job modifies");
    add_scale_factor_options(add);
    add_scale_detail_options(add);
    add.add_options()("no-listing-entries", "no empty files in place of those that the log does not name");
    add.add_options()("reset", "restore what replays changed; requires an earlier prepare");
    add.add_options()("dry-run,n", "show the plan and stop");
    add.add_options()("jobs,j", po::value<std::string>()->value_name("N"), "number of threads");
    add_recover_option(add);
    add_json_option(add, "print plan and result as JSON");
}

constexpr std::string_view kRefused = "refused";

uint64_t count_of(const Survey& survey, Action action) { return survey.count[static_cast<size_t>(action)]; }

/// What may be wrong with the root.
void print_doubts(const Preparation& preparation) {
    for (const Counter& counter : preparation.layout().counters) {
        if (counter.severity != Severity::note) {
            std::cout << "  " << severity_name(counter.severity) << ": " << format_count(counter.value) << ' '
                      << counter.meaning << '\n';
        }
    }
}

void print_plan(const Preparation& preparation) {
    const Survey& survey = preparation.survey();
    std::cout << "prepare " << printable(preparation.options().root.string())
              << (preparation.root_missing() ? " (will be created)" : "") << " for "
              << printable(preparation.options().log_name) << ", content " << content_name(preparation.content())
              << '\n';
    Table table({{"", "what"}, {"count", "count", true}, {"bytes", "bytes", true}});
    const auto row = [&](const char* what, uint64_t count, Cell bytes = Cell("")) {
        if (count > 0) {
            table.row({what, count_cell(count), std::move(bytes)});
        }
    };
    row("files to create", survey.files, bytes_cell(survey.bytes));
    row("directories to create", survey.directories);
    row("symbolic links to create", survey.links);
    row("listing entries to create", survey.listing_entries);
    row("already in place", count_of(survey, Action::keep));
    row("to restore", count_of(survey, Action::refill));
    row("created by the log, to remove", count_of(survey, Action::remove));
    row("directories to rename back", survey.renames_back.size());
    row("excluded by role or path", preparation.layout().files_left_out);
    for (const Counter& counter : preparation.layout().counters) {
        if (counter.severity == Severity::note) {
            row(counter.name.c_str(), counter.value);
        }
    }
    if (!table.empty()) {
        table.print(std::cout, 2);
    }
    for (const Demand& demand : survey.demands) {
        if (demand.bytes == 0 && demand.inodes == 0 && demand.replay_bytes == 0) {
            continue;
        }
        std::cout << "  needs " << format_bytes(demand.bytes) << " and " << counted(demand.inodes, "inode");
        if (demand.replay_bytes > 0) {
            std::cout << ", and the replay " << format_bytes(demand.replay_bytes);
        }
        std::cout << "; free: " << format_bytes(demand.free_bytes);
        if (demand.free_inodes != UINT64_MAX) {
            std::cout << " and " << counted(demand.free_inodes, "inode");
        }
        std::cout << " at " << printable(demand.where) << '\n';
    }
    print_doubts(preparation);
    for (const std::string& remark : preparation.remarks()) {
        std::cout << "  " << remark << '\n';
    }
    std::cout.flush();
}

Json plan_json(const Preparation& preparation) {
    const Survey& survey = preparation.survey();
    Json demands = Json::array();
    for (const Demand& demand : survey.demands) {
        demands.push_back({{"where", printable(demand.where)},
                           {"bytes", demand.bytes},
                           {"replay_bytes", demand.replay_bytes},
                           {"free_bytes", demand.free_bytes},
                           {"inodes", demand.inodes},
                           {"free_inodes", demand.free_inodes == UINT64_MAX ? Json() : Json(demand.free_inodes)},
                           {"fits", demand.fits()}});
    }
    Json counters = Json::array();
    for (const Counter& counter : preparation.layout().counters) {
        counters.push_back({{"name", counter.name},
                            {"severity", severity_name(counter.severity)},
                            {"value", counter.value},
                            {"meaning", counter.meaning}});
    }
    return {{"root", printable(preparation.options().root.string())},
            {"log", printable(preparation.options().log_name)},
            {"fingerprint", preparation.marker().fingerprint},
            {"content", content_name(preparation.content())},
            {"filter", preparation.marker().filter},
            {"files", survey.files},
            {"directories", survey.directories},
            {"links", survey.links},
            {"listing_entries", survey.listing_entries},
            {"bytes", survey.bytes},
            {"bytes_laid_out", survey.bytes_laid_out},
            {"keep", count_of(survey, Action::keep)},
            {"make", count_of(survey, Action::make)},
            {"remake", count_of(survey, Action::remake)},
            {"refill", count_of(survey, Action::refill)},
            {"remove", count_of(survey, Action::remove)},
            {"rename_back", survey.renames_back.size()},
            {"left_out", preparation.layout().files_left_out},
            {"file_systems", std::move(demands)},
            {"counters", std::move(counters)},
            {"remarks", preparation.remarks()}};
}

/// The last line of the command.
struct Outcome {
    std::string_view state;
    double seconds = 0;
    uint64_t entries = 0, bytes = 0;
};

void print_outcome(const Outcome& outcome, const Preparation& preparation, const WriteState& state) {
    if (outcome.entries == 0) {
        std::cout << outcome.state << '\n';
    } else {
        std::cout << outcome.state << ": " << counted(outcome.entries, "entry", "entries");
        if (outcome.bytes > 0) {
            std::cout << ", " << format_bytes(outcome.bytes) << " at "
                      << format_rate(static_cast<double>(outcome.bytes) / outcome.seconds);
        }
        std::cout << ", in " << format_duration(static_cast<int64_t>(outcome.seconds * 1e9)) << '\n';
    }
    if (state.left.count > 0) {
        std::cout << "  kept " << counted(state.left.count, "directory", "directories") << " below "
                  << printable(preparation.options().root.string()) << " with files that the log does not name\n";
        for (const std::string& path : state.left.paths) {
            std::cout << "    " << printable(path) << '\n';
        }
    }
}

int run(const po::variables_map& values) {
    if (values.count("root") == 0) {
        throw usage_error("prepare: --root is required",
                          "name the directory to create the files in, e.g. --root /mnt/new");
    }
    PrepareOptions options;
    const std::string chosen = chosen_log(values).path;
    const ScaleOptions scale = scale_options(values);
    options.log_name = name_at_scale(chosen, scale, values);
    options.root = values["root"].as<std::string>();
    options.tool = "reprise " + std::string(tool_version());
    options.reset = values.count("reset") != 0;
    if (values.count("no-listing-entries") != 0) {
        options.listing_entries = false;
    }
    if (values.count("content") != 0) {
        options.content = content_by_name(values["content"].as<std::string>());
    }
    if (values.count("jobs") != 0) {
        constexpr int64_t kMostThreads = 1024;
        options.threads = static_cast<unsigned>(whole_number(values, "jobs", 1, kMostThreads));
    }
    const bool as_json = json_wanted(values);

    const LogReader recording = log_at_scale(chosen, scale, values);
    options.maps = wanted_maps(values, recording);
    if (values.count("only") != 0 || values.count("not") != 0) {
        options.filter = wanted_filter(values, recording, Base::job);
    }
    options.fingerprint = log_fingerprint(recording);
    std::optional<LogReader> variant;
    GpuCopies copies = GpuCopies::parse(values["gpus"].as<std::string>());
    if (options.reset) {
        copies.count = std::max(copies.count, copies_below(options.root, options.fingerprint));
    }
    options.copies = copies.count;
    if (copies.count != 1) {
        variant.emplace(make_variant(recording, {copies, {}}));
    }
    Preparation preparation(variant ? *variant : recording, std::move(options));
    if (!json_alone(values)) {
        quiet() ? print_doubts(preparation) : print_plan(preparation);
    }
    Json json = as_json ? plan_json(preparation) : Json();
    const auto finish = [&](const Outcome& outcome, const WriteState& state) {
        if (as_json) {
            json["state"] = outcome.state;
            json["seconds"] = outcome.seconds;
            json["entries_done"] = outcome.entries;
            json["bytes_done"] = outcome.bytes;
            json["directories_left"] = state.left.count;
            put_json(values, json);
        }
        if (!json_alone(values) && !quiet() && outcome.state != kRefused) {
            print_outcome(outcome, preparation, state);
        }
    };

    WriteState state;
    try {
        preparation.check();
    } catch (const Error&) {
        if (as_json) {
            finish({.state = kRefused}, state);
        }
        throw;
    }
    if (values.count("dry-run") != 0) {
        finish({.state = "dry run, nothing was changed"}, state);
        return 0;
    }
    if (preparation.nothing_to_do()) {
        finish({.state = "nothing to do, everything is in place"}, state);
        return 0;
    }

    boost::asio::io_context context;
    boost::asio::signal_set signals(context, SIGINT, SIGTERM);
    if (!is_ignored(SIGHUP)) {
        signals.add(SIGHUP);
    }
    signals.async_wait([&](const boost::system::error_code& error, int) {
        if (!error) {
            state.stop = true;
        }
    });
    const Survey& survey = preparation.survey();
    const bool by_bytes = survey.bytes > 0;
    Progress progress("prepare", by_bytes ? ProgressUnit::bytes : ProgressUnit::count);
    const uint64_t entries = survey.files + survey.directories + survey.links + survey.listing_entries +
                             count_of(survey, Action::refill) + count_of(survey, Action::remove) +
                             survey.renames_back.size();
    const auto start = Clock::now();
    const bool complete = preparation.run(state, [&] {
        context.poll();
        progress.update(by_bytes ? state.bytes.load() : state.entries.load(), by_bytes ? survey.bytes : entries);
    });
    progress.finish();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    finish({.state = complete ? "done" : "interrupted",
            .seconds = seconds,
            .entries = state.entries.load(),
            .bytes = state.bytes.load()},
           state);
    if (!complete) {
        throw machine_error("interrupted; the root is marked incomplete", "run the same command again to continue");
    }
    return 0;
}

const Registration registration{{
    .name = "prepare",
    .group = Group::replay,
    .summary = "create the files a replay needs, or restore them",
    .help = "Creates below --root every file that existed before the recording touched it, with its size, type and "
            "permission bits. First prints a plan with the bytes needed and the space available; writes nothing if it "
            "does not fit or if other files are in the way. A second run does nothing.\n\nLeaves a marker file, "
            ".reprise-prepared; without it no replay modifies anything in the root. --reset restores everything that "
            "replays changed: files they created are removed, files they removed or modified are created anew. Only "
            "paths named in the log are ever touched.",
    .examples = {{"reprise prepare job.oplog --root /mnt/new", "everything except program and system files"},
                 {"reprise prepare job.oplog --root /mnt/new --only dataset --map /data/train=.",
                  "only the dataset, at the top of the root"},
                 {"reprise prepare job.oplog --root /mnt/new --scale 4", "a data set four times as large"},
                 {"reprise prepare job.oplog --root /mnt/new --reset", "restore what a replay changed"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG", .least = 1, .most = -1}},
    .choices = {{"content", {"random", "zero", "sparse", "recorded"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
