// SPDX-License-Identifier: MIT
// `reprise anonymize`: a log without names.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/log_arguments.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"
#include "transform/anonymize.h"

namespace reprise::cli {
namespace {

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    options.add_options()("key-file", po::value<std::string>()->value_name("FILE"),
                          "secret: the same names become the same tokens in every log");
    options.add_options()("keep", po::value<std::vector<std::string>>()->value_name("PATH")->composing(),
                          "leave this path and all below it as they are; may be repeated");
    options.add_options()("force,f", "replace the output if it exists");
    options.add_options()("json", "print the report as JSON");
    add_recover_option(options);
}

std::string read_key(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::string key((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in && key.empty()) {
        throw bad_input(path, "the key cannot be read", "name a file that holds it");
    }
    while (key.ends_with('\n')) {
        key.pop_back();
    }
    constexpr size_t kShortest = 16;
    if (key.size() < kShortest) {
        throw bad_input(path, "the key is shorter than 16 bytes", "make one: head -c 32 /dev/urandom | base64 > FILE");
    }
    return key;
}

int run(const po::variables_map& values) {
    const std::string output = values["output"].as<std::string>();
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    std::error_code ignored;
    if (std::filesystem::equivalent(log.path(), output, ignored)) {
        throw usage_error("anonymize: the output would replace the log " + escape_line(output), "name another file");
    }
    if (std::filesystem::exists(output, ignored) && values.count("force") == 0) {
        throw usage_error(escape_line(output) + " exists", "name another file with -o, or replace it with --force");
    }
    AnonymizeOptions how;
    how.writer.derive = derive_queues;
    if (values.count("key-file") != 0) {
        how.key = read_key(values["key-file"].as<std::string>());
    }
    if (values.count("keep") != 0) {
        how.keep = values["keep"].as<std::vector<std::string>>();
    }
    for (std::string& path : how.keep) {
        if (!path.starts_with('/')) {
            throw usage_error("--keep wants an absolute path, not " + escape_line(path), "");
        }
        while (path.size() > 1 && path.ends_with('/')) {
            path.pop_back();
        }
    }
    const AnonymizeResult result = anonymize(log, output, how);
    if (values.count("json") != 0) {
        print_json(std::cout, {{"ops", result.ops}, {"names", result.names}, {"output", printable(output)}});
    } else if (!quiet()) {
        std::cerr << format_count(result.names) << " names replaced in a log of " << format_count(result.ops)
                  << " ops\n";
    }
    return 0;
}

const Registration registration{{
    .name = "anonymize",
    .group = Group::record,
    .summary = "replace the names in a log by tokens",
    .help = "Writes the same log without names: components of paths, commands, hosts, names of tasks, texts. Depth, "
            "endings "
            "of names, sizes, times, roles and equality stay; docs/anonymize.md says what else does.",
    .examples = {{"reprise anonymize job.oplog -o public.oplog", "tokens are numbers"},
                 {"reprise anonymize --key-file key job.oplog -o public.oplog",
                  "the same name is the same token in every log"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
