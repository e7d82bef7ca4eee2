// SPDX-License-Identifier: MIT
// The what-if options of `replay` and `predict` (replay/plan/what_if.def): declared, read and shown.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/table.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/access.h"
#include "replay/plan/what_if.h"

namespace reprise::cli {

/// `variants`: also those that replay another log in place of the recorded one.
void add_what_if_options(po::options_description& add, bool variants);
/// As given. Factors that say `auto` are 1. Throws Error (usage).
WhatIf what_if_of(const po::variables_map& values);
/// In words, with what the log is already: one of `reprise scale` is none of the recorded job. Empty: nothing.
std::string what_if_words(const WhatIf& what_if, const LogReader& log);
/// Throws Error (usage) where they contradict each other.
AccessChange access_of(const WhatIf& what_if);
/// Throws Error (usage) where the mount of the root reads otherwise ahead than asked for.
void check_read_ahead(const AccessChange& change, const std::string& root);
/// Throws Error (usage) where --gpu-speed or --gpu-model would change nothing, as the log has no accelerators.
void check_has_accelerators(const LogReader& log, const WhatIf& what_if);
/// Whether the factor is `auto`: left to the command.
bool is_auto(const po::variables_map& values, std::string_view option);
void put_what_if(Json& json, const WhatIf& what_if, bool variants);

}  // namespace reprise::cli
