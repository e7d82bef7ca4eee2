// SPDX-License-Identifier: MIT
// What a recording says of itself: how much of the job's time was the recorder's, and what memory cost there.
#pragma once

#include <string>

#include "cli/table.h"
#include "formats/oplog/tables.h"

namespace reprise::cli {

/// Where new anonymous memory cost far more than the recording's machine usually takes for it: how much, and that it is
/// left out of compute. Empty where it was less than a millisecond.
std::string dear_memory_sentence(const Header& header);
/// The recorder's own time that was taken off compute. Empty where nothing is known of it.
std::string taken_off_sentence(const Header& header);
/// Adds both as numbers: `dear_pages`, `dear_ns`, `usual_page_ns`, `compute_ns`, `taken_off_ns`.
void put_recorder_facts(Json& json, const Header& header);

}  // namespace reprise::cli
