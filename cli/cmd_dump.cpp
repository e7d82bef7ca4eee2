// SPDX-License-Identifier: MIT
// `reprise dump`: the exact text of a log.
#include <algorithm>
#include <iostream>
#include <limits>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/units.h"
#include "formats/export/dump.h"
#include "formats/oplog/time_order.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"
#include "formats/support/text_output.h"

namespace reprise::cli::dump_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("tables", "print header and tables first");
    options.add_options()("no-ops", "do not print ops");
    add_json_option(options, "print one JSON object per op and line,");
    options.add_options()("from", po::value<std::string>()->value_name("TIME"),
                          "ops that begin at this log time or later, e.g. 1.5s");
    options.add_options()("to", po::value<std::string>()->value_name("TIME"), "ops that begin before this log time");
    options.add_options()("output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
                          "output file; .gz compresses");
    options.add_options()("force,f", "overwrite the output if it exists");
    add_task_option(options);
    add_filter_options(options);
    add_recover_option(options);
}

/// The part of the log that --from and --to name. Error (usage) where it is empty or outside of the log.
TimeRange wanted_range(const po::variables_map& values, const LogReader& log) {
    TimeRange range;
    if (values.count("from")) {
        range.from = parse_duration(values["from"].as<std::string>(), "--from");
    }
    if (values.count("to")) {
        range.to = parse_duration(values["to"].as<std::string>(), "--to");
    }
    if (log.blocks().empty()) {
        return range;
    }
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (const BlockInfo& block : log.blocks()) {
        begin = std::min(begin, block.begin);
        end = std::max(end, block.end);
    }
    const std::string covers = "the log covers " + format_duration(begin) + " to " + format_duration(end);
    if (range.from >= range.to) {
        throw usage_error("dump: --from " + escape_line(values["from"].as<std::string>()) + " is not before --to " +
                              escape_line(values["to"].as<std::string>()),
                          covers);
    }
    // An op at the very end has no duration.
    if (range.from > end) {
        throw usage_error("dump: --from " + escape_line(values["from"].as<std::string>()) + " is beyond the log's end",
                          covers);
    }
    if (range.to <= begin) {
        throw usage_error("dump: --to " + escape_line(values["to"].as<std::string>()) + " is before the log's first op",
                          covers);
    }
    return range;
}

int run(const po::variables_map& values) {
    const bool json = json_wanted(values);
    if (json && !values["output"].defaulted()) {
        throw usage_error("dump: --json and -o both name the output", "use --json=FILE");
    }
    if (json && values.count("tables")) {
        throw usage_error("dump: --tables has no JSON form", "use: reprise info --json --files --tasks");
    }
    const std::string output = values[json ? "json" : "output"].as<std::string>();
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    const TimeRange range = wanted_range(values, log);
    check_output(output, values.count("force") != 0);
    const std::vector<TaskId> tasks = wanted_tasks(log, values);
    const OpSelector selector(log, wanted_filter(values, log, Base::everything));
    std::cout.flush();
    TextOutput out(output);
    if (values.count("tables")) {
        out.put("reprise dump 2\n");
        dump_tables(log, [&](const std::string& line) { out.put(line + '\n'); });
    }
    if (!values.count("no-ops")) {
        const Tables& tables = log.tables();
        for_each_between(log, range, tasks, [&](TaskId task, const Op& op, uint64_t number) {
            if (!selector.keeps(op)) {
                return;
            }
            json ? append_dump_json(out.text, tables, task, op, number)
                 : append_dump(out.text, tables, task, op, number);
            out.drain();
        });
    }
    out.finish();
    return 0;
}

const Registration registration{{
    .name = "dump",
    .group = Group::look,
    .summary = "print every op of a log exactly",
    .help = "Prints one op per line in time order: all fields of the op table by name, times in nanoseconds, strings "
            "quoted so that every byte is visible. Equal logs give equal text.\n\nWith --from and --to only that part "
            "of the log is read.",
    .examples = {{"reprise dump job.oplog", "every op"},
                 {"reprise dump --tables --no-ops job.oplog", "header, processes, tasks, files, instances"},
                 {"reprise dump --task 3 --from 10s --to 10.5s job.oplog", "half a second of one task"},
                 {"reprise dump --only dataset --json job.oplog", "for scripts"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::dump_command
