// SPDX-License-Identifier: MIT
// What a replay or a prediction changes about the recording, as asked for.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "replay/plan/speeds.h"

namespace reprise {

struct WhatIf {
    Speeds speeds;
    // Asked of another log, which transform/ makes of the recorded one (transform/copies.h):
    std::string gpu_model;  // empty: busy times as recorded
    std::string gpus = "1";
};

/// A factor of recorded times.
struct WhatIfFactor {
    std::string_view option;  // without the dashes
    std::string_view key;
    double Speeds::*member;
    std::string_view fallback;  // where the option is not given: 1 or auto
    bool causal;                // requires --pace causal
    std::string_view help, hint;
};

struct WhatIfVariant {
    std::string_view option, key;
    std::string WhatIf::*member;
    std::string_view value, help;
};

/// In the order of what_if.def.
inline constexpr std::array kWhatIfFactors{
#define FACTOR(option, key, member, fallback, causal, help, hint) \
    WhatIfFactor{option, key, &Speeds::member, fallback, causal, help, hint},
#define VARIANT(option, key, member, value, help)
#include "replay/plan/what_if.def"
};
inline constexpr std::array kWhatIfVariants{
#define FACTOR(option, key, member, fallback, causal, help, hint)
#define VARIANT(option, key, member, value, help) WhatIfVariant{option, key, &WhatIf::member, value, help},
#include "replay/plan/what_if.def"
};

/// Throws Error (usage) where a factor is not a number above 0, or needs another pace.
void check_factors(const Speeds& speeds, bool causal);

/// The factors into Header::extra of a run's log.
void put_factors(const Speeds& speeds, std::map<std::string, std::string>& extra);

}  // namespace reprise
