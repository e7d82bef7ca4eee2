// SPDX-License-Identifier: MIT
#include "formats/raw/costs.h"

#include <nlohmann/json.hpp>

namespace reprise {
namespace {

int64_t cost(const nlohmann::json& object, const char* key) {
    constexpr int64_t kMost = 100'000'000;  // a huge page takes up to milliseconds
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer()) {
        return 0;
    }
    const auto value = found->get<int64_t>();
    return value < 0 || value > kMost ? 0 : value;
}

}  // namespace

std::string RecorderCosts::json() const {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
#define RECORDER_COST(name, key, meaning) out[key] = name;
#include "formats/raw/costs.def"
    return out.dump();
}

RecorderCosts RecorderCosts::of(std::string_view json) {
    RecorderCosts out;
    const auto object = nlohmann::json::parse(json, nullptr, false);
    if (!object.is_object()) {
        return out;
    }
#define RECORDER_COST(name, key, meaning) out.name = cost(object, key);
#include "formats/raw/costs.def"
    return out;
}

}  // namespace reprise
