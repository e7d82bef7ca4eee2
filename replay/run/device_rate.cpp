// SPDX-License-Identifier: MIT
#include "replay/run/device_rate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "calibrate/mounted.h"
#include "replay/interval/interval.h"

namespace reprise {
namespace {

constexpr size_t kMostSamples = 4096, kMostPieces = 40, kFewestPieces = 8;
constexpr int64_t kShortestPiece = 250'000'000;  // ns; the kernel's limits count in tenths of a second

}  // namespace

void DeviceRate::look(int64_t now) {
    if (root_.empty() || (!samples_.empty() && now - samples_.back().at < apart_)) {
        return;
    }
    if (const auto counter = read_device_counter(root_)) {
        add(now, counter->read_bytes + counter->write_bytes);
    } else {
        root_.clear();
    }
}

void DeviceRate::add(int64_t now, uint64_t bytes) {
    samples_.push_back({now, static_cast<double>(bytes)});
    if (samples_.size() < kMostSamples) {
        return;
    }
    for (size_t i = 0; 2 * i < samples_.size(); ++i) {
        samples_[i] = samples_[2 * i];
    }
    samples_.resize(samples_.size() / 2);
    apart_ = (samples_.back().at - samples_.front().at) / static_cast<int64_t>(samples_.size() - 1);
}

double DeviceRate::bytes_at(int64_t time) const {
    const auto after =
        std::partition_point(samples_.begin(), samples_.end(), [&](const Sample& sample) { return sample.at < time; });
    if (after == samples_.begin() || after == samples_.end()) {
        return after == samples_.begin() ? after->bytes : samples_.back().bytes;
    }
    const Sample& before = after[-1];
    return before.bytes + (after->bytes - before.bytes) * static_cast<double>(time - before.at) /
                              static_cast<double>(after->at - before.at);
}

std::optional<double> DeviceRate::deviation(int64_t begin, int64_t end) const {
    if (samples_.empty()) {
        return std::nullopt;
    }
    begin = std::max(begin, samples_.front().at);
    end = std::min(end, samples_.back().at);
    if (end - begin < static_cast<int64_t>(kFewestPieces) * kShortestPiece) {
        return std::nullopt;
    }
    const auto pieces = std::min(kMostPieces, static_cast<size_t>((end - begin) / kShortestPiece));
    std::vector<double> moved(pieces);
    double from = bytes_at(begin);
    for (size_t i = 0; i < pieces; ++i) {
        const double to = bytes_at(begin + (end - begin) / static_cast<int64_t>(pieces) * static_cast<int64_t>(i + 1));
        moved[i] = to - from;
        from = to;
    }
    const Scatter scatter = scatter_of(moved);
    const bool any = std::any_of(moved.begin(), moved.end(), [](double bytes) { return bytes > 0; });
    return any ? std::optional(scatter.deviation / std::sqrt(static_cast<double>(pieces))) : std::nullopt;
}

}  // namespace reprise
