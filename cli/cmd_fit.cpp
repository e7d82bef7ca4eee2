// SPDX-License-Identifier: MIT
// `reprise fit`: a job file from a recorded job.
#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/show_verdict.h"
#include "cli/table.h"
#include "fit/fit.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"
#include "formats/support/text_output.h"

namespace reprise::cli::fit_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->value_name("FILE"), "job file to write");
    options.add_options()("force,f", "overwrite the output if it exists");
    add_json_option(options, "print the parameters as JSON");
    add_recover_option(options);
}

/// "±1.2 %" of the value, or of the mean and the deviation.
Cell error_cell(const FittedWord& word) {
    const auto percent = [](double share) {
        char text[32];
        std::snprintf(text, sizeof text, "%.2g %%", 100 * share);
        return std::string(text);
    };
    Json value = {{"mean", word.mean_error}, {"deviation", word.deviation_error}};
    if (word.guessed) {
        return {"guessed", std::move(value)};
    }
    if (word.mean_error == 0 && word.deviation_error == 0) {
        return {"exact", std::move(value)};
    }
    std::string text = percent(word.mean_error);
    if (word.deviation_error > 0) {
        text += ", " + percent(word.deviation_error);
    }
    return {text, std::move(value)};
}

Table words_table(const FittedJob& job) {
    Table table(
        {{"parameter", "word"}, {"value", "value"}, {"±", "error"}, {"KS", "ks", true}, {"seen by", "evidence"}});
    for (const FittedWord& word : job.words) {
        table.row({word.word, word.value, error_cell(word), word.ks < 0 ? Cell("", nullptr) : number_cell(word.ks, 3),
                   word.evidence});
    }
    return table;
}

Table unseen_table(const FittedJob& job) {
    Table table({{"parameter", "word"}, {"why", "why"}});
    for (const UnseenWord& word : job.unseen) {
        table.row({word.word, word.why});
    }
    return table;
}

void print(const FittedJob& job) {
    if (!job.differs.empty()) {
        std::cout << "NOT THE RECORDED JOB: " << job.differs << '\n';
    }
    std::cout << "[" << printable(job.name) << "]  data in " << printable(job.directory) << '\n';
    words_table(job).print(std::cout, 2, kSummaryColumns);
    std::cout << "\nCould not be seen\n";
    unseen_table(job).print(std::cout, 2, kSummaryColumns);
    for (const std::string& note : job.notes) {
        std::cout << "note: " << printable(note) << ".\n";
    }
}

int run(const po::variables_map& values) {
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    const bool writes = values.count("output") != 0;
    const std::string output = writes ? values["output"].as<std::string>() : "";
    if (writes) {
        check_output(output, values.count("force") != 0);
    }
    const FittedJob job = fit_job(log);
    if (writes) {
        TextOutput out(output);
        out.put(job.text(log.path().filename().string()));
        out.finish();
    }
    if (json_wanted(values)) {
        put_json(values, {{"log", printable(log.path().string())},
                          {"name", job.name},
                          {"directory", printable(job.directory)},
                          {"words", words_table(job).json()},
                          {"unseen", unseen_table(job).json()},
                          {"notes", job.notes},
                          {"differs", job.differs.empty() ? Json(nullptr) : Json(job.differs)},
                          {"output", writes ? Json(printable(output)) : Json(nullptr)}});
    }
    if (!json_alone(values) && output != "-" && !(quiet() && writes)) {
        print(job);
    } else if (!job.differs.empty()) {
        std::cerr << "reprise: " << printable(log.path().string()) << ": NOT THE RECORDED JOB: " << job.differs << '\n';
    }
    return job.differs.empty() ? 0 : 1;
}

const Registration registration{{
    .name = "fit",
    .group = Group::record,
    .summary = "a job file from a recorded training job",
    .help =
        "Estimates the job that a log is of: its data set, loader, order, accelerators and checkpoints, in the words "
        "of "
        "job files (docs/job-words.md). `generate` makes a log of the file again; then its words may be changed: "
        "another batch, more workers, a data set of another size.\n\n"
        "Prints how each parameter is known and how far it may be off (95 % interval, of the mean and of the "
        "deviation; KS: the greatest distance between the distribution and what was recorded), and what the log cannot "
        "show. Such parameters are guesses; the file says so. A log without a training loop is refused. Where the "
        "fitted "
        "job would read another number of samples or bytes than the recorded one, by more than 5 %, the first line "
        "says so and the "
        "exit code is 1. See docs/fit.md.",
    .examples = {{"reprise fit job.oplog", "what the job is like"},
                 {"reprise fit job.oplog -o job.ini", "as a job file"},
                 {"reprise generate job.ini -o again.oplog", "and the log of that"},
                 {"reprise fit job.oplog --json", "for scripts"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::fit_command
