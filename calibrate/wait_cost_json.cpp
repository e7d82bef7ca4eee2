// SPDX-License-Identifier: MIT
#include "calibrate/wait_cost_json.h"

#include <nlohmann/json.hpp>

namespace reprise {

void add_wait_cost(nlohmann::ordered_json& object, const WaitCost& cost) {
    if (cost.measured()) {
        object[kWaitCostKey] = {{"wait_ns", WaitCost::kWaits},
                                {"extra_ns", cost.extra_ns},
                                {"over_ns", cost.over_ns},
                                {"spread_ns", cost.spread_ns}};
    }
}

WaitCost wait_cost_of(const nlohmann::ordered_json& object) {
    constexpr double kMost = 1e9;  // ns
    WaitCost out;
    try {
        const auto& found = object.at(kWaitCostKey);
        if (found.at("wait_ns") != nlohmann::ordered_json(WaitCost::kWaits) ||
            found.at("extra_ns").size() != out.extra_ns.size()) {
            return {};
        }
        found.at("extra_ns").get_to(out.extra_ns);
        found.at("over_ns").get_to(out.over_ns);
        if (const auto spread = found.find("spread_ns"); spread != found.end()) {  // old profiles do not say it
            if (spread->size() != out.spread_ns.size()) {
                return {};
            }
            spread->get_to(out.spread_ns);
        }
    } catch (const nlohmann::json::exception&) {
        return {};
    }
    double before = 0;  // longer waits do not cost less
    for (const double extra : out.extra_ns) {
        if (!(extra >= before && extra <= kMost)) {
            return {};
        }
        before = extra;
    }
    for (const double spread : out.spread_ns) {
        if (!(spread >= 0 && spread <= kMost)) {
            return {};
        }
    }
    return out.over_ns > 0 && out.over_ns <= kMost ? out : WaitCost{};
}

}  // namespace reprise
