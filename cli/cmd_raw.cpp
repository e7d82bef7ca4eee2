// SPDX-License-Identifier: MIT
// `reprise __raw`: the records of a raw log as text, for debugging the recorder.
#include <iostream>
#include <string>

#include "cli/command.h"
#include "formats/raw/dump.h"
#include "formats/raw/log.h"

namespace reprise::cli::raw_command {
namespace {

void options(po::options_description& /*add*/) {}

int run(const po::variables_map& values) {
    RawReader reader(values["log"].as<std::string>());
    for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
        for (const raw_head& record : RawRecords(chunk)) {
            std::cout << raw_line(record) << '\n';
        }
    }
    if (!reader.cut().empty()) {
        std::cerr << "the log is truncated: " << reader.cut() << '\n';
    }
    return 0;
}

const Registration registration{{
    .name = "__raw",
    .group = Group::hidden,
    .summary = "print the records of a raw log",
    .help = "One line per record, in the order of the file.",
    .examples = {{"reprise __raw job.raw", "print all records"}},
    .options = options,
    .positionals = {{"log", "RAW"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::raw_command
