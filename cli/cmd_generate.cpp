// SPDX-License-Identifier: MIT
// `reprise generate`: an op log from a job file.
#include <charconv>
#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"
#include "formats/support/text_output.h"
#include "generate/diagram.h"
#include "generate/dlio.h"
#include "generate/generate.h"
#include "generate/job_text.h"
#include "replay/plan/stored_queues.h"

namespace reprise::cli::generate_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->value_name("FILE"), "op log to write");
    options.add_options()("force,f", "overwrite the output if it exists");
    options.add_options()("gpus", po::value<uint64_t>()->value_name("N"),
                          "accelerators of a DLIO workload, one MPI rank each (default 1)");
    options.add_options()("accelerator", po::value<std::string>()->value_name("NAME"),
                          "of a job file with figures of several, in place of its accelerator=");
    options.add_options()("shrink", po::value<double>()->value_name("K"),
                          "data set and checkpoints K times smaller; steps take as long");
    options.add_options()("show", "print the job with all defaults, as a job file, and stop");
    options.add_options()("diagram", po::value<std::string>()->value_name("FILE"),
                          "draw the job's pipeline into an SVG file");
    options.add_options()("words", "print all words of job files and stop");
    options.add_options()("markdown", "with --words: as a table in Markdown");
    add_json_option(options);
}

const char* kind_of(WordValue value) {
    switch (value) {
        case WordValue::text: return "text";
        case WordValue::yes: return "0 or 1";
        case WordValue::count: return "number";
        case WordValue::bytes: return "size";
        case WordValue::range: return "size or range";
        case WordValue::share: return "percent";
        case WordValue::duration: return "time, bare: s";
        case WordValue::micros: return "time, bare: us";
        case WordValue::sizes: return "size, drawn";
        case WordValue::times: return "time, drawn; bare: s";
        case WordValue::tokens: return "number, drawn";
        case WordValue::rate: return "number";
        case WordValue::choice: return "one of";
    }
    return "";
}

std::string place_of(WordPlace place) {
    constexpr std::string_view kIntro = "sections with ";
    return place == WordPlace::both ? "any" : place_text(place).substr(kIntro.size());
}

int show_words(const po::variables_map& values) {
    if (json_wanted(values)) {
        nlohmann::json rows = nlohmann::json::array();
        for (const WordInfo& word : all_words()) {
            rows.push_back({{"word", word.name},
                            {"sections", place_names(word.place)},
                            {"value", kind_of(word.value)},
                            {"default", word.otherwise},
                            {"meaning", word.meaning}});
        }
        put_json(values, {{"words", rows}});
        if (json_alone(values)) {
            return 0;
        }
    }
    if (values.count("markdown") != 0) {
        std::cout << "# Words of job files\n\nWritten by `reprise generate --words --markdown`. [jobs.md](jobs.md) "
                     "explains them.\n\n"
                     "| word | in sections with | value | default | |\n|---|---|---|---|---|\n";
        for (const WordInfo& word : all_words()) {
            const std::string otherwise = word.otherwise.empty() ? "" : "`" + std::string(word.otherwise) + "`";
            std::cout << "| `" << word.name << "=` | " << place_of(word.place) << " | " << kind_of(word.value) << " | "
                      << otherwise << " | " << word.meaning << " |\n";
        }
        return 0;
    }
    for (const WordInfo& word : all_words()) {
        std::cout << word.name << "=  (" << (word.place == WordPlace::both ? "" : place_of(word.place) + "; ")
                  << kind_of(word.value);
        if (!word.otherwise.empty()) {
            std::cout << "; default " << word.otherwise;
        }
        std::cout << ")\n    " << word.meaning << '\n';
    }
    return 0;
}

nlohmann::json to_json(const GenerateResult& result, const Job& job, const std::string& output) {
    nlohmann::json sections = nlohmann::json::array();
    for (const GeneratedSection& each : result.sections) {
        sections.push_back({{"name", each.name},
                            {"files", each.files},
                            {"file_bytes", each.file_bytes},
                            {"steps", each.steps},
                            {"requests", each.requests},
                            {"begin_ns", each.begin},
                            {"end_ns", each.end}});
    }
    std::vector<std::string> notes = job.notes;
    for (std::string& note : notes_of(result)) {
        notes.push_back(std::move(note));
    }
    return {{"output", printable(output)},
            {"ops", result.ops},
            {"tasks", result.tasks},
            {"bytes_read", result.read_bytes},
            {"bytes_touched", result.touched_bytes},
            {"bytes_written", result.written_bytes},
            {"sections", sections},
            {"notes", notes}};
}

void draw(const Job& job, const po::variables_map& values) {
    const std::string file = values["diagram"].as<std::string>();
    check_output(file, values.count("force") != 0);
    TextOutput out(file);
    out.put(diagram_of(job));
    out.finish();
}

Job job_of(const std::string& file, const po::variables_map& values) {
    const bool given = values.count("gpus") != 0;
    if (!is_yaml_name(file)) {
        if (given) {
            throw usage_error("generate: --gpus is of DLIO's workloads (.yaml)", "in a job file, write gpus=N");
        }
        const std::string accelerator = values.count("accelerator") != 0 ? values["accelerator"].as<std::string>() : "";
        if (accelerator.empty() && values.count("accelerator") != 0) {
            throw usage_error("generate: --accelerator has no name", "e.g. --accelerator A100");
        }
        return read_job(file, accelerator);
    }
    if (values.count("accelerator") != 0) {
        throw usage_error("generate: --accelerator is of job files (.ini)",
                          "a workload of DLIO says how long a step takes: computation_time");
    }
    const uint64_t gpus = given ? values["gpus"].as<uint64_t>() : 1;
    constexpr uint64_t kMostGpus = 1'000'000;
    if (gpus < 1 || gpus > kMostGpus) {
        throw usage_error("generate: --gpus must be from 1 to 1,000,000", "e.g. --gpus 8");
    }
    return read_dlio(file, gpus);
}

/// Files of arrivals, which the job file names.
void check_files_of(const Job& job, const po::variables_map& values) {
    const auto check = [&](const Arrivals& arrivals) {
        if (!arrivals.file.empty()) {
            check_read_too("generate", values, arrivals.file);
        }
    };
    for (const JobSection& section : job.sections) {
        if (const auto* io = std::get_if<IoJob>(&section.what); io != nullptr && io->arrivals) {
            check(*io->arrivals);
        }
        if (const auto* serving = std::get_if<KvCacheJob>(&section.what)) {
            check(serving->arrivals);
        }
    }
}

/// Of an option that prints and stops.
void refuse_outputs(const po::variables_map& values, const std::string& option) {
    for (const char* output : {"output", "diagram"}) {
        if (values.count(output) != 0) {
            throw usage_error("generate: --" + option + " prints and stops: nothing would be written to " +
                                  escape_line(values[output].as<std::string>()),
                              "leave out one of --" + option + " and --" + output);
        }
    }
}

int run(const po::variables_map& values) {
    if (values.count("words") != 0) {
        refuse_outputs(values, "words");
        return show_words(values);
    }
    if (values.count("job") == 0) {
        throw usage_error("generate: no job file", "e.g. reprise generate job.ini -o job.oplog");
    }
    if (values.count("show") != 0) {
        refuse_outputs(values, "show");
    }
    const std::string file = values["job"].as<std::string>();
    Job job = job_of(file, values);
    check_files_of(job, values);
    if (values.count("shrink") != 0) {
        const double factor = values["shrink"].as<double>();
        if (!(factor >= 1) || !(factor < 1e12)) {
            throw usage_error("generate: --shrink must be 1 or more", "e.g. --shrink 1000");
        }
        shrink(job, factor);
    }
    if (values.count("show") != 0) {
        for (const std::string& note : job.notes) {
            std::cout << "; " << note << '\n';
        }
        std::cout << show_job(job);
        return 0;
    }
    const bool wants_log = values.count("output") != 0;
    if (wants_log) {
        check_log_output(values["output"].as<std::string>(), values.count("force") != 0);
    }
    if (values.count("diagram") != 0) {
        draw(job, values);
        if (!wants_log) {
            return 0;
        }
    }
    if (!wants_log) {
        throw usage_error("generate: -o is required", "e.g. reprise generate " + escape_line(file) + " -o job.oplog");
    }
    const std::string output = values["output"].as<std::string>();
    GenerateOptions how;
    how.writer.derive = derive_queues;
    how.writer.level = 3;  // offsets that are drawn do not become smaller with more work
    how.command = "generate " + file;
    how.tool = "reprise " + std::string(tool_version());
    Progress line("generating", ProgressUnit::count);
    how.progress = [&](double share) { line.update(static_cast<uint64_t>(share * 1000), 1000, ""); };
    const GenerateResult result = generate(job, output, how);
    line.finish();
    if (json_wanted(values)) {
        put_json(values, to_json(result, job, output));
    }
    if (json_alone(values) || quiet()) {
        return 0;
    }
    std::cout << printable(output) << ": " << counted(result.ops, "op") << " of " << counted(result.tasks, "task")
              << ", reads " << format_bytes(static_cast<uint64_t>(result.read_bytes));
    if (result.touched_bytes != 0) {
        std::cout << ", touches " << format_bytes(static_cast<uint64_t>(result.touched_bytes)) << " of mapped files";
    }
    std::cout << ", writes " << format_bytes(static_cast<uint64_t>(result.written_bytes)) << '\n';
    for (const GeneratedSection& each : result.sections) {
        std::cout << "  [" << each.name << "]  " << counted(each.files, "file") << ", "
                  << format_bytes(static_cast<uint64_t>(each.file_bytes));
        if (each.steps != 0) {
            std::cout << "; " << counted(each.steps, "step");
        }
        if (each.requests != 0) {
            std::cout << "; " << counted(each.requests, "request") << " in an open loop";
        }
        std::cout << "; " << format_duration(each.end - each.begin) << " if storage were as fast as memory\n";
    }
    for (const auto& notes : {job.notes, notes_of(result)}) {
        for (const std::string& note : notes) {
            std::cout << "note: " << note << ".\n";
        }
    }
    return 0;
}

const Registration registration{{
    .name = "generate",
    .group = Group::record,
    .summary = "an op log from a job file: a job without a recording",
    .help = "Writes the op log of a job that is described in an INI file. Sections with rw= are plain reads and writes "
            "in fio's words; sections with format= are training jobs: a data set, loaders that keep batches ahead, "
            "accelerators, checkpoints; sections with workload= serve with a key-value cache, load a model, or make a "
            "data set. prepare, replay, sweep, predict and analyze take the log as any other.\n\n"
            "A file whose name ends in .yaml or .yml is a workload of DLIO or MLPerf Storage; keys that have no effect "
            "are named.\n\n"
            "docs/jobs.md explains the words; --words lists them. examples/jobs holds job files of known models.",
    .examples = {{"reprise generate job.ini -o job.oplog", "the job's log"},
                 {"reprise generate examples/jobs/unet3d.ini --shrink 1000 -o u.oplog", "with a small data set"},
                 {"reprise generate examples/jobs/unet3d.ini --accelerator A100 -o u.oplog", "with another's steps"},
                 {"reprise generate unet3d_h100.yaml --gpus 8 -o u.oplog", "a workload of DLIO"},
                 {"reprise generate job.ini --show", "the job with all defaults"}},
    .options = options,
    .positionals = {{.name = "job", .label = "JOB", .least = 0}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::generate_command
