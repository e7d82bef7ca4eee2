// SPDX-License-Identifier: MIT
// `reprise import`: turns other tools' recordings into an op log and reports what was read.
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/show_summary.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/import/importer.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/part_of_job.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"

namespace reprise::cli::import_command {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const Importer* importer : all_importers()) {
        out.emplace_back(importer->name);
    }
    return out;
}

std::string help() {
    std::string out =
        "Reads recordings of other tools, also packed as .gz or .zst, and detects their format by content. All inputs "
        "are files of one run and become one log; of a directory, the files in a known format are taken.\n\n";
    for (const Importer* importer : all_importers()) {
        out += std::string(importer->name) + ": " + std::string(importer->summary) + "\n\n";
    }
    return out +
           "Afterwards it prints what was imported, and a warning or note for everything the source did not record or "
           "that had to be assumed.";
}

void options(po::options_description& add) {
    add.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    add.add_options()("from", po::value<std::string>()->value_name("NAME"), "input format [default: detected]");
    add.add_options()("unit", po::value<std::string>()->value_name("UNIT"),
                      "time resolution to keep [default: the source's]");
    add.add_options()(
        "compute-span", po::value<std::vector<std::string>>()->value_name("NAME")->composing(),
        "application span during which the accelerator is busy: NAME or CATEGORY:NAME, with * and ?; may be repeated");
    add_role_option(add);
    add.add_options()("allow-empty", "accept a --role that matches no file");
    add.add_options()("all-spans", "keep every application span as a marker");
    add.add_options()("force,f", "overwrite the output if it exists");
    add_json_option(add, "print the summary as JSON");
}

struct Totals {
    uint64_t files = 0;  // named by an op
    int64_t begin = 0, end = 0;
};

Totals totals_of(const LogReader& log) {
    Totals totals;
    totals.files = log.tables().files.size() - 1;
    bool first = true;
    for (const BlockInfo& block : log.blocks()) {
        totals.begin = first ? block.begin : std::min(totals.begin, block.begin);
        totals.end = first ? block.end : std::max(totals.end, block.end);
        first = false;
    }
    return totals;
}

void report(const LogReader& log, std::string_view format, size_t inputs, const po::variables_map& values) {
    const Totals totals = totals_of(log);
    const Tables& tables = log.tables();
    const double bytes_per_op =
        log.op_count() ? static_cast<double>(log.file_bytes()) / static_cast<double>(log.op_count()) : 0;
    Table counters({{"severity", "severity"}, {"count", "count", true}, {"name", "name"}, {"meaning", "meaning"}});
    for (const Severity severity : {Severity::loss, Severity::warning, Severity::note}) {
        for (const Counter& counter : tables.counters) {
            if (counter.severity == severity && (json_wanted(values) || is_shown(counter))) {
                counters.row({severity_name(severity), count_cell(counter.value), counter.name, counter.meaning});
            }
        }
    }
    if (json_wanted(values)) {
        Json json;
        json["format"] = format;
        json["output"] = printable(log.path().native());
        json["inputs"] = inputs;
        json["processes"] = tables.processes.size() - 1;
        json["tasks"] = tables.tasks.size() - 1;
        json["files"] = totals.files;
        json["ops"] = log.op_count();
        json["span_ns"] = totals.end - totals.begin;
        json["bytes"] = log.file_bytes();
        json["bytes_per_op"] = bytes_per_op;
        json["counters"] = counters.json();
        put_json(values, json);
    }
    if (json_alone(values)) {
        return;
    }
    if (!quiet()) {
        std::cout << printable(log.path().native()) << ": " << counted(log.op_count(), "op") << " of "
                  << counted(tables.tasks.size() - 1, "task") << " in "
                  << counted(tables.processes.size() - 1, "process", "processes") << " over "
                  << format_duration(totals.end - totals.begin) << ", " << counted(totals.files, "file") << "; "
                  << format_bytes(log.file_bytes()) << ", " << number_cell(bytes_per_op, 2).text << " bytes/op (from "
                  << format << ")\n";
    }
    if (!counters.empty()) {
        counters.print(std::cout, 2);
    }
}

int run(const po::variables_map& values) {
    std::vector<fs::path> inputs;
    for (const auto& name : values["inputs"].as<std::vector<std::string>>()) {
        inputs.emplace_back(name);
    }
    const fs::path output = values["output"].as<std::string>();
    const std::vector<fs::path> files = importable_files(inputs);
    for (const fs::path& file : files) {
        check_read_too("import", values, file);  // of a directory
    }
    check_log_output(output, values.count("force") != 0);
    const Importer& importer =
        find_importer(files, values.count("from") ? values["from"].as<std::string>() : std::string());

    ImportOptions how;
    how.writer.derive = derive_queues;
    if (values.count("unit")) {
        how.time_unit_ns = values["unit"].as<std::string>() == "us" ? 1000 : 1;
    }
    if (values.count("compute-span")) {
        how.compute_spans = values["compute-span"].as<std::vector<std::string>>();
    }
    how.roles = wanted_roles(values, false);
    if (values.count("allow-empty") == 0) {
        if (importer.profile && !how.roles.empty()) {
            throw usage_error("--role matches no file: " + std::string(importer.name) + " is a profile, without files",
                              "leave out --role");
        }
        how.roles.require_matches();
    }
    how.all_spans = values.count("all-spans") != 0;
    uint64_t total = 0;
    for (const auto& file : files) {
        total += fs::file_size(file);
    }
    Progress progress("importing", ProgressUnit::bytes);
    how.progress = [&](uint64_t done) { progress.update(done, total); };
    importer.import(files, output, how);
    progress.finish();

    const LogReader log(output);
    if (log.op_count() == 0) {
        std::error_code ignored;
        fs::remove(output, ignored);
        throw bad_input(files.front().string(), "has no operation that could be replayed: no log was written",
                        "record the job again, and look whether it ran");
    }
    const PartOfJob part = part_of_job(log.tables());
    if (!part.why().empty()) {
        std::cerr << "INCOMPLETE: " << part.sentence() << ". replay takes such a log with --allow-loss only.\n";
    }
    report(log, importer.name, files.size(), values);
    return static_cast<int>(part.why().empty() ? ExitCode::done : ExitCode::check_failed);
}

const Registration registration{{
    .name = "import",
    .group = Group::record,
    .summary = "turn another tool's recording into an op log",
    .help = help(),
    .examples = {{"reprise import job.strace -o job.oplog", "a log of strace -f -ttt -T"},
                 {"reprise import rank*.pfw.gz -o job.oplog", "all ranks of a DFTracer run"},
                 {"reprise import job.dxt.txt -o job.oplog", "what darshan-dxt-parser printed"},
                 {"reprise import job.strace -o job.oplog --role /data/shards=dataset", "with the role of some files"},
                 {"reprise import t.pfw -o t.oplog --compute-span 'train-*-prop'", "with spans of accelerator work"}},
    .options = options,
    .positionals = {{"inputs", "IN", 1, -1}},
    .choices = {{"from", names()}, {"unit", {"us", "ns"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::import_command
