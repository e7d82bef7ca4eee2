// SPDX-License-Identifier: MIT
#include "cli/compare_runs.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/show_regression.h"
#include "cli/show_verdict.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli {
namespace {

using Words = std::vector<std::string>;

/// Reads the logs of a side, each only once.
class Sides {
public:
    explicit Sides(const po::variables_map& values) : values_(values) {
        const auto &a = values["log"].as<Words>(), &b = values["against"].as<Words>();
        total_ = a.size() + b.size();
        sides_.a = read(a);
        sides_.b = read(b);
        progress_.finish();
    }
    const RegressionSides& sides() const { return sides_; }

private:
    std::vector<RunRecord> read(const Words& logs) {
        std::vector<RunRecord> out;
        for (const std::string& name : logs) {
            const LogReader log = open_log(name, values_);
            if (log.header().source == "predict") {
                throw usage_error(printable(name) + " is a prediction, not a run", "give runs, or recordings");
            }
            const std::string print = log_fingerprint(log) + std::to_string(log.file_bytes());
            for (size_t i = 0; i < prints_.size(); ++i) {
                if (prints_[i] == print) {
                    throw usage_error(printable(name) + " is the same log as " + printable(names_[i]),
                                      "give each run once");
                }
            }
            prints_.push_back(print);
            names_.push_back(name);
            out.push_back(run_record(log));
            progress_.update(names_.size(), total_, printable(name));
        }
        return out;
    }

    const po::variables_map& values_;
    Progress progress_{"reading"};
    size_t total_ = 0;
    Words prints_, names_;
    RegressionSides sides_;
};

/// Where the runs of a side found other things in memory, which changes their times more than most storage does.
Words cache_warnings(const RegressionSides& sides) {
    constexpr double kMixed = 0.5;
    Words out;
    for (const auto& [name, runs] : {std::pair("A", &sides.a), std::pair("B", &sides.b)}) {
        const std::vector<double> shares = device_shares(*runs);
        if (shares.empty()) {
            continue;
        }
        const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
        if (*most - *least > kMixed) {
            out.push_back("warning: cold and warm runs are mixed in " + std::string(name) +
                          ": the device served from " + whole_percent(*least) + " to " + whole_percent(*most) +
                          " of the bytes read");
        }
    }
    return out;
}

}  // namespace

int compare_runs(const po::variables_map& values) {
    for (const char* const option : {"tolerance"}) {
        if (values.count(option) != 0) {
            throw usage_error("--" + std::string(option) + " is of a run and its recording",
                              "with --against use --threshold METRIC=SHARE");
        }
    }
    const Thresholds thresholds = wanted_thresholds(values);
    check_report_files(values);
    const Sides sides(values);
    const Regression regression = regression_of(sides.sides(), thresholds, values.count("exclude-doubtful") != 0);
    const Words warnings = cache_warnings(sides.sides());
    if (json_wanted(values)) {
        Json out = regression_json(regression);
        out["warnings"] = warnings;
        Json runs = Json::object();
        for (const auto& [name, side] : {std::pair("a", &sides.sides().a), std::pair("b", &sides.sides().b)}) {
            runs[name] = Json::array();
            for (const RunRecord& run : *side) {
                runs[name].push_back(to_json(run));
            }
        }
        out["runs"] = std::move(runs);
        put_json(values, out);
    }
    Regression reported = regression;
    reported.notes.insert(reported.notes.begin(), warnings.begin(), warnings.end());
    write_reports(values, "reprise compare", {{"compare", {}, {std::move(reported)}}});
    if (!json_alone(values)) {
        for (const std::string& warning : warnings) {
            for (const std::string& line : wrapped("", warning)) {
                std::cout << line << '\n';
            }
        }
        print_regression(std::cout, regression);
    }
    return static_cast<int>(regression.passed() ? ExitCode::done : ExitCode::check_failed);
}

}  // namespace reprise::cli
