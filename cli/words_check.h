// SPDX-License-Identifier: MIT
// Whether `replay` or `prepare` would take the words that a longer command is going to start them with: asked before
// anything is made. Nothing is written, and the root may be missing.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

/// Without the command's name. Throws Error as the command itself would.
void check_replay_words(const std::vector<std::string>& words);
void check_prepare_words(const std::vector<std::string>& words);

}  // namespace reprise::cli
