// SPDX-License-Identifier: MIT
#include "analyze/job/sample_order.h"

#include <algorithm>
#include <unordered_map>

#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr size_t kLeast = 16;
constexpr double kInOrder = 0.95;    // of steps forward
constexpr double kWhole = 0.5;       // a window of that share of the set is the set
constexpr double kOutliers = 0.001;  // of the reads, may come earlier than the window allows

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string_view sample_order_name(SampleOrder::Kind kind) {
    switch (kind) {
        case SampleOrder::Kind::too_few: return "too few";
        case SampleOrder::Kind::in_order: return "in order";
        case SampleOrder::Kind::windowed: return "shuffled in a window";
        case SampleOrder::Kind::shuffled: return "shuffled";
    }
    return "";
}

SampleOrder order_of(std::span<const SampleRead> reads) {
    SampleOrder out;
    out.samples = reads.size();
    std::unordered_map<TaskId, uint32_t> last;
    size_t steps = 0, forward = 0;
    std::vector<int64_t> early;
    early.reserve(reads.size());
    for (size_t i = 0; i < reads.size(); ++i) {
        const auto [of_task, fresh] = last.try_emplace(reads[i].task, reads[i].rank);
        if (!fresh && of_task->second != reads[i].rank) {
            ++steps;
            forward += reads[i].rank > of_task->second ? 1 : 0;
            of_task->second = reads[i].rank;
        }
        early.push_back(static_cast<int64_t>(reads[i].rank) - static_cast<int64_t>(i));
    }
    if (reads.size() < kLeast || steps == 0) {
        return out;
    }
    out.forward_share = static_cast<double>(forward) / static_cast<double>(steps);
    out.window = static_cast<double>(std::max<int64_t>(percentile(std::move(early), 1 - kOutliers), 0) + 1);
    out.kind = out.forward_share >= kInOrder                              ? SampleOrder::Kind::in_order
               : out.window >= kWhole * static_cast<double>(reads.size()) ? SampleOrder::Kind::shuffled
                                                                          : SampleOrder::Kind::windowed;
    return out;
}

bool natural_less(std::string_view a, std::string_view b) {
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (!is_digit(a[i]) || !is_digit(b[j])) {
            if (a[i] != b[j]) {
                return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
            }
            ++i;
            ++j;
            continue;
        }
        const auto number = [](std::string_view text, size_t& at) {
            while (at < text.size() && text[at] == '0') {
                ++at;
            }
            const size_t from = at;
            while (at < text.size() && is_digit(text[at])) {
                ++at;
            }
            return text.substr(from, at - from);
        };
        const std::string_view x = number(a, i), y = number(b, j);
        if (x.size() != y.size()) {
            return x.size() < y.size();
        }
        if (x != y) {
            return x < y;
        }
    }
    // Equal but for leading zeros or an end: bytes decide, so that the order is total.
    return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

}  // namespace reprise
