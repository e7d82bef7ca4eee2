// SPDX-License-Identifier: MIT
// `reprise completion`: the completion script for a shell.
#include <iostream>

#include "cli/command.h"
#include "cli/help.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

int run(const po::variables_map& values) {
    const auto& shell = values["shell"].as<std::string>();
    if (shell != "bash") {
        throw usage_error("completion: no script for shell '" + escape_line(shell) + "'", "expected: bash");
    }
    std::cout << bash_completion_script();
    return 0;
}

const Registration registration{{
    .name = "completion",
    .group = Group::setup,
    .summary = "print the completion script for bash",
    .help = "Prints a script that completes commands, options, their values and file names. "
            "An installed package brings it along; this is for a binary run from elsewhere.",
    .examples = {{"source <(reprise completion bash)", "complete in this shell"}},
    .positionals = {{.name = "shell", .label = "bash"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
