// SPDX-License-Identifier: MIT
// `reprise __man`: the man pages, written by the build.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/help.h"
#include "formats/support/error.h"

namespace reprise::cli::man_command {
namespace {

void options(po::options_description& add) {
    add.add_options()("all", po::value<std::string>()->value_name("DIR"), "write every page into this folder");
}

void write_page(const std::filesystem::path& path, const std::string& text) {
    std::ofstream out(path, std::ios::trunc);
    out << text << std::flush;
    if (!out) {
        throw machine_error(escape_line(path.native()) + ": cannot write the man page", "check the folder");
    }
}

int run(const po::variables_map& values) {
    if (values.count("all") != 0) {
        const std::filesystem::path folder = values["all"].as<std::string>();
        write_page(folder / "reprise.1", man_page());
        for (const Command* command : all_commands()) {
            if (command->group != Group::hidden) {
                write_page(folder / ("reprise-" + command->name + ".1"), man_page(*command));
            }
        }
        return 0;
    }
    if (values.count("page") == 0) {
        std::cout << man_page();
        return 0;
    }
    const auto& name = values["page"].as<std::string>();
    const Command* command = find_command(name);
    if (command == nullptr || command->group == Group::hidden) {
        throw usage_error("'" + escape_line(name) + "' is not a command", "see: reprise --help");
    }
    std::cout << man_page(*command);
    return 0;
}

const Registration registration{{
    .name = "__man",
    .group = Group::hidden,
    .summary = "print a man page",
    .help = "Prints the source of reprise(1), or of the page of a command.",
    .examples = {{"reprise __man capture | man -l -", "read reprise-capture(1)"}},
    .options = options,
    .positionals = {{.name = "page", .label = "COMMAND", .least = 0}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::man_command
