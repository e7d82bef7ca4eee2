// SPDX-License-Identifier: MIT
// `reprise completion`: the completion script for a shell.
#include <iostream>

#include "cli/command.h"
#include "cli/help.h"

namespace reprise::cli::completion_command {
namespace {

int run(const po::variables_map& values) {
    const auto& shell = values["shell"].as<std::string>();
    std::cout << (shell == "bash"  ? bash_completion_script()
                  : shell == "zsh" ? zsh_completion_script()
                                   : fish_completion_script());
    return 0;
}

const Registration registration{{
    .name = "completion",
    .group = Group::setup,
    .summary = "print the completion script for bash, zsh or fish",
    .help = "Prints a script that completes commands, options, their values and file names. "
            "The package installs all three; this is for a binary run from elsewhere.",
    .examples = {{"source <(reprise completion bash)", "in bash, or zsh with its name"},
                 {"reprise completion fish | source", "in fish"}},
    .positionals = {{.name = "shell", .label = "SHELL"}},
    .choices = {{"shell", {"bash", "zsh", "fish"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::completion_command
