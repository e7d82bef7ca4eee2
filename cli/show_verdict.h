// SPDX-License-Identifier: MIT
// The summary of `replay` and `compare`: at most ten lines, the first two of which are enough to stop a wrong
// conclusion.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/verdict.h"

namespace reprise::cli {

inline constexpr size_t kSummaryLines = 10;
inline constexpr size_t kSummaryColumns = 120;

/// A line of the summary. Where there is no room for all, those with the least `keep` go.
struct SummaryLine {
    int keep = 0;
    std::string text;
    bool first = false;  // before the sentences
};

/// "what-if: --gpu-speed 2; not the job as recorded"
std::string what_if_sentence(std::string_view what_if);
/// Of a result whose op log could not be written.
std::string log_lost_sentence(std::string_view why);

/// The lines on one verdict. `beside`: what the other side is called, "recorded" or "A".
std::vector<SummaryLine> verdict_lines(const Verdict& verdict, std::string_view beside);

/// Prints `first` (sentences: why the exit code is not 0), `lines`, and `notes` (sentences) as far as there is room,
/// then how many notes are left; all of them with -v.
void print_summary(std::ostream& out, const std::vector<std::string>& first, std::vector<SummaryLine> lines,
                   const std::vector<std::string>& notes);

/// Whether two times (ns) are apart by more than a tenth and a microsecond, so that a table of differences shows them.
bool far_apart(int64_t a, int64_t b);

/// To kSummaryColumns, with "..." where something is cut off.
std::string cut_line(std::string text);

/// Broken at blanks into lines of at most kSummaryColumns, the first one after `label`.
std::vector<std::string> wrapped(std::string_view label, std::string_view text);

}  // namespace reprise::cli
