// SPDX-License-Identifier: MIT
#include "cli/what_if_options.h"

#include <cmath>

#include "formats/support/error.h"

namespace reprise::cli {
namespace {

double number_of(const WhatIfFactor& factor, const std::string& word) {
    size_t used = 0;
    double value = 0.0;
    try {
        value = std::stod(word, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != word.size() || !std::isfinite(value) || !(value > 0.0)) {
        const std::string_view also = factor.fallback == "auto" ? "auto or " : "";
        throw usage_error("--" + std::string(factor.option) + " must be " + std::string(also) + "a number above 0",
                          std::string(factor.hint));
    }
    return value;
}

}  // namespace

void add_what_if_options(po::options_description& add, bool variants) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        add.add_options()(std::string(factor.option).c_str(),
                          po::value<std::string>()->default_value(std::string(factor.fallback))->value_name("X"),
                          std::string(factor.help).c_str());
    }
    if (!variants) {
        return;
    }
    const WhatIf none;
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        auto* const value = po::value<std::string>()->value_name(std::string(variant.value));
        if (!(none.*variant.member).empty()) {
            value->default_value(none.*variant.member);
        }
        add.add_options()(std::string(variant.option).c_str(), value, std::string(variant.help).c_str());
    }
}

WhatIf what_if_of(const po::variables_map& values) {
    WhatIf what_if;
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        if (factor.fallback != "auto" || !is_auto(values, factor.option)) {
            what_if.speeds.*factor.member = number_of(factor, values[std::string(factor.option)].as<std::string>());
        }
    }
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        if (values.count(std::string(variant.option)) != 0) {
            what_if.*variant.member = values[std::string(variant.option)].as<std::string>();
        }
    }
    return what_if;
}

bool is_auto(const po::variables_map& values, std::string_view option) {
    return values[std::string(option)].as<std::string>() == "auto";
}

void put_what_if(Json& json, const WhatIf& what_if, bool variants) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        json[std::string(factor.key)] = what_if.speeds.*factor.member;
    }
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        if (variants) {
            const std::string& asked = what_if.*variant.member;
            json[std::string(variant.key)] = asked.empty() ? Json(nullptr) : Json(asked);
        }
    }
}

}  // namespace reprise::cli
