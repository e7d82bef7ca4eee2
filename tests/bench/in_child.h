// SPDX-License-Identifier: MIT
// For benchmarks whose steps are measured in a process of their own, so that the memory of one is not that of another.
#pragma once

#include <errno.h>  // NOLINT(modernize-deprecated-headers): program_invocation_short_name
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace reprise::bench {

[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
    std::exit(1);
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// What a process of its own measured, its greatest memory and its processor time.
struct Measured {
    double value = 0, peak_mib = 0, cpu_s = 0;
};

/// `work` returns what it measured, not below 0.
inline Measured in_child(const std::function<double()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) {
        give_up("no pipe");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        double value = -1;
        try {
            value = work();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
        }
        const bool told = ::write(ends[1], &value, sizeof value) == sizeof value;
        std::fflush(stderr);
        std::_Exit(told && value >= 0 ? 0 : 1);
    }
    ::close(ends[1]);
    Measured measured;
    const bool heard = ::read(ends[0], &measured.value, sizeof measured.value) == sizeof measured.value;
    ::close(ends[0]);
    int status = 0;
    rusage usage{};
    if (!heard || ::wait4(child, &status, 0, &usage) != child || status != 0) {
        give_up("a step went wrong");
    }
    measured.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    measured.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return measured;
}

}  // namespace reprise::bench
