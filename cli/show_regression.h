// SPDX-License-Identifier: MIT
// What came of comparing runs: on the screen, as JSON, as JUnit XML and as Markdown.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/regression_runs.h"
#include "cli/table.h"

namespace reprise::cli {

/// Something that was checked besides metrics: the results of calls, the tree, the content of files.
struct CheckedThing {
    std::string name;
    std::vector<std::string> failures;  // sentences; none: it passed
    std::string skipped;                // why it was not checked; empty: it was
    std::string note = {};              // what was compared
};

/// One case of a suite: a comparison, or only checks.
struct RegressionCase {
    std::string name;
    std::vector<CheckedThing> checks;
    std::vector<Regression> comparisons;
};

/// Adds --threshold, --exclude-doubtful, --junit, --markdown and --html.
void add_regression_options(po::options_description& options);
/// Throws Error (usage, bad_input) where a threshold is none.
Thresholds wanted_thresholds(const po::variables_map& values);
/// Throws Error where --junit, --markdown or --html name a file that cannot be made, or that exists, without --force.
void check_report_files(const po::variables_map& values);
/// Writes what these ask for.
void write_reports(const po::variables_map& values, const std::string& title, const std::vector<RegressionCase>& cases);

/// Sentences, notes, the table of metrics, and where the time went.
void print_regression(std::ostream& out, const Regression& regression);
Json regression_json(const Regression& regression);

std::string junit_xml(const std::string& title, const std::vector<RegressionCase>& cases);
std::string markdown_text(const std::string& title, const std::vector<RegressionCase>& cases);

}  // namespace reprise::cli
