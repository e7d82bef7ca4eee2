// SPDX-License-Identifier: MIT
// The texts made from the registry: help, version, completion scripts, man pages.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace reprise::cli {

std::string_view tool_version();
std::string version_text();
/// `reprise --help`.
std::string overview_text();
/// `reprise COMMAND --help`.
std::string help_text(const Command& command);
/// "reprise info [OPTION...] LOG"
std::string usage_line(const Command& command);
/// Completion scripts; each needs nothing but its shell.
std::string bash_completion_script();
std::string zsh_completion_script();
std::string fish_completion_script();
/// troff source of reprise(1).
std::string man_page();
/// troff source of reprise-COMMAND(1).
std::string man_page(const Command& command);

}  // namespace reprise::cli
