// SPDX-License-Identifier: MIT
// `reprise merge`: one log of a job from one log per rank.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"
#include "transform/merge.h"

namespace reprise::cli::merge_command {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    options.add_options()("allow-missing", "merge the ranks that there are, although others are missing");
    options.add_options()("force,f", "overwrite the output if it exists");
    add_json_option(options);
}

Table ranks_table(const MergeResult& result) {
    Table table({{"rank", "rank", true},
                 {"host", "host"},
                 {"ops", "ops", true},
                 {"shifted by", "offset_ns", true},
                 {"of that by messages", "corrected_ns", true},
                 {"known to within", "error_ns", true},
                 {"clock", "clock"},
                 {"log", "log"}});
    for (const MergedLog& log : result.logs) {
        table.row({{std::to_string(log.rank), log.rank},
                   printable(log.host),
                   count_cell(log.ops),
                   duration_cell(log.offset_ns),
                   log.corrected_ns == 0 ? Cell("-", 0) : duration_cell(log.corrected_ns),
                   !log.error_ns        ? Cell("unknown", nullptr)
                   : *log.error_ns == 0 ? Cell("exact", 0)
                                        : duration_cell(*log.error_ns),
                   log.clock,
                   printable(log.path.native())});
    }
    return table;
}

int run(const po::variables_map& values) {
    std::vector<fs::path> logs;
    for (const std::string& name : values["logs"].as<std::vector<std::string>>()) {
        logs.emplace_back(name);
    }
    const fs::path output = values["output"].as<std::string>();
    check_log_output(output, values.count("force") != 0);
    MergeOptions how;
    how.allow_missing = values.count("allow-missing") != 0;
    how.writer.derive = derive_queues;
    Progress progress("merging");
    how.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    const MergeResult result = merge_logs(logs, output, how);
    progress.finish();
    const Table table = ranks_table(result);
    if (json_wanted(values)) {
        put_json(values, {{"output", printable(output.native())},
                          {"ops", result.ops},
                          {"ranks", result.ranks},
                          {"files", result.files},
                          {"files_shared", result.files_shared},
                          {"connections", result.connections},
                          {"edges", result.edges},
                          {"waits", result.waits},
                          {"dropped", result.dropped},
                          {"logs", table.json()}});
    }
    if (json_alone(values) || quiet()) {
        return 0;
    }
    std::cout << printable(output.native()) << ": " << counted(result.ops, "op") << " of "
              << counted(result.ranks, "rank") << ", " << counted(result.files, "file") << " ("
              << format_count(result.files_shared) << " of several ranks), " << counted(result.edges, "edge")
              << " between ranks over " << counted(result.connections, "connection") << "\n";
    table.print(std::cout, 2);
    if (result.connections == 0) {
        std::cout << "  note: the logs share no connection, so that no rank waits for another one in a replay\n";
    }
    if (result.dropped != 0) {
        std::cout << "  warning: " << counted(result.dropped, "message")
                  << " received before they were sent: clocks drifted apart; they have no edge\n";
    }
    return 0;
}

const Registration registration{{
    .name = "merge",
    .group = Group::record,
    .summary = "one log of a job from one log per rank",
    .help =
        "Joins the recordings of a job's ranks, each of which recorded itself (mpirun reprise capture ...). Files "
        "that several ranks used become one file, clocks are aligned, and a message that one rank sent another over "
        "TCP or a Unix socket becomes an edge between them, so that a replay keeps their order.\n\nLogs of one "
        "machine have one clock and are aligned exactly. Others are aligned by their wall clocks; where a message "
        "would then be received before it was sent, the clock is corrected by the least that obeys all messages. "
        "What is left unknown is printed.\n\nRefused: logs of different jobs, of different versions of reprise, a "
        "rank twice, a rank missing.",
    .examples = {{"reprise merge job.rank*.oplog -o job.oplog", "the ranks of a job"}},
    .options = options,
    .positionals = {{"logs", "LOG", 2, -1}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::merge_command
