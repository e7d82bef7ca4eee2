// SPDX-License-Identifier: MIT
#include "replay/limit/limited_run.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::optional<uint64_t> memory_limit(const RunLimits& limits, uint64_t data) {
    constexpr uint64_t kPage = 4096;
    if (limits.ratio) {
        return static_cast<uint64_t>(static_cast<double>(data) / *limits.ratio) / kPage * kPage;
    }
    return limits.memory;
}

/// What the replay itself needs in the group: code and stacks of workers, and something to read into.
uint64_t least_limit(uint64_t processes) {
    constexpr uint64_t kOwn = 8 * kMiB, kWorker = kMiB / 2;
    return kOwn + processes * kWorker;
}

bool has_swap() {
    std::ifstream in("/proc/swaps");
    std::string line;
    return std::getline(in, line) && std::getline(in, line);
}

}  // namespace

std::optional<uint64_t> checked_limit(const RunLimits& limits, uint64_t data, uint64_t job_peak, uint64_t least) {
    const std::optional<uint64_t> limit = memory_limit(limits, data);
    if (!limit) {
        return limit;
    }
    std::string which = "a memory limit of " + format_bytes(*limit);
    if (limits.ratio) {
        std::ostringstream ratio;
        ratio << *limits.ratio;
        which += " (" + format_bytes(data) + " of data, ratio " + ratio.str() + ")";
    }
    if (limits.ratio && data == 0) {
        throw machine_error("no memory limit follows from a ratio: nothing is read of files that were there before",
                            "use --memory SIZE, or select data with --only");
    }
    if (*limit < least) {
        throw machine_error(which + " is less than the replay itself needs, " + format_bytes(least),
                            "allow more memory, or replay a larger data set");
    }
    if (limits.ballast && job_peak > *limit) {
        throw machine_error(which + " is less than the recorded job itself held at its peak, " +
                                format_bytes(job_peak) + ": it would not run there",
                            "allow more memory, or leave the job's own memory out with --no-ballast");
    }
    return limit;
}

uint64_t least_reserve(uint64_t limit) { return std::max(8 * kMiB, limit / 20); }

LimitedRun::LimitedRun(const RunLimits& limits, uint64_t data, const std::optional<std::vector<HeldTotal>>& job,
                       uint64_t processes)
    : limits_(limits),
      job_(job.value_or(std::vector<HeldTotal>())),
      group_(checked_limit(limits, data, most_held(job_), least_limit(processes))) {
    memory_.limit = memory_limit(limits, data).value_or(0);
    memory_.data = data;
    memory_.version = group_.version();
    memory_.job_known = job.has_value();
    memory_.job_peak = most_held(job_);
}

void LimitedRun::start(const LogReader& log) {
    if (memory_.limit == 0 || !limits_.ballast || job_.empty()) {
        return;
    }
    memory_.stood_in = true;
    progress_.emplace(log);
    ballast_ = std::make_unique<Ballast>(group_, std::min(memory_.job_peak, memory_.limit));
    memory_.may_swap = has_swap();
}

void LimitedRun::tick(uint64_t done, int64_t now_ns) {
    if (!ballast_) {
        return;
    }
    if (ballast_->died()) {
        memory_.ballast_died = true;
        ballast_.reset();
        return;
    }
    if (done != done_ || since_ns_ == 0) {
        done_ = done;
        since_ns_ = now_ns;
    }
    const uint64_t wanted = held_at(job_, progress_->time_at(done, now_ns - since_ns_));
    const uint64_t held = ballast_->held(), all = group_.held();
    const uint64_t workers = all - std::min(all, held);
    const uint64_t most = memory_.limit - std::min(memory_.limit, least_reserve(memory_.limit) + workers);
    const uint64_t rest = wanted - std::min(wanted, workers);
    memory_.cut = std::max(memory_.cut, rest - std::min(rest, most));
    memory_.held_peak = std::max(memory_.held_peak, workers + held);
    if (wanted >= kMiB) {
        const double beside = static_cast<double>(workers + held) - static_cast<double>(wanted);
        errors_ += std::abs(beside) / static_cast<double>(wanted);
        ++samples_;
    }
    ballast_->want(std::min(rest, most));
}

std::optional<LimitedMemory> LimitedRun::finish() {
    if (memory_.limit == 0) {
        return std::nullopt;
    }
    memory_.group = group_.memory().value_or(GroupMemory());
    memory_.held_error = samples_ == 0 ? 0.0 : errors_ / static_cast<double>(samples_);
    memory_.may_swap = memory_.may_swap && ballast_ && !ballast_->locked();
    memory_.ballast_died = memory_.ballast_died || (ballast_ && ballast_->died());
    ballast_.reset();
    return memory_;
}

}  // namespace reprise
