// SPDX-License-Identifier: MIT
// The table of metrics (metrics.def).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace reprise {

enum class MetricType : uint8_t { counter, gauge, histogram };

enum class Metric : uint8_t {
#define METRIC(name, type, labels, help) name,
#include "metrics/metrics.def"
};

struct MetricInfo {
    std::string_view name;  // as served
    MetricType type;
    std::string_view labels;  // comma-separated; empty: none
    std::string_view help;
};

namespace detail {
inline constexpr MetricInfo kMetrics[] = {
#define METRIC(name, type, labels, help) {"reprise_" #name, MetricType::type, labels, help},
#include "metrics/metrics.def"
};
}  // namespace detail

/// All rows, in the order in which they are served.
constexpr std::span<const MetricInfo> all_metrics() { return detail::kMetrics; }
inline constexpr size_t kMetricCount = std::size(detail::kMetrics);
constexpr const MetricInfo& metric_info(Metric metric) { return detail::kMetrics[static_cast<size_t>(metric)]; }
constexpr std::string_view metric_type_name(MetricType type) {
    switch (type) {
        case MetricType::counter: return "counter";
        case MetricType::gauge: return "gauge";
        case MetricType::histogram: return "histogram";
    }
    return "";
}

}  // namespace reprise
