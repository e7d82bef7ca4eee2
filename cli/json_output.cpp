// SPDX-License-Identifier: MIT
#include "cli/json_output.h"

#include <filesystem>

#include "cli/outputs.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardOutput = "-";

/// Where --json writes; empty: not asked for.
std::string target_of(const po::variables_map& values) {
    return values.count("json") == 0 ? std::string() : values["json"].as<std::string>();
}

}  // namespace

void add_json_option(po::options_description& options, const char* what) {
    options.add_options()(
        "json", po::value<std::string>()->implicit_value(kStandardOutput, "")->value_name("FILE"),
        (std::string(what) + " and nothing else; with =FILE: write it there, beside the usual output").c_str());
}

std::vector<std::string> with_json_target(std::vector<std::string> arguments) {
    for (std::string& word : arguments) {
        if (word == "--") {
            break;
        }
        if (word == "--json") {
            word += std::string("=") + kStandardOutput;
        }
    }
    return arguments;
}

void check_json_option(const Command& command, const po::variables_map& values) {
    const std::string target = target_of(values);
    if (values.count("json") != 0 && target.empty()) {
        throw usage_error(command.name + ": --json= names no file", "use --json=FILE, or --json for standard output");
    }
    if (target.empty() || target == kStandardOutput) {
        return;
    }
    const std::string shown = "--json=" + escape_line(target);
    std::error_code ignored;
    if (fs::is_directory(target, ignored)) {
        throw usage_error(command.name + ": " + shown + " is a directory", "name a file");
    }
    check_directory_of(target);
    check_outside_root(target, shown, values);
    // A pipe or device is written to as it is.
    if (values.count("force") == 0 && fs::is_regular_file(target, ignored)) {
        throw usage_error(command.name + ": " + escape_line(target) + " exists",
                          "use --force to overwrite it, or choose another file");
    }
}

bool json_wanted(const po::variables_map& values) { return !target_of(values).empty(); }

bool json_alone(const po::variables_map& values) { return target_of(values) == kStandardOutput; }

void put_json(const po::variables_map& values, const Json& json) { write_json(target_of(values), json); }

}  // namespace reprise::cli
