// SPDX-License-Identifier: MIT
// `reprise ops`: the op table, and that of the counters.
#include <iostream>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/table.h"
#include "formats/oplog/op.h"
#include "formats/oplog/syscalls.h"
#include "formats/support/counters.h"
#include "metrics/metrics.h"

namespace reprise::cli::ops_command {
namespace {

std::string fields_of(const OpInfo& row) {
    std::string out;
    for (const FieldInfo& field : all_fields()) {
        if (row.has(field.field)) {
            out += (out.empty() ? "" : " ") + std::string(field.name);
        }
    }
    return out;
}

std::string traits_of(const OpInfo& row) {
    std::string out;
    for (const TraitInfo& trait : all_traits()) {
        if (row.is(trait.trait)) {
            out += (out.empty() ? "" : " ") + std::string(trait.name);
        }
    }
    return out;
}

// Cells of a Markdown table cannot hold a bare "|".
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

void print_markdown(std::ostream& out) {
    out << "# The op table\n\n"
           "Made by `reprise ops --markdown` from `formats/oplog/ops.def` and `formats/oplog/syscalls.def`; do not "
           "edit.\n\n"
           "Every op has `begin` and `duration` in nanoseconds and a `result` (the call's, or -errno), and the fields "
           "of its row.\n\n"
           "| id | op | from | fields | traits | meaning |\n|---:|---|---|---|---|---|\n";
    for (const OpInfo& row : all_ops()) {
        out << "| " << static_cast<unsigned>(row.kind) << " | `" << row.name << "` | " << cell(calls_of(row.kind))
            << " | " << fields_of(row) << " | " << traits_of(row) << " | " << cell(row.meaning) << " |\n";
    }
    out << "\n## Fields\n\n| field | meaning |\n|---|---|\n";
    for (const FieldInfo& field : all_fields()) {
        out << "| `" << field.name << "` | " << cell(field.meaning) << " |\n";
    }
    out << "\n## Traits\n\n| trait | meaning |\n|---|---|\n";
    for (const TraitInfo& trait : all_traits()) {
        out << "| `" << trait.name << "` | " << cell(trait.meaning) << " |\n";
    }
}

void print_table(std::ostream& out) {
    Table table({{"id", "", true}, {"op", ""}, {"from", ""}, {"fields", ""}, {"meaning", ""}});
    for (const OpInfo& row : all_ops()) {
        table.row({std::to_string(static_cast<unsigned>(row.kind)), row.name, calls_of(row.kind), fields_of(row),
                   row.meaning});
    }
    table.print(out);
}

Json words(const std::string& text) {
    Json out = Json::array();
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

Json ops_json() {
    Json ops = Json::array();
    for (const OpInfo& row : all_ops()) {
        ops.push_back({{"id", static_cast<unsigned>(row.kind)},
                       {"op", row.name},
                       {"calls", words(calls_of(row.kind))},
                       {"fields", words(fields_of(row))},
                       {"traits", words(traits_of(row))},
                       {"meaning", row.meaning}});
    }
    Json fields = Json::array();
    for (const FieldInfo& field : all_fields()) {
        fields.push_back({{"field", field.name}, {"meaning", field.meaning}});
    }
    return {{"ops", std::move(ops)}, {"fields", std::move(fields)}};
}

/// Names of a family end with a detail of the run.
std::string name_of(const CounterInfo& row) { return std::string(row.name) + (row.family ? "*" : ""); }

void print_counters_markdown(std::ostream& out) {
    out << "# Counters\n\n"
           "Made by `reprise ops --counters --markdown` from `formats/support/counters.def`; do not edit.\n\n"
           "What an import, a recording, an export or a run dropped, guessed or repaired is counted. Every command "
           "that "
           "reads or writes a log shows its counters. `note`: nothing to worry about; `warning`: the replay may "
           "differ; "
           "`loss`: something that happened is not in the log. `{}` stands for a detail of the run, and so does the "
           "`*` "
           "at the end of a name.\n\n"
           "| counter | severity | meaning |\n|---|---|---|\n";
    for (const CounterInfo& row : all_counters()) {
        out << "| `" << name_of(row) << "` | " << severity_name(row.severity) << " | " << cell(row.meaning) << " |\n";
    }
}

int run_counters(const po::variables_map& values) {
    if (values.count("markdown")) {
        print_counters_markdown(std::cout);
        return 0;
    }
    Table table({{"counter", "counter"}, {"severity", "severity"}, {"meaning", "meaning"}});
    for (const CounterInfo& row : all_counters()) {
        table.row({name_of(row), severity_name(row.severity), row.meaning});
    }
    if (json_wanted(values)) {
        put_json(values, {{"counters", table.json()}});
    }
    if (!json_alone(values)) {
        table.print(std::cout);
    }
    return 0;
}

/// The table of docs/metrics.md.
void print_metrics_markdown(std::ostream& out) {
    out << "| metric | type | labels | meaning |\n|---|---|---|---|\n";
    for (const MetricInfo& row : all_metrics()) {
        std::string labels;
        for (const char c : row.labels) {
            labels += c == ',' ? "`, `" : std::string(1, c);
        }
        out << "| `" << row.name << "` | " << metric_type_name(row.type) << " | "
            << (labels.empty() ? "" : "`" + labels + "`") << " | " << cell(row.help) << " |\n";
    }
}

int run_metrics(const po::variables_map& values) {
    if (values.count("markdown")) {
        print_metrics_markdown(std::cout);
        return 0;
    }
    Table table({{"metric", "metric"}, {"type", "type"}, {"labels", "labels"}, {"meaning", "meaning"}});
    for (const MetricInfo& row : all_metrics()) {
        table.row({row.name, metric_type_name(row.type), row.labels, row.help});
    }
    if (json_wanted(values)) {
        put_json(values, {{"metrics", table.json()}});
    }
    if (!json_alone(values)) {
        table.print(std::cout);
    }
    return 0;
}

void options(po::options_description& options) {
    options.add_options()("counters", "print the table of counters instead");
    options.add_options()("metrics", "print the table of metrics that --metrics serves instead");
    add_json_option(options, "print the table as JSON");
    options.add_options()("markdown",
                          "print the page docs/ops.md or docs/counters.md, or the table of docs/metrics.md");
}

int run(const po::variables_map& values) {
    if (values.count("counters")) {
        return run_counters(values);
    }
    if (values.count("metrics")) {
        return run_metrics(values);
    }
    if (json_wanted(values)) {
        put_json(values, ops_json());
    }
    if (json_alone(values)) {
        return 0;
    }
    if (values.count("markdown")) {
        print_markdown(std::cout);
    } else {
        print_table(std::cout);
    }
    return 0;
}

const Registration registration{{
    .name = "ops",
    .group = Group::look,
    .summary = "print the table of ops, of counters, or of metrics",
    .help = "Prints one row per op: its id in the format, the system calls it comes from, its fields and its meaning.",
    .examples = {{"reprise ops", "print the table"},
                 {"reprise ops --json", "for scripts"},
                 {"reprise ops --counters", "print the counters and their meaning"},
                 {"reprise ops --metrics", "print what --metrics serves"}},
    .options = options,
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::ops_command
