// SPDX-License-Identifier: MIT
// `reprise prepare`: creates below a root the files that existed before the recording, or restores them.

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/recordings.h"
#include "cli/scale_options.h"
#include "cli/show_prepare.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/words_check.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "hosts/dealing.h"
#include "hosts/hosts.h"
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

/// The last line of the command.
struct Outcome {
    std::string_view state;
    double seconds = 0;
    uint64_t entries = 0, bytes = 0, holes = 0;
};

/// One line: such files are not what the recording found.
void print_refused_attributes(const Examples& refused) {
    if (refused.count > 0) {
        std::cout << "  warning: " << counted(refused.count, "file") << " without the extended attributes of the "
                  << "recording, which the file system refused; reading them fails in a replay: "
                  << printable(refused.paths.front()) << (refused.count > 1 ? ", ..." : "") << '\n';
    }
}

void print_outcome(const Outcome& outcome, const Preparation& preparation, const WriteState& state) {
    if (outcome.entries == 0) {
        std::cout << outcome.state << '\n';
    } else {
        std::cout << outcome.state << ": " << counted(outcome.entries, "entry", "entries");
        if (outcome.bytes > 0) {
            std::cout << ", " << format_bytes(outcome.bytes) << " at "
                      << format_rate(static_cast<double>(outcome.bytes) / outcome.seconds);
        }
        if (outcome.holes > 0) {
            std::cout << ", holes of " << format_bytes(outcome.holes);
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

std::string_view state_if_idle(const Preparation& preparation) {
    return preparation.survey().lost.count == 0 ? "nothing to do, everything is in place" : "nothing was changed";
}

/// What all ranks did together.
void add_ranks(Hosts& hosts, const Preparation& preparation, Outcome& outcome) {
    const std::string mine =
        std::to_string(outcome.entries) + " " + std::to_string(outcome.bytes) + " " + std::to_string(outcome.holes);
    outcome.entries = outcome.bytes = outcome.holes = 0;
    for (const std::string& one : hosts.ranks().share(mine)) {
        uint64_t entries = 0, bytes = 0, holes = 0;
        std::istringstream(one) >> entries >> bytes >> holes;
        outcome.entries += entries;
        outcome.bytes += bytes;
        outcome.holes += holes;
    }
    if (outcome.entries == 0) {
        outcome.state = state_if_idle(preparation);
    }
}

/// The root may be missing: then its parent tells who shares it.
void meet_at(Hosts& hosts, const std::filesystem::path& root) {
    std::error_code error;
    const bool missing = !std::filesystem::exists(root, error);
    const std::vector<std::string> all = hosts.ranks().share(missing ? "1" : "0");
    const bool any = std::find(all.begin(), all.end(), "1") != all.end();
    const std::filesystem::path above = std::filesystem::absolute(root, error).lexically_normal().parent_path();
    hosts.set_root(any ? above : root);
}

/// What the words say without a look at the log.
PrepareOptions prepare_options(const po::variables_map& values) {
    PrepareOptions options;
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
    return options;
}

/// Adds what they say of a log's files.
void choose_files(const po::variables_map& values, const LogReader& recording, PrepareOptions& options) {
    options.maps = wanted_maps(values, recording);
    if (values.count("only") != 0 || values.count("not") != 0) {
        options.filter = wanted_filter(values, recording, Base::job);
    }
}

int prepare_as(const po::variables_map& values, Hosts* hosts) {
    if (values.count("root") == 0) {
        throw usage_error("prepare: --root is required",
                          "name the directory to create the files in, e.g. --root /mnt/new");
    }
    PrepareOptions options = prepare_options(values);
    std::string chosen = chosen_log(values).path;
    Hosts::Received received;
    std::optional<RootShare> share;
    const bool speaks = hosts == nullptr || hosts->rank() == 0;
    const ScaleOptions scale = scale_options(values);
    options.log_name = name_at_scale(chosen, scale, values);
    if (hosts != nullptr) {
        chosen = hosts->fetch_log(chosen, received).string();
    }
    const bool as_json = json_wanted(values);

    const LogReader recording = log_at_scale(chosen, scale, values);
    choose_files(values, recording, options);
    options.fingerprint = log_fingerprint(recording);
    std::optional<LogReader> variant;
    GpuCopies copies = GpuCopies::parse(values["gpus"].as<std::string>());
    if (hosts != nullptr) {
        hosts->check_log(options.fingerprint);
        meet_at(*hosts, options.root);
        share.emplace(hosts->ranks(), hosts->root_group());
        options.peers = &*share;
        const RecordedRanks recorded = recorded_ranks(recording.header(), recording.tables());
        copies.count = copies_for(recorded.count, copies.count, hosts->size());
    }
    if (options.reset) {
        copies.count = std::max(copies.count, copies_below(options.root, options.fingerprint));
    }
    options.copies = copies.count;
    if (copies.count != 1) {
        variant.emplace(make_variant(recording, {copies, {}}));
    }
    Preparation preparation(variant ? *variant : recording, std::move(options));
    const bool refused = preparation.options().reset && preparation.root_missing();  // write() says why
    if (!json_alone(values) && speaks && !refused) {
        quiet() ? print_doubts(preparation) : print_plan(preparation);
    }
    Json json = as_json ? plan_json(preparation) : Json();
    const auto finish = [&](const Outcome& outcome, const WriteState& state) {
        if (as_json && speaks) {
            json["state"] = outcome.state;
            json["seconds"] = outcome.seconds;
            json["entries_done"] = outcome.entries;
            json["bytes_done"] = outcome.bytes;
            json["hole_bytes"] = outcome.holes;
            json["directories_left"] = state.left.count;
            json["attributes_refused"] = state.attributes_refused.count;
            put_json(values, json);
        }
        if (!json_alone(values) && !quiet() && speaks && outcome.state != kRefused) {
            print_outcome(outcome, preparation, state);
        }
        if (!json_alone(values) && speaks) {
            print_refused_attributes(state.attributes_refused);
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
    if (preparation.nothing_to_do() && hosts == nullptr) {
        finish({.state = state_if_idle(preparation)}, state);
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
        state.stop = state.stop || (hosts != nullptr && !hosts->stopped().empty());
        progress.update(by_bytes ? state.bytes.load() : state.entries.load(), by_bytes ? survey.bytes : entries);
    });
    progress.finish();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    Outcome outcome{.state = complete ? "done" : "interrupted",
                    .seconds = seconds,
                    .entries = state.entries.load(),
                    .bytes = state.bytes.load(),
                    .holes = state.holes.load()};
    if (hosts != nullptr) {
        add_ranks(*hosts, preparation, outcome);
    }
    finish(outcome, state);
    if (!complete) {
        throw machine_error("interrupted; the root is marked incomplete", "run the same command again to continue");
    }
    return 0;
}

int run(const po::variables_map& values) {
    return with_ranks([&](Hosts* hosts) { return prepare_as(values, hosts); });
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

void check_prepare_words(const std::vector<std::string>& words) {
    const int level = verbosity();
    const po::variables_map values = parse(*find_command("prepare"), words);
    set_verbosity(level);  // the words' own is another process's
    const LogReader recording(values["log"].as<std::vector<std::string>>().front(),
                              ReadOptions{.recover = values.count("recover") != 0});
    scale_options(values);
    PrepareOptions options = prepare_options(values);
    choose_files(values, recording, options);
    GpuCopies::parse(values["gpus"].as<std::string>());
}

}  // namespace reprise::cli
