// SPDX-License-Identifier: MIT
// Asynchronous requests as JSON.
#include <nlohmann/json.hpp>

#include "analyze/summary.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

Json depth_json(const Histogram& depth) {
    Json shares = Json::array();
    for (const DepthShare& part : depth_shares(depth)) {
        shares.push_back({{"from", part.from}, {"to", part.to}, {"share", part.share}});
    }
    return {{"mean", depth.mean()},         {"p50", depth.percentile(0.5)},
            {"p90", depth.percentile(0.9)}, {"p99", depth.percentile(0.99)},
            {"max", depth.max()},           {"busy_s", static_cast<double>(depth.count()) / 1e9},
            {"time", std::move(shares)}};
}

Json figures_json(const RequestFigures& figures) {
    return {{"requests", figures.requests},
            {"reads", figures.reads},
            {"writes", figures.writes},
            {"failed", figures.failed},
            {"bytes_read", figures.bytes_read},
            {"bytes_written", figures.bytes_written},
            {"latency_ns", to_json(latency_of(figures.latency))},
            {"in_flight", depth_json(figures.depth)}};
}

}  // namespace

Json to_json(const InFlight& requests) {
    if (!requests.any() && requests.unfinished == 0) {
        return nullptr;
    }
    Json out = figures_json(requests.all);
    out["unfinished"] = requests.unfinished;
    Json kinds = Json::object();
    for (size_t does = 0; does < requests.by_kind.size(); ++does) {
        if (requests.by_kind[does] != 0) {
            kinds[std::string(does_name(static_cast<AsyncRequest::Does>(does)))] = requests.by_kind[does];
        }
    }
    out["by_kind"] = std::move(kinds);
    const double part = static_cast<double>(requests.end - requests.begin) / 1e9 / double{InFlight::kParts};
    out["over_time"] = {{"begin_s", static_cast<double>(requests.begin) / 1e9},
                        {"interval_s", part},
                        {"mean_in_flight", requests.over_time}};
    Json rings = Json::array();
    for (const RingFigures& ring : requests.rings) {
        Json row = {{"pid", ring.ring.pid},
                    {"interface", ring.ring.aio ? "libaio" : "io_uring"},
                    {"fd", ring.ring.fd < 0 ? Json(nullptr) : Json(ring.ring.fd)},
                    {"polled", ring.ring.polled}};
        row.update(figures_json(ring));
        rings.push_back(std::move(row));
    }
    out["rings"] = std::move(rings);
    return out;
}

}  // namespace reprise
