// SPDX-License-Identifier: MIT
#include "analyze/job/bounds.h"

#include <nlohmann/json.hpp>

namespace reprise {

nlohmann::ordered_json to_json(const JobBounds& bounds) {
    using Json = nlohmann::ordered_json;
    const auto with = [&](const std::optional<JobBounds::WhatIf>& what) -> Json {
        if (!what) {
            return nullptr;
        }
        return {{"elapsed_ns", what->elapsed}, {"saved_share", bounds.saved(what)}, {"took_s", what->took_s}};
    };
    const JobBounds::Path& path = bounds.path;
    return {{"recorded_ns", bounds.recorded},
            {"modelled", with(bounds.modelled)},
            {"infinitely_fast_storage", with(bounds.storage)},
            {"infinitely_fast_processor", with(bounds.processor)},
            {"infinitely_fast_accelerator", with(bounds.accelerator)},
            {"path", bounds.known() ? Json{{"compute_ns", path.compute},
                                           {"calls_ns", path.calls},
                                           {"storage_ns", path.storage},
                                           {"accelerator_ns", path.accelerator},
                                           {"asleep_ns", path.asleep},
                                           {"unexplained_ns", path.unexplained}}
                                    : Json(nullptr)},
            {"guessed_bytes", bounds.guessed_bytes},
            {"planning_took_s", bounds.planned_s},
            {"doubt", bounds.doubt.empty() ? Json(nullptr) : Json(bounds.doubt)},
            {"why_none", bounds.why_none.empty() ? Json(nullptr) : Json(bounds.why_none)}};
}

}  // namespace reprise
