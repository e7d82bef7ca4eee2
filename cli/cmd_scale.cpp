// SPDX-License-Identifier: MIT
// `reprise scale`: the log of a job on a larger data set.
#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/outputs.h"
#include "cli/scale_options.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"
#include "transform/scale.h"

namespace reprise::cli::scale_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    options.add_options()("force,f", "overwrite the output if it exists");
    add_scale_factor_options(options);
    add_scale_detail_options(options);
    add_json_option(options);
    add_recover_option(options);
}

/// Of the epoch that misses most; empty: all are about as long as asked for.
std::string not_as_asked(const ScaleResult& result) {
    const size_t epoch = result.missed_epoch();
    if (epoch == result.epochs.size()) {
        return {};
    }
    return "NOT AS ASKED: epoch " + std::to_string(epoch + 1) + " has " + counted(result.epochs[epoch], "read") +
           " of samples where " + format_count(result.asked[epoch]) + (result.asked[epoch] == 1 ? " was" : " were") +
           " asked: the recording has too few steps alike (record more of each epoch)";
}

Json epochs_json(const ScaleResult& result) {
    Json epochs = Json::array();
    for (size_t i = 0; i < result.epochs.size(); ++i) {
        epochs.push_back({{"asked", result.asked[i]}, {"made", result.epochs[i]}});
    }
    return epochs;
}

int run(const po::variables_map& values) {
    const ScaleOptions how = scale_options(values);
    const std::string output = values["output"].as<std::string>();
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    if (!how.changes_anything()) {
        if (!values["scale"].defaulted() || values.count("epochs") != 0) {
            throw usage_error(
                "scale: the log would be the same: --scale is 1, and no other number of epochs is asked for",
                "e.g. --scale 2");
        }
        throw usage_error("scale: --scale or --epochs is required", "e.g. --scale 2");
    }
    check_log_output(output, values.count("force") != 0);
    WriterOptions writer;
    writer.derive = derive_queues;
    const ScaleResult result = scale_log(log, output, how, writer);
    const std::string missed = not_as_asked(result);
    const auto code = static_cast<int>(missed.empty() ? ExitCode::done : ExitCode::check_failed);
    if (json_wanted(values)) {
        put_json(values, {{"output", printable(output)},
                          {"ops", result.ops},
                          {"files_added", result.files_added},
                          {"files_removed", result.files_removed},
                          {"bytes_before", result.bytes_before},
                          {"bytes", result.bytes_after},
                          {"epochs", epochs_json(result)},
                          {"as_asked", missed.empty()},
                          {"edges_dropped", result.edges_dropped},
                          {"ops_dropped", result.ops_dropped},
                          {"notes", result.notes}});
    }
    if (json_alone(values) || quiet()) {
        if (!missed.empty()) {
            std::cerr << "reprise: " << printable(output) << ": " << missed << '\n';
        }
        return code;
    }
    if (!missed.empty()) {
        std::cout << missed << '\n';
    }
    std::cout << printable(output) << ": " << counted(result.ops, "op") << ", data set "
              << format_bytes(result.bytes_before) << " -> " << format_bytes(result.bytes_after) << " (";
    std::cout << counted(result.files_added, "file") << " more";
    if (result.files_removed != 0) {
        std::cout << ", " << format_count(result.files_removed) << " fewer";
    }
    std::cout << "), reads of samples in each epoch: ";
    for (size_t i = 0; i < result.epochs.size(); ++i) {
        std::cout << (i == 0 ? "" : ", ") << format_count(result.epochs[i]);
    }
    std::cout << '\n';
    for (const std::string& note : result.notes) {
        std::cout << "  note: " << note << '\n';
    }
    return code;
}

const Registration registration{{
    .name = "scale",
    .group = Group::record,
    .summary = "the log of a job on a larger data set, or of more epochs",
    .help = "Writes the log of the recorded job as it would be on a data set K times as large: more files where a "
            "sample is a file, longer ones where samples lie in shards, tables or token files. Steps grow with the "
            "samples, each of which is read once an epoch in the recorded order or a new permutation; what does not "
            "depend on the set stays. `prepare` and `replay` take the same options. `info --scaling` shows how the "
            "recording's files are understood.\n\nWhere an epoch has over 10 % too few or too many reads of samples, "
            "the log is written, the first line says so and the exit code is 1. Refused where the recording's reads do "
            "not look like epochs.",
    .examples = {{"reprise scale job.oplog --scale 2 -o twice.oplog", "on twice the data"},
                 {"reprise scale job.oplog --scale 0.5 --epochs 10 -o short.oplog", "half the data, ten epochs"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::scale_command
