// SPDX-License-Identifier: MIT
// The plan of `prepare`, for people and as JSON.
#pragma once

#include <cstdint>

#include "cli/command.h"
#include "cli/table.h"
#include "replay/prepare/prepare.h"

namespace reprise::cli {

uint64_t count_of(const Survey& survey, Action action);
/// What may be wrong with the root.
void print_doubts(const Preparation& preparation);
void print_plan(const Preparation& preparation);
Json plan_json(const Preparation& preparation);

}  // namespace reprise::cli
