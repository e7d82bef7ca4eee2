// SPDX-License-Identifier: MIT
#include "experiment/recordings.h"

#include <algorithm>
#include <cmath>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"
#include "formats/support/quantity.h"

namespace reprise {

RecordingFacts recording_facts(const LogReader& log) {
    RecordingFacts out;
    out.path = log.path();
    out.command = log.header().command;
    out.ops = log.op_count();
    int64_t begin = INT64_MAX, end = INT64_MIN;
    OpBlock ops;
    for (const BlockInfo& block : log.blocks()) {
        begin = std::min(begin, block.begin);
        end = std::max(end, block.end);
        log.decode(block, ops);
        for (size_t i = 0; i < ops.count(); ++i) {
            const OpInfo& row = info(static_cast<OpKind>(ops.kind[i]));
            const bool moves = (row.is(Trait::reads) || row.is(Trait::writes)) && ops.result[i] > 0;
            out.bytes += moves ? static_cast<uint64_t>(ops.result[i]) : 0;
        }
        log.forget(block);
    }
    out.elapsed_ns = begin < end ? end - begin : 0;
    out.stolen_ns = read_fact(log.header(), fact::stolen).value_or(-1);
    out.run_queue_ns = read_fact(log.header(), fact::run_queue).value_or(-1);
    out.cpus =
        static_cast<int>(std::clamp<int64_t>(read_fact(log.header(), fact::capture_cpus).value_or(1), 1, 1 << 20));
    return out;
}

std::optional<std::pair<int64_t, int64_t>> mixed_caches(const std::vector<RecordingFacts>& recordings) {
    constexpr int64_t kLeast = 1 << 20;
    if (recordings.empty()) {
        return std::nullopt;
    }
    const auto [least, most] = std::minmax_element(
        recordings.begin(), recordings.end(),
        [](const RecordingFacts& a, const RecordingFacts& b) { return a.fetched_bytes < b.fetched_bytes; });
    const int64_t low = least->fetched_bytes, high = most->fetched_bytes;
    if (low < 0 || high - low <= std::max(kLeast, high / 2)) {
        return std::nullopt;
    }
    return std::pair(low, high);
}

std::string unlike_recordings(const std::vector<RecordingFacts>& recordings) {
    constexpr double kApart = 0.05;
    constexpr uint64_t kLittle = 1 << 20;
    const auto extremes = [&](uint64_t RecordingFacts::*figure) {
        return std::minmax_element(
            recordings.begin(), recordings.end(),
            [figure](const RecordingFacts& a, const RecordingFacts& b) { return a.*figure < b.*figure; });
    };
    const auto apart = [](uint64_t least, uint64_t most) {
        return static_cast<double>(most - least) > kApart * static_cast<double>(most);
    };
    const auto said = [](const RecordingFacts& a, const std::string& of_a, const RecordingFacts& b,
                         const std::string& of_b) {
        return escape_line(a.path.string()) + " has " + of_a + " and " + escape_line(b.path.string()) + " " + of_b +
               ": they may not be of the same job, and only one of them is replayed";
    };
    if (recordings.empty()) {
        return {};
    }
    const auto [fewest, most] = extremes(&RecordingFacts::ops);
    if (apart(fewest->ops, most->ops)) {
        return said(*fewest, counted(fewest->ops, "op"), *most, counted(most->ops, "op"));
    }
    const auto [least, largest] = extremes(&RecordingFacts::bytes);
    if (largest->bytes - least->bytes > kLittle && apart(least->bytes, largest->bytes)) {
        return said(*least, format_bytes(least->bytes) + " read and written", *largest, format_bytes(largest->bytes));
    }
    return {};
}

std::vector<RunOutcome> recording_outcomes(const std::vector<RecordingFacts>& recordings) {
    constexpr double kOfElapsed = 0.1;
    std::vector<int64_t> queued;
    queued.reserve(recordings.size());
    for (const RecordingFacts& one : recordings) {
        queued.push_back(one.run_queue_ns);
    }
    const int64_t usual = median(std::move(queued));
    std::vector<RunOutcome> out;
    for (const RecordingFacts& one : recordings) {
        RunOutcome outcome;
        const auto elapsed = static_cast<double>(one.elapsed_ns);
        outcome.seconds = elapsed / 1e9;
        outcome.valid = one.ops != 0;
        Surroundings around{.cpus = one.cpus, .elapsed_ns = one.elapsed_ns};
        around.stolen_cpus = one.stolen_ns < 0 || elapsed <= 0 ? -1 : static_cast<double>(one.stolen_ns) / elapsed;
        outcome.disturbed = disturbances(around);
        const auto more = static_cast<double>(one.run_queue_ns - usual);
        if (one.run_queue_ns >= 0 && usual >= 0 && more > kOfElapsed * elapsed) {
            outcome.disturbed.push_back("its tasks waited " + format_duration(std::llround(more)) +
                                        " longer for CPUs than usual");
        }
        out.push_back(std::move(outcome));
    }
    return out;
}

void check_one_job(const std::vector<RecordingFacts>& recordings) {
    for (const RecordingFacts& one : recordings) {
        const RecordingFacts& first = recordings.front();
        const std::string names = escape_line(first.path.string()) + " and " + escape_line(one.path.string());
        if (one.command != first.command) {
            throw usage_error(names + " are recordings of different commands",
                              "give recordings of one job, or one log");
        }
        if (2 * std::min(one.ops, first.ops) < std::max(one.ops, first.ops)) {
            throw usage_error(names + " differ too much to be the same job: " + std::to_string(first.ops) + " and " +
                                  std::to_string(one.ops) + " ops",
                              "give recordings of one job, or one log");
        }
    }
}

}  // namespace reprise
