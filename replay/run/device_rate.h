// SPDX-License-Identifier: MIT
// How evenly the storage below the root served a run: one behind a limit does so to a fraction of a percent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace reprise {

class DeviceRate {
public:
    /// An empty path: nothing is looked at.
    explicit DeviceRate(std::filesystem::path root) : root_(std::move(root)) {}

    /// Reads the device's counter. Call every 50 ms or so; `now` in CLOCK_MONOTONIC ns.
    void look(int64_t now);
    /// Bytes that the device had moved by then.
    void add(int64_t now, uint64_t bytes);

    /// Standard deviation of the mean rate between two times, as a share of it, from how it varied in pieces of a
    /// quarter second or more. None where there were fewer than eight, or nothing was moved.
    std::optional<double> deviation(int64_t begin, int64_t end) const;

private:
    struct Sample {
        int64_t at = 0;  // ns
        double bytes = 0;
    };
    double bytes_at(int64_t time) const;

    std::filesystem::path root_;
    std::vector<Sample> samples_;
    int64_t apart_ = 0;  // ns, between samples that are kept
};

}  // namespace reprise
