// SPDX-License-Identifier: MIT
// Metrics as Prometheus reads them: its text format, version 0.0.4.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "metrics/metrics.h"

namespace reprise {

/// What a server says it sends.
inline constexpr std::string_view kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

/// The text of one scrape. Samples may come in any order; the text has them by metric, in the order of the table, each
/// metric after its HELP and TYPE. A metric without samples is left out.
class Exposition {
public:
    using Labels = std::initializer_list<std::string_view>;  // values, as many as the table names

    void add(Metric metric, Labels labels, uint64_t value);
    void add(Metric metric, Labels labels, double value);
    /// `bounds`: upper bounds, ascending. `counts`: of each bucket by itself, and one more, of what lies beyond the
    /// last bound. `sum`: of all values.
    void add(Metric metric, Labels labels, std::span<const double> bounds, std::span<const uint64_t> counts,
             double sum);
    std::string text() const;

private:
    std::string& line(Metric metric, std::string_view suffix, Labels labels, std::string_view bound);

    std::array<std::string, kMetricCount> lines_;
};

/// A label's value between its quotes: backslash, quote and line feed escaped, bytes that are not UTF-8 replaced.
std::string label_value(std::string_view value);
/// Help after its metric's name: backslash and line feed escaped.
std::string help_text(std::string_view help);
/// The shortest number that reads back as `value`; "+Inf", "-Inf", "NaN".
std::string sample_value(double value);

}  // namespace reprise
