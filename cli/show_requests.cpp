// SPDX-License-Identifier: MIT
#include "cli/show_requests.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/units.h"

namespace reprise::cli {
namespace {

constexpr size_t kMostRows = 16;

std::string number(double value) { return number_cell(value, value < 9.95 ? 2 : 1).text; }

using Pair = std::pair<const RingFigures*, const RingFigures*>;

/// A ring of a run and the recorded one. Logs that are not of one job have other handles; where they have as many
/// rings, the first is held beside the first.
std::vector<Pair> pairs_of(const InFlight& here, const InFlight* recorded) {
    std::vector<Pair> out;
    if (recorded == nullptr || recorded->rings.size() == here.rings.size()) {
        for (size_t i = 0; i < here.rings.size(); ++i) {
            out.emplace_back(&here.rings[i], recorded == nullptr ? nullptr : &recorded->rings[i]);
        }
        return out;
    }
    std::map<RingName, Pair> by_name;
    for (const RingFigures& ring : here.rings) {
        by_name[ring.ring].first = &ring;
    }
    for (const RingFigures& ring : recorded->rings) {
        by_name[ring.ring].second = &ring;
    }
    for (const auto& [name, pair] : by_name) {
        out.push_back(pair);
    }
    return out;
}

/// One figure of a side, a dash where the side has no such ring.
template <class Figure>
Cell cell_of(const RequestFigures* side, Figure figure) {
    return side == nullptr ? Cell("-", nullptr) : figure(*side);
}

std::vector<Cell> ring_cells(std::string_view name, Cell pid, const RequestFigures* here,
                             const RequestFigures* recorded, bool both) {
    std::vector<Cell> cells{name, std::move(pid)};
    const auto add = [&](const auto& figure) {
        cells.push_back(cell_of(here, figure));
        if (both) {
            cells.push_back(cell_of(recorded, figure));
        }
    };
    add([](const RequestFigures& side) { return count_cell(side.requests); });
    add([](const RequestFigures& side) { return Cell(number(side.depth.mean()), side.depth.mean()); });
    for (const double share : {0.5, 0.99, 1.0}) {
        add([share](const RequestFigures& side) {
            return count_cell(static_cast<uint64_t>(side.depth.percentile(share)));
        });
    }
    for (const double share : {0.5, 0.99}) {
        add([share](const RequestFigures& side) { return duration_cell(side.latency.percentile(share)); });
    }
    return cells;
}

}  // namespace

std::string requests_line(const InFlight& here, const InFlight& recorded, std::string_view beside) {
    constexpr size_t kRoom = 108;
    const auto line = [&](std::string_view again) {
        const auto latency = [&](double share) {
            return format_duration(here.all.latency.percentile(share)) + " (" + std::string(again) +
                   format_duration(recorded.all.latency.percentile(share)) + ")";
        };
        return format_count(here.all.requests) + ", " + number(here.all.depth.mean()) + " in flight (" +
               std::string(beside) + " " + number(recorded.all.depth.mean()) + "), latency p50 " + latency(0.5) +
               ", p99 " + latency(0.99);
    };
    const std::string whole = line(std::string(beside) + " ");
    return display_width(whole) <= kRoom ? whole : line("");
}

std::string requests_line(const InFlight& requests) {
    std::vector<std::pair<uint64_t, std::string_view>> kinds;
    for (size_t does = 0; does < requests.by_kind.size(); ++does) {
        if (requests.by_kind[does] != 0) {
            kinds.emplace_back(requests.by_kind[does], does_name(static_cast<AsyncRequest::Does>(does)));
        }
    }
    std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [count, name] : kinds) {
        text += (text.empty() ? "" : ", ") + std::string(name) + " " + format_count(count);
    }
    if (requests.any()) {
        const RequestFigures& all = requests.all;
        text += "; " + number(all.depth.mean()) + " in flight (p50 " +
                format_count(static_cast<uint64_t>(all.depth.percentile(0.5))) + ", max " +
                format_count(static_cast<uint64_t>(all.depth.max())) + "), latency p50 " +
                format_duration(all.latency.percentile(0.5)) + ", p99 " + format_duration(all.latency.percentile(0.99));
    }
    if (requests.unfinished != 0) {
        text += (text.empty() ? "" : "; ") + format_count(requests.unfinished) + " never reported";
    }
    return text;
}

Table rings_table(const InFlight& here, const InFlight* recorded, std::string_view beside) {
    std::vector<Column> columns{{"ring", ""}, {"pid", "", true}};
    for (const char* title : {"requests", "in flight", "p50", "p99", "max", "latency p50", "p99"}) {
        columns.push_back({title, "", true});
        if (recorded != nullptr) {
            columns.push_back({std::string(beside), "", true});
        }
    }
    Table table(std::move(columns));
    std::vector<Pair> pairs = pairs_of(here, recorded);
    if (pairs.empty()) {
        return table;
    }
    const bool both = recorded != nullptr;
    if (pairs.size() > 1) {
        table.row(ring_cells("all " + std::to_string(pairs.size()), Cell("", nullptr), &here.all,
                             both ? &recorded->all : nullptr, both));
        const auto most = [](const Pair& pair) {
            return std::max(pair.first ? pair.first->requests : 0, pair.second ? pair.second->requests : 0);
        };
        std::stable_sort(pairs.begin(), pairs.end(), [&](const Pair& a, const Pair& b) { return most(a) > most(b); });
        pairs.resize(std::min(pairs.size(), kMostRows - 1));
    }
    for (const auto& [one, other] : pairs) {
        const RingFigures& ring = one != nullptr ? *one : *other;
        table.row(ring_cells(ring_name(ring.ring), Cell(std::to_string(ring.ring.pid)), one, other, both));
    }
    return table;
}

Table depths_table(const InFlight& here, const InFlight* recorded, std::string_view beside) {
    std::vector<Column> columns{{"in flight", "", true}, {"of the time", "", true}};
    if (recorded != nullptr) {
        columns.push_back({std::string(beside), "", true});
    }
    Table table(std::move(columns));
    std::map<std::pair<int64_t, int64_t>, std::pair<double, double>> shares;
    for (const DepthShare& part : depth_shares(here.all.depth, true)) {
        shares[{part.from, part.to}].first = part.share;
    }
    if (recorded != nullptr) {
        for (const DepthShare& part : depth_shares(recorded->all.depth, true)) {
            shares[{part.from, part.to}].second = part.share;
        }
    }
    for (const auto& [range, share] : shares) {
        const std::string from = format_count(static_cast<uint64_t>(range.first));
        const std::string to = format_count(static_cast<uint64_t>(range.second));
        std::vector<Cell> cells{range.first == range.second ? from : from + " to " + to, share_cell(share.first)};
        if (recorded != nullptr) {
            cells.push_back(share_cell(share.second));
        }
        table.row(std::move(cells));
    }
    return table;
}

}  // namespace reprise::cli
