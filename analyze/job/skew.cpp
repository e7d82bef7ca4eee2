// SPDX-License-Identifier: MIT
#include "analyze/job/skew.h"

#include <algorithm>
#include <numeric>

namespace reprise {

Skew skew_of(std::vector<double> values) {
    std::erase_if(values, [](double value) { return !(value > 0); });
    Skew out;
    out.count = values.size();
    if (values.empty()) {
        return out;
    }
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    out.most = values.back();
    out.mean = sum / n;
    double ranked = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        ranked += static_cast<double>(i + 1) * values[i];
    }
    out.gini = std::max(0.0, 2 * ranked / (n * sum) - (n + 1) / n);
    const size_t top = std::max<size_t>(values.size() / 10, 1);
    out.top_share = std::accumulate(values.end() - static_cast<std::ptrdiff_t>(top), values.end(), 0.0) / sum;
    return out;
}

}  // namespace reprise
