// SPDX-License-Identifier: MIT
// `reprise anonymize`: a log without names.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/outputs.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/nearest.h"
#include "replay/plan/stored_queues.h"
#include "transform/anonymize.h"

namespace reprise::cli::anonymize_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"), "op log to write");
    options.add_options()("key-file", po::value<std::string>()->value_name("FILE"),
                          "file with a secret key: the same name becomes the same token in every log");
    options.add_options()("keep", po::value<std::vector<std::string>>()->value_name("PATH")->composing(),
                          "keep this path and everything below it; may be repeated");
    options.add_options()("allow-empty", "accept a --keep that matches nothing");
    options.add_options()("force,f", "overwrite the output if it exists");
    add_json_option(options, "print the report as JSON");
    add_recover_option(options);
}

std::string read_key(const std::string& path) {
    std::string key = read_small_file(path).value_or("");
    if (key.empty()) {
        throw bad_input(path, "cannot read the key", "give a readable file");
    }
    while (key.ends_with('\n')) {
        key.pop_back();
    }
    constexpr size_t kShortest = 16;
    if (key.size() < kShortest) {
        throw bad_input(path, "the key is shorter than 16 bytes",
                        "create one: head -c 32 /dev/urandom | base64 > FILE");
    }
    return key;
}

/// Whether the path, or one below it, is a name in the log or a word of one.
bool has_path(const Tables& tables, const std::string& path) {
    const auto ends = [](const std::string_view text, size_t at) {
        return at == text.size() || text[at] == '/' || text[at] == ' ';
    };
    for (StringId id = 0; id < tables.strings.size(); ++id) {
        const std::string_view text = tables.strings[id];
        for (size_t at = text.find(path); at != std::string_view::npos; at = text.find(path, at + 1)) {
            if ((at == 0 || text[at - 1] == ' ') && (path == "/" || ends(text, at + path.size()))) {
                return true;
            }
        }
    }
    return false;
}

/// The paths of --keep without a slash at their end. Error (usage) where one is not absolute or, without --allow-empty,
/// not in the log.
std::vector<std::string> wanted_paths(const po::variables_map& values, const Tables& tables) {
    if (values.count("keep") == 0) {
        return {};
    }
    auto paths = values["keep"].as<std::vector<std::string>>();
    for (std::string& path : paths) {
        if (!path.starts_with('/')) {
            throw usage_error("--keep requires an absolute path, not " + escape_line(path), "");
        }
        while (path.size() > 1 && path.ends_with('/')) {
            path.pop_back();
        }
        if (values.count("allow-empty") != 0 || has_path(tables, path)) {
            continue;
        }
        std::vector<std::string_view> known;
        for (FileId file = 1; file < tables.files.size(); ++file) {
            known.push_back(tables.path(file));
        }
        throw usage_error(
            "--keep " + escape_line(path) + " matches nothing in the log" + did_you_mean(nearest_paths(path, known)),
            "to go on all the same: --allow-empty");
    }
    return paths;
}

int run(const po::variables_map& values) {
    const std::string output = values["output"].as<std::string>();
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    check_log_output(output, values.count("force") != 0);
    AnonymizeOptions how;
    how.writer.derive = derive_queues;
    if (values.count("key-file") != 0) {
        how.key = read_key(values["key-file"].as<std::string>());
    }
    how.keep = wanted_paths(values, log.tables());
    const AnonymizeResult result = anonymize(log, output, how);
    if (json_wanted(values)) {
        put_json(values, {{"ops", result.ops}, {"names", result.names}, {"output", printable(output)}});
    }
    if (!json_alone(values) && !quiet()) {
        std::cout << printable(output) << ": " << counted(result.names, "name") << " replaced in a log of "
                  << counted(result.ops, "op") << '\n';
    }
    return 0;
}

const Registration registration{{
    .name = "anonymize",
    .group = Group::record,
    .summary = "replace the names in a log with tokens",
    .help = "Writes the same log with path components, commands, host names, task names and marker texts replaced. "
            "Path depth, file name suffixes, sizes, times and roles are kept, and equal names stay equal; see "
            "docs/anonymize.md.",
    .examples = {{"reprise anonymize job.oplog -o public.oplog", "replace names with numbers"},
                 {"reprise anonymize --key-file key job.oplog -o public.oplog",
                  "the same name gives the same token in every log"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::anonymize_command
