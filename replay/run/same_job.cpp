// SPDX-License-Identifier: MIT
#include "replay/run/same_job.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

#include "formats/oplog/result_text.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

/// Whether the job made what was not made here.
bool left_out_making(const ReplayResult& result) {
    return result.left_out_io[static_cast<size_t>(LeftOut::read_only)] != 0;
}

/// ", most often open; for example open of data/a.bin: here ENOENT, recorded 3"
std::string example_of(const ReplayResult& result) {
    const auto most = std::max_element(result.mismatches_by_kind.begin(), result.mismatches_by_kind.end());
    if (*most == 0) {
        return {};  // each is one that may differ
    }
    const auto kind = static_cast<OpKind>(most - result.mismatches_by_kind.begin());
    std::string text = ", most often " + std::string(info(kind).name);
    // What did not open explains what follows it.
    auto shown = std::find_if(result.examples.begin(), result.examples.end(),
                              [](const Mismatch& one) { return one.kind == OpKind::open; });
    if (shown == result.examples.end()) {
        shown = std::find_if(result.examples.begin(), result.examples.end(),
                             [&](const Mismatch& one) { return one.kind == kind; });
    }
    if (shown == result.examples.end()) {
        return text;
    }
    return text + "; for example " + std::string(info(shown->kind).name) + " of " + escape_line(shown->path) +
           ": here " + result_text(shown->actual) + ", recorded " + result_text(shown->recorded) +
           (left_out_making(result) && shown->actual == -ENOENT ? "; --read-only leaves out what makes it" : "");
}

constexpr const char* kNothing = "There was nothing to replay: the log has no I/O op.";

/// Of a run that performed no I/O op.
std::string nothing_done(const ReplayResult& result) {
    const auto& left_out = result.left_out_io;
    if (left_out[static_cast<size_t>(LeftOut::filter)] != 0) {
        return "No I/O op was performed: the filter leaves nothing of the log.";
    }
    const bool any = std::any_of(left_out.begin(), left_out.end(), [](uint64_t ops) { return ops != 0; });
    return any ? "No I/O op was performed: none of the log's could be." : kNothing;
}

/// ", 3 of them refused to this user"
std::string refused_in(const ReplayResult& result) {
    return result.refused == 0 ? "" : ", " + std::to_string(result.refused) + " of them refused to this user";
}

/// "; the log lacks the ranges of 234 fcntl lock calls, so their order is not kept: record again ..."
std::string without_locks(const ReplayResult& result) {
    return result.doubts.range_locks == 0 || result.processes < 2
               ? std::string()
               : "; the log lacks the ranges of " + counted(result.doubts.range_locks, "fcntl lock call") +
                     ", so their order is not kept: record again with this version of reprise capture";
}

}  // namespace

uint64_t comparable_ops(const ReplayResult& result) {
    uint64_t ops = result.left_out[static_cast<size_t>(LeftOut::not_open)];
    for (const OpInfo& row : all_ops()) {
        if (row.is(Trait::io)) {
            ops += result.latency[static_cast<size_t>(row.kind)].count();
        }
    }
    return ops;
}

void judge_results(const ToleratedDifferences& tolerated, ReplayResult& result, bool alone) {
    const uint64_t all = std::max(comparable_ops(result), result.mismatches);
    const double most =
        tolerated.ops ? static_cast<double>(*tolerated.ops) : tolerated.share * static_cast<double>(all);
    if (static_cast<double>(result.mismatches) > most) {
        char share[32];
        std::snprintf(share, sizeof share, "%.3g",
                      100.0 * static_cast<double>(result.mismatches) / static_cast<double>(all));
        result.not_same_job.push_back(std::to_string(result.mismatches) + " of " + std::to_string(all) + " I/O ops (" +
                                      share + " %) have another result than in the recording" + refused_in(result) +
                                      example_of(result) + without_locks(result) + ".");
    }
    // A few ops may stand for most of the bytes.
    const auto missing = static_cast<double>(result.missing_bytes);
    if (result.not_same_job.empty() && !tolerated.ops &&
        missing > tolerated.share * static_cast<double>(result.recorded_bytes)) {
        result.not_same_job.push_back(format_bytes(result.missing_bytes) + " of " +
                                      format_bytes(result.recorded_bytes) + " were not read or written" +
                                      example_of(result) + ".");
    }
    const bool filtered = result.left_out_io[static_cast<size_t>(LeftOut::filter)] != 0;
    if (result.ended == "complete" && (result.ops == 0 || (all == 0 && (alone || filtered)))) {
        result.not_same_job.push_back(nothing_done(result));
    }
    if (result.no_space != 0) {  // what else differs comes from that
        result.not_same_job.insert(result.not_same_job.begin(),
                                   "The file system was full: " + counted(result.no_space, "op") +
                                       " failed for lack of space. Times after the first of these are not meaningful.");
    }
}

void judge_whole(ReplayResult& result) {
    const bool any = result.doubts.kept_ops + result.doubts.left_out_ops != 0;
    if (result.ended == "complete" && !any && result.not_same_job.empty()) {
        result.not_same_job.emplace_back(kNothing);
    }
}

}  // namespace reprise
