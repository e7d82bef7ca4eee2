// SPDX-License-Identifier: MIT
// `reprise export`: a log in other tools' formats.
#include <iostream>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/named_files.h"
#include "cli/progress.h"
#include "cli/show_summary.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/export/exporter.h"
#include "formats/oplog/part_of_job.h"
#include "formats/support/error.h"

namespace reprise::cli::export_command {
namespace {

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const Exporter* exporter : all_exporters()) {
        out.emplace_back(exporter->name);
    }
    return out;
}

std::string help() {
    std::string out =
        "Writes the log for other tools. What the target format cannot hold is counted and reported. fio leaves out "
        "program and system files unless --only says otherwise, as prepare does.\n\n";
    for (const Exporter* exporter : all_exporters()) {
        out += std::string(exporter->name) + ": " + std::string(exporter->summary) + "\n\n";
    }
    return out + "Paths in the fio logs are relative to the directory fio is started in; see the job file.";
}

void options(po::options_description& options) {
    options.add_options()("to", po::value<std::string>()->required()->value_name("FORMAT"), "format");
    options.add_options()("output,o", po::value<std::string>()->required()->value_name("OUT"),
                          "output file; - for standard output, OUT/ for a directory");
    options.add_options()("force,f", "overwrite files that exist");
    add_json_option(options, "print the report as JSON");
    add_task_option(options);
    add_filter_options(options);
    add_recover_option(options);
}

/// " to job.fio and 2 iologs"; empty for standard output.
std::string where(const ExportReport& report, const Exporter& exporter) {
    if (report.files.empty() || report.files.back() == "-") {
        return {};
    }
    const size_t parts = report.files.size() - 1;
    return " to " + escape_line(report.files.back().native()) +
           (parts == 0 ? std::string() : " and " + counted(parts, exporter.part));
}

/// `by_default`: nothing else decides what is excluded.
void print_report(const ExportReport& report, const Exporter& exporter, bool by_default) {
    if (!quiet()) {
        std::cerr << counted(report.ops, "op") << " exported" << where(report, exporter);
        if (report.left_out) {
            std::cerr << ", " << format_count(report.left_out) << " excluded"
                      << (by_default
                              ? ": program and system files, which prepare leaves out too (--only all keeps them)"
                              : " by the filter");
        }
        std::cerr << '\n';
        for (const std::string& note : report.notes) {
            std::cerr << "note: " << note << ".\n";
        }
    }
    Table table({{"approximation", ""}, {"count", "", true}, {"meaning", ""}});
    for (const Counter& counter : report.counters) {
        if (is_shown(counter)) {
            table.row({counter.name, count_cell(counter.value), counter.meaning});
        }
    }
    if (!table.empty()) {
        table.print(std::cerr);
    }
}

Json report_json(const ExportReport& report) {
    Json counters = Json::array(), files = Json::array();
    for (const Counter& counter : report.counters) {
        counters.push_back({{"name", counter.name},
                            {"severity", severity_name(counter.severity)},
                            {"value", counter.value},
                            {"meaning", counter.meaning}});
    }
    for (const auto& file : report.files) {
        files.push_back(printable(file.string()));
    }
    return {{"ops", report.ops},
            {"left_out", report.left_out},
            {"files", std::move(files)},
            {"notes", report.notes},
            {"counters", std::move(counters)}};
}

int run(const po::variables_map& values) {
    const std::string output = values["output"].as<std::string>();
    if (json_alone(values) && output == "-") {
        throw usage_error("export: --json and -o - both use standard output", "write one to a file");
    }
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    ExportOptions options;
    const Exporter& exporter = find_exporter(values["to"].as<std::string>());
    options.filter = wanted_filter(values, log, exporter.performed ? Base::job : Base::everything);
    options.tasks = wanted_tasks(log, values);
    options.overwrite = values.count("force") != 0;
    options.check = [&](const std::filesystem::path& file) {
        if (file != output) {
            check_written_too("export", values, file, "-o " + escape_line(output));
        }
    };
    Progress progress("exporting");
    options.progress = [&](uint64_t ops) {
        if ((ops & 1023) == 0) {
            progress.update(ops, log.op_count());
        }
    };
    ExportReport report = exporter.write(log, output, options);
    progress.finish();
    if (const std::string part = part_of_job(log.tables()).why(); !part.empty()) {
        report.notes.insert(report.notes.begin(), part + ": what is missing is not exported");
    }
    if (json_wanted(values)) {
        put_json(values, report_json(report));
    }
    if (!json_alone(values)) {
        print_report(report, exporter, exporter.performed && values.count("only") == 0 && values.count("not") == 0);
    }
    return 0;
}

const Registration registration{{
    .name = "export",
    .group = Group::look,
    .summary = "write a log as a Perfetto timeline, fio iologs or CSV",
    .help = help(),
    .examples = {{"reprise export job.oplog --to perfetto -o job.json.gz", "open it in ui.perfetto.dev"},
                 {"reprise export job.oplog --to fio --only dataset -o fio/", "one iolog per task and a job file"},
                 {"reprise export job.oplog --to csv -o job.csv", "one record per op"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .choices = {{"to", names()}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::export_command
