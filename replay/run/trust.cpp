// SPDX-License-Identifier: MIT
#include "replay/run/trust.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "formats/support/quantity.h"
#include "replay/run/runner.h"

namespace reprise {
namespace {

constexpr double kLittle = 10e6;  // ns; below it nothing is said

std::string cpus_of(double used, int cpus) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2f of ", used);
    return text + counted(static_cast<uint64_t>(cpus), "CPU");
}

/// "14 %"
std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f %%", share < 0.0995 ? 1 : 0, share * 100);
    return text;
}

/// What is known of the speed of this machine's processors beside that of the recording's.
struct SpeedKnown {
    bool verified = false;
    std::string words;
};
SpeedKnown speed_known(const CpuSpeed& speed) {
    switch (speed.source) {
        case CpuSpeed::Source::given: return {true, "CPU speed as asked"};
        case CpuSpeed::Source::same_machine: return {true, "CPU speed verified"};
        case CpuSpeed::Source::no_profile: return {false, "CPU speed not verified: the recording has no profile"};
        case CpuSpeed::Source::same_name:
        case CpuSpeed::Source::profiles: break;
    }
    constexpr double kSure = 0.1;
    char text[96];
    std::snprintf(text, sizeof text, "CPU speed measured, %.2f of the recording's +-%.0f %%", speed.ratio,
                  speed.uncertainty * 100);
    return {speed.uncertainty <= kSure, text};
}

/// What this machine cost the run, if more than a little.
std::vector<std::string> doubts_of(const ReplayResult& result) {
    constexpr double kLate = 5e6, kLateShare = 0.01, kSleepShare = 0.01, kComputeShare = 0.02, kStolen = 0.02,
                     kOthers = 0.1;
    const Fidelity& f = result.fidelity;
    const int cpus = std::max(result.machine.cpus, 1);
    const auto elapsed = static_cast<double>(result.elapsed_ns);
    std::vector<std::string> doubts;
    if (const int64_t late = result.lateness.percentile(0.99);
        result.timed && static_cast<double>(late) > std::max(kLate, kLateShare * elapsed)) {
        doubts.push_back("lateness p99 " + format_duration(late));
    }
    if (const double over = f.delay_error.sum();
        over > std::max(kLittle, kSleepShare * std::max(elapsed, f.delays_asked_ns))) {
        doubts.push_back("sleeps took " + format_duration(std::llround(over)) + " too long");
    }
    const double waited =
        f.computing_took_ns - f.computing_asked_ns - static_cast<double>(std::max<int64_t>(f.recorded_run_queue_ns, 0));
    if (f.computing_asked_ns > 0 &&
        waited > std::max(kLittle, kComputeShare * std::max(elapsed, f.computing_asked_ns))) {
        doubts.push_back("compute ran " + percent(waited / f.computing_asked_ns) + " over: the CPU was shared");
    }
    if (f.stolen_cpus > kStolen * cpus) {
        doubts.push_back("steal time " + cpus_of(f.stolen_cpus, cpus));
    }
    if (f.other_cpus > kOthers * cpus) {
        doubts.push_back("other programs used " + cpus_of(f.other_cpus, cpus));
    }
    return doubts;
}

std::string join(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : "; ") + part;
    }
    return text;
}

/// "This machine could not keep up: p99 lateness ..." without what the word says already.
std::string short_failure(std::string text) {
    constexpr std::string_view kWho = "This machine could not keep up: ";
    if (text.starts_with(kWho)) {
        text.erase(0, kWho.size());
    }
    if (text.ends_with('.')) {
        text.pop_back();
    }
    return text;
}

}  // namespace

std::string_view trust_name(Trust::Level level) {
    switch (level) {
        case Trust::Level::good: return "good";
        case Trust::Level::fair: return "fair";
        case Trust::Level::poor: return "poor";
    }
    return "poor";
}

Trust trust_in(const ReplayResult& result) {
    if (result.ended != "complete") {
        return {Trust::Level::poor, "the run did not finish"};
    }
    if (!result.not_same_job.empty()) {
        return {Trust::Level::poor, "it did not do what the job did"};
    }
    if (!result.fidelity.failures.empty()) {
        return {Trust::Level::poor, short_failure(result.fidelity.failures.front())};
    }
    std::vector<std::string> doubts = doubts_of(result);
    const bool computes = result.timed && result.fidelity.computing_asked_ns > 0;
    const SpeedKnown speed = speed_known(result.cpu_speed);
    if (computes && !speed.verified) {
        doubts.push_back(speed.words);
    }
    if (!doubts.empty()) {
        return {Trust::Level::fair, join(doubts)};
    }
    std::string checked =
        result.timed ? "lateness p99 " + format_duration(result.lateness.percentile(0.99)) : "no times to keep";
    const double stolen = result.fidelity.stolen_cpus;
    checked += stolen < 0       ? ", steal time unknown"
               : stolen < 0.005 ? ", no steal"
                                : ", steal time " + cpus_of(stolen, std::max(result.machine.cpus, 1));
    return {Trust::Level::good, computes ? checked + ", " + speed.words : checked};
}

}  // namespace reprise
