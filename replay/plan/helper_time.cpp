// SPDX-License-Identifier: MIT
#include "replay/plan/helper_time.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/support/quantity.h"
#include "replay/plan/edges_rules.h"

namespace reprise {
namespace {

constexpr int64_t kLongest = int64_t{1} << 50;  // ns; longer ones are malformed
constexpr int64_t kLittleUnsaid = 10'000'000;   // ns; below it nothing is said
constexpr double kWeight = 0.1;                 // of the recording's work

/// Waits for others are over when those are.
bool goes_on(OpKind kind, const OpBlock& block, size_t i) {
    const int64_t arg = block.arg[i];
    if (kind == OpKind::wait) {
        if (arg == kWaitUnknown && block.has_edges() && !block.edges_of(i).empty()) {
            return false;  // a signal that somebody sent, say
        }
        return arg == kWaitSleep || arg == kWaitUnknown || wait_class(arg) == kWaitWokeOthers ||
               wait_class(arg) == kWaitUntil;
    }
    return !info(kind).is(Trait::waits) || kind == OpKind::idle;
}

}  // namespace

void Goings::add(Kind kind, int64_t begin, int64_t end) {
    begin = std::clamp<int64_t>(begin, 0, kLongest);
    end = std::clamp<int64_t>(end, 0, kLongest);
    if (end <= begin) {
        return;
    }
    while (end > step_ * static_cast<int64_t>(kSteps)) {
        longer_steps();
    }
    Series& series = series_[kind];
    const int64_t first = begin / step_, last = (end - 1) / step_;
    if (first == last) {
        series.ns[static_cast<size_t>(first)] += static_cast<double>(end - begin);
        return;
    }
    series.ns[static_cast<size_t>(first)] += static_cast<double>((first + 1) * step_ - begin);
    series.ns[static_cast<size_t>(last)] += static_cast<double>(end - last * step_);
    ++series.changes[static_cast<size_t>(first + 1)];
    --series.changes[static_cast<size_t>(last)];
}

std::vector<double> Goings::sums(size_t kind) const {
    std::vector<double> out = series_[kind].ns;
    int64_t whole = 0;
    for (size_t i = 0; i < kSteps; ++i) {
        whole += series_[kind].changes[i];
        out[i] += static_cast<double>(whole) * static_cast<double>(step_);
    }
    return out;
}

void Goings::longer_steps() {
    for (size_t kind = 0; kind < kKinds; ++kind) {
        const std::vector<double> all = sums(kind);
        series_[kind] = {};
        for (size_t i = 0; i < kSteps; ++i) {
            series_[kind].ns[i / 2] += all[i];
        }
    }
    step_ *= 2;
}

int64_t Goings::alone(Kind kind, bool reaps_wait) const {
    const std::vector<double> works = sums(work), waits = sums(reaps), asked = sums(kind);
    std::vector<double> all = asked;
    for (const Kind other : {beats, cut}) {
        const std::vector<double> more = other == kind || kind == timers ? std::vector<double>() : sums(other);
        for (size_t i = 0; i < more.size(); ++i) {
            all[i] += more[i];
        }
    }
    double sum = 0;
    for (size_t i = 0; i < kSteps; ++i) {
        if (all[i] > 0) {
            const double others = works[i] + (reaps_wait ? 0 : waits[i]);
            sum += std::max(std::min(all[i], static_cast<double>(step_)) - others, 0.0) * asked[i] / all[i];
        }
    }
    return std::llround(sum);
}

HelperTime::HelperTime(const Plan& plan, int64_t start_ns)
    : plan_(plan), start_(start_ns), before_(plan.tasks.size()) {}

void HelperTime::see(TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end) {
    const auto op = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(op);
    const int64_t was = block.begin[i], was_end = OpRef::end_of(was, block.duration[i]);
    const TaskHelp& help = plan_.helpers.tasks[task];
    const Goings::Kind helps = help.timer ? Goings::timers : Goings::beats;
    const Goings::Kind kind = was >= help.cut_from             ? Goings::cut
                              : help.beats_at(block.first + i) ? helps
                                                               : Goings::work;
    Before& before = before_[task];
    // Time between ops, and that of ops which are left out, passes as recorded; what is longer here is a wait.
    if (before.recorded != INT64_MIN) {
        const int64_t gap = std::max<int64_t>(was - before.recorded, 0),
                      here = std::min(gap, std::max<int64_t>(begin - before.here, 0));
        recorded_.add(kind, was - gap - plan_.first_begin, was - plan_.first_begin);
        here_.add(kind, begin - here - start_, begin - start_);
    }
    const bool ran_out =
        kind == Goings::timers && op == OpKind::wait && block.arg[i] == kWaitFutex && block.result[i] == -ETIMEDOUT;
    if (goes_on(op, block, i) || ran_out) {
        const bool reaps = kind == Goings::work && row.is(Trait::async);  // a replay waits in submissions, too
        recorded_.add(reaps ? Goings::reaps : kind, was - plan_.first_begin, was_end - plan_.first_begin);
        here_.add(reaps ? Goings::reaps : kind, begin - start_, end - start_);
    }
    before = {std::max(before.recorded, was_end), std::max(before.here, end)};
    if (row.is(Trait::io) || op == OpKind::compute) {
        const auto ns = static_cast<double>(was_end - was);
        work_ns_ += ns;
        cut_work_ns_ += kind == Goings::cut ? ns : 0;
    }
    if ((row.is(Trait::reads) || row.is(Trait::writes)) && block.result[i] > 0) {
        const auto moved = static_cast<double>(block.result[i]);
        bytes_ += moved;
        cut_bytes_ += kind == Goings::cut ? moved : 0;
    }
}

HelperFindings HelperTime::finish() const {
    HelperFindings out;
    // Who goes on sleeping after the others ended does not look for their end.
    constexpr int64_t kSleeps = 2;
    const int64_t recorded = recorded_.alone(Goings::beats);
    out.beats_ns = recorded > kSleeps * plan_.helpers.longest_beat
                       ? 0
                       : std::max<int64_t>(here_.alone(Goings::beats) - recorded, 0);
    out.cut_ns = std::max<int64_t>(here_.alone(Goings::cut) - recorded_.alone(Goings::cut), 0);
    out.timers_ns = std::max<int64_t>(here_.alone(Goings::timers, true) - recorded_.alone(Goings::timers), 0);
    out.cut_share = std::max(work_ns_ > 0 ? cut_work_ns_ / work_ns_ : 0, bytes_ > 0 ? cut_bytes_ / bytes_ : 0);
    out.processes = plan_.helpers.processes;
    out.signal = plan_.helpers.signal;
    out.limited_ns = plan_.helpers.limited_ns;
    return out;
}

namespace {

std::string words_of_signal(const HelperFindings& findings) {
    const char* const name = ::sigabbrev_np(findings.signal);
    return "ended by a signal (" + (name != nullptr ? "SIG" + std::string(name) : std::to_string(findings.signal)) +
           ")";
}

}  // namespace

std::string ended_by_signal(const HelperFindings& findings) {
    return findings.processes == 0 || findings.cut_share < kWeight
               ? std::string()
               : counted(findings.processes, "process was", "processes were") + " " + words_of_signal(findings) +
                     ": the replay does what was done until then, however long that takes";
}

int64_t alone_ns(const HelperFindings& findings, int64_t asleep_ns) {
    return findings.beats_ns + findings.cut_ns + std::min(findings.timers_ns, std::max<int64_t>(asleep_ns, 0));
}

std::string alone_at_work(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, double share) {
    const int64_t alone = alone_ns(findings, asleep_ns);
    if (alone <= kLittleUnsaid || static_cast<double>(alone) <= share * static_cast<double>(elapsed_ns)) {
        return {};
    }
    const bool cut = findings.cut_ns > alone - findings.cut_ns;
    return "for " + format_duration(alone) + " of the " + format_duration(elapsed_ns) + " nothing went on but " +
           (cut ? "what was " + words_of_signal(findings) : "sleeps one after the other, beside which others worked") +
           " when recorded: the job would be done earlier here";
}

int64_t kept_by_limit(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, int64_t recorded_ns) {
    return std::clamp<int64_t>(elapsed_ns - recorded_ns, 0, std::min(findings.limited_ns, asleep_ns));
}

std::string limits_rate(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, int64_t recorded_ns) {
    constexpr double kSleeps = 0.1, kOtherwise = 0.05;
    const int64_t limited = std::min(findings.limited_ns, asleep_ns);
    const double off = std::abs(static_cast<double>(elapsed_ns) - static_cast<double>(recorded_ns));
    if (limited <= kLittleUnsaid || static_cast<double>(limited) <= kSleeps * static_cast<double>(elapsed_ns) ||
        off <= kOtherwise * static_cast<double>(recorded_ns)) {
        return {};
    }
    return format_duration(limited) +
           " are sleeps between which a task moves as much each time: if they limit a rate " +
           "(pv -L, rsync --bwlimit), they would be " + (elapsed_ns > recorded_ns ? "shorter" : "longer") + " here";
}

}  // namespace reprise
