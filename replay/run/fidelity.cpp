// SPDX-License-Identifier: MIT
#include "replay/run/fidelity.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "calibrate/clock.h"

namespace reprise {
namespace {

constexpr double kLeast = 50e6;  // ns

std::string decimals(double value, int digits) {
    char out[64];
    std::snprintf(out, sizeof out, "%.*f", digits, value);
    return out;
}
std::string seconds(double ns) { return decimals(ns / 1e9, 2) + " s"; }
std::string milliseconds(double ns) { return decimals(ns / 1e6, 0) + " ms"; }

}  // namespace

void judge(Fidelity& fidelity, const Histogram& lateness, int64_t elapsed_ns, int cpus) {
    const auto elapsed = static_cast<double>(elapsed_ns);
    const std::string who = "This machine could not keep up: ";
    std::string others;
    if (fidelity.other_cpus > 0.1 * cpus) {
        others = "; other programs used " + decimals(fidelity.other_cpus, 1) + " of " + std::to_string(cpus) + " CPUs";
    }
    if (fidelity.stolen_cpus > 0.1 * cpus) {
        others += "; steal time: " + decimals(fidelity.stolen_cpus, 1) + " of " + std::to_string(cpus) + " CPUs";
    }
    const auto late = static_cast<double>(lateness.percentile(0.99));
    if (late > std::max(kLeast, kMostLateShare * elapsed)) {
        const auto longer = static_cast<double>(fidelity.calls_longer_ns);
        fidelity.failures.push_back(
            longer < late / 2 ? who + "p99 lateness of ops is " + milliseconds(late) + others + "."
                              : "This storage could not keep up: p99 lateness of ops is " + milliseconds(late) +
                                    ", as calls on files took " + seconds(longer) +
                                    " longer than recorded (--pace causal lets the job take as long as it does here).");
    }
    const double error = fidelity.delay_error.sum();
    if (!fidelity.path_known &&
        error > std::max(kLeast, kMostDelayError * std::max(elapsed, fidelity.delays_asked_ns))) {
        fidelity.failures.push_back(who + "sleep overshoot: " + milliseconds(error) + " over " +
                                    seconds(fidelity.delays_asked_ns) + others + ".");
    }
    if (fidelity.added_ns > std::max(kLeast, kMostAdded * elapsed)) {
        fidelity.failures.push_back(who + seconds(fidelity.added_ns) + " of the " + seconds(elapsed) +
                                    " were added on the critical path by thread starts, wakeups, sleeps and compute" +
                                    others + ".");
    }
    const auto recorded = static_cast<double>(std::max<int64_t>(fidelity.recorded_run_queue_ns, 0));
    const double waited = fidelity.computing_took_ns - fidelity.computing_asked_ns;
    if (waited - recorded > std::max(kLeast, kMostProcessorShare * std::max(elapsed, fidelity.computing_asked_ns))) {
        fidelity.failures.push_back(
            who + "compute of " + seconds(fidelity.computing_asked_ns) + " waited " + seconds(waited) + " for a CPU" +
            (recorded > 0 ? " (recorded: " + seconds(recorded) + ")" : std::string()) +
            (others.empty() ? "; it has only " + std::to_string(cpus) + (cpus == 1 ? " CPU" : " CPUs") : others) + ".");
    }
}

ProcessorUse read_processor_use() {
    ProcessorUse use;
    use.at_ns = monotonic_ns();
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    const double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
    std::ifstream in("/proc/stat");
    for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
        std::istringstream words(line.substr(3));
        unsigned cpu = 0;
        // The first line is the sum of all.
        if (line[3] == ' ' || !(words >> cpu) || (known && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set)))) {
            continue;
        }
        double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
        if (words >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal) {
            use.machine_ns = std::max(use.machine_ns, 0.0) + (user + nice + system + irq + soft) * tick_ns;
            use.stolen_ns += steal * tick_ns;
        }
    }
    std::ifstream memory("/proc/vmstat");
    for (std::string name; memory >> name;) {
        int64_t value = 0;
        if (memory >> value && name == "drop_pagecache") {
            use.caches_dropped = value;
        }
    }
    for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage one{};
        getrusage(who, &one);
        for (const timeval& t : {one.ru_utime, one.ru_stime}) {
            use.own_ns += static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3;
        }
    }
    return use;
}

double others_between(const ProcessorUse& from, const ProcessorUse& to) {
    if (from.machine_ns < 0 || to.machine_ns < 0 || to.at_ns <= from.at_ns) {
        return -1.0;
    }
    const double used = to.machine_ns - from.machine_ns - (to.own_ns - from.own_ns);
    return std::max(used, 0.0) / static_cast<double>(to.at_ns - from.at_ns);
}

double stolen_between(const ProcessorUse& from, const ProcessorUse& to) {
    if (from.machine_ns < 0 || to.machine_ns < 0 || to.at_ns <= from.at_ns) {
        return -1.0;
    }
    return std::max(to.stolen_ns - from.stolen_ns, 0.0) / static_cast<double>(to.at_ns - from.at_ns);
}

double own_between(const ProcessorUse& from, const ProcessorUse& to) {
    if (to.at_ns <= from.at_ns) {
        return -1.0;
    }
    return std::max(to.own_ns - from.own_ns, 0.0) / static_cast<double>(to.at_ns - from.at_ns);
}

}  // namespace reprise
