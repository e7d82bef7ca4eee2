// SPDX-License-Identifier: MIT
// `reprise analyze`: what a job did, on one screen, as JSON and as a page.
#include <filesystem>
#include <iostream>
#include <set>

#include "analyze/job/job_page.h"
#include "analyze/network.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/show_analysis.h"
#include "cli/show_network.h"
#include "cli/units.h"
#include "cli/what_bounds.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"

namespace reprise::cli::analyze_command {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& options) {
    options.add_options()("html,o", po::value<std::string>()->value_name("FILE"),
                          "write a page with charts, one file that needs no network; - for standard output");
    options.add_options()("force,f", "overwrite files that exist");
    add_json_option(options);
    options.add_options()("hot", po::value<std::string>()->default_value("20")->value_name("N"),
                          "how many of the hottest files and directories to keep");
    options.add_options()("no-what-if", "leave out what the critical path says: the log only, which is faster");
    add_filter_options(options);
    add_recover_option(options);
}

/// Empty: no page is asked for.
fs::path checked_page(const po::variables_map& values) {
    if (values.count("html") == 0) {
        return {};
    }
    fs::path page = values["html"].as<std::string>();
    check_output(page, values.count("force") != 0);
    if (page == "-") {
        if (json_alone(values)) {
            throw usage_error("analyze: --json and --html - both use standard output", "write one to a file");
        }
        return page;
    }
    check_directory_of(page);
    return page;
}

/// The file's name without its ending; the path where two have the same.
std::vector<std::string> short_names(const std::vector<std::string>& logs) {
    std::multiset<std::string> names;
    for (const std::string& log : logs) {
        names.insert(fs::path(log).stem().string());
    }
    std::vector<std::string> out;
    for (const std::string& log : logs) {
        const std::string name = fs::path(log).stem().string();
        out.push_back(names.count(name) == 1 && !name.empty() ? name : log);
    }
    return out;
}

AnalyzedJob analyzed(const LogReader& log, const std::string& name, const po::variables_map& values) {
    AnalyzeOptions how;
    how.filter = wanted_filter(values, log, Base::everything);
    constexpr int64_t kMostHot = 10'000;
    how.hot = static_cast<size_t>(whole_number(values, "hot", 0, kMostHot));
    Progress progress("reading");
    how.progress = [&](uint64_t ops) { progress.update(ops, 2 * log.op_count()); };
    AnalyzedJob out{name, analyze_job(log, how), std::nullopt};
    progress.finish();
    if (values.count("no-what-if") != 0) {
        return out;
    }
    if (!out.job.part.empty()) {
        out.bounds.emplace();
        out.bounds->why_none = out.job.part + ", so that causes may be missing";
        return out;
    }
    Progress computing("finding the critical path");
    out.bounds = what_bounds(log, how.filter, [&](int done, int all) {
        computing.update(static_cast<uint64_t>(done), static_cast<uint64_t>(all));
    });
    computing.finish();
    return out;
}

int run(const po::variables_map& values) {
    const fs::path page = checked_page(values);
    const auto paths = values["log"].as<std::vector<std::string>>();
    const std::vector<std::string> names = short_names(paths);
    std::vector<AnalyzedJob> jobs;
    std::vector<NetworkUse> networks;
    Json logs = Json::array();
    for (size_t i = 0; i < paths.size(); ++i) {
        const LogReader log = open_log(paths[i], values);
        require_ops(log);
        jobs.push_back(analyzed(log, names[i], values));
        networks.push_back(network_use(log));
        if (json_wanted(values)) {
            logs.push_back(analysis_json(jobs.back(), log.tables()));
            logs.back()["network"] = network_table(networks.back()).json();
        }
    }
    if (!page.empty()) {
        job_page(jobs)->write(page);
    }
    if (json_wanted(values)) {
        put_json(values, {{"logs", std::move(logs)}});
    }
    if (json_alone(values) || page == "-") {
        return 0;
    }
    if (jobs.size() == 1) {
        print_analysis(std::cout, jobs.front());
        if (!networks.front().empty()) {
            std::cout << "\nNetwork: " << network_waits(networks.front()) << '\n';
            network_table(networks.front()).print(std::cout, 2);
        }
    } else {
        print_side_by_side(std::cout, jobs);
    }
    if (!page.empty() && !quiet()) {
        std::cerr << "page: " << escape_line(page.string()) << '\n';
    }
    return 0;
}

const Registration registration{{
    .name = "analyze",
    .group = Group::look,
    .summary = "show what a job did, and what it is bound by",
    .help =
        "Characterises a job from its log alone: what bounds it, throughput and calls over time, request sizes and "
        "latencies, order of accesses and re-use distance, hottest files, epochs and whether they are shuffled, page "
        "cache, skew, bursts, queue depth, and how far I/O hides behind accelerators. Begins with the three findings "
        "that matter most.\n\nThe critical path and the three what-ifs (infinitely fast storage, processors, "
        "accelerators) are computed on the causal graph, as `reprise predict` does. What the log does not hold is "
        "called not recorded.\n\nSeveral logs are shown side by side. All logs are analysed whole; --only and --not "
        "choose files.",
    .examples = {{"reprise analyze job.oplog", "on one screen"},
                 {"reprise analyze job.oplog --html job.html", "with charts, in a page of its own"},
                 {"reprise analyze job.oplog run.oplog -o both.html", "a recording and a run side by side"},
                 {"reprise analyze job.oplog --only dataset", "the data set only"},
                 {"reprise analyze job.oplog --json --no-what-if", "for scripts, the log only"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG", .least = 1, .most = -1}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::analyze_command
