// SPDX-License-Identifier: MIT
// What `replay --verify` found.
#pragma once

#include "cli/command.h"
#include "cli/table.h"
#include "replay/run/verification.h"

namespace reprise::cli {

/// Adds --verify.
void add_verify_option(po::options_description& options);
Verify wanted_verify(const po::variables_map& values);
Json verify_json(const VerifyReport& report);
Json findings_json(const TreeCheck& tree);

}  // namespace reprise::cli
