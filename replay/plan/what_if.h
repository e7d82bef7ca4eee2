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
    std::string sync;         // empty: ranks wait for each other as recorded
    std::string scale = "1";  // transform/scale.h
    std::string epochs;       // empty: as recorded
    // Empty: as recorded; else the value, or "yes" where there is none.
    std::string direct, sync_writes, mmap_as_read, read_as_mmap, prefetch, read_ahead;
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

struct WhatIfAccess {
    std::string_view option, key;
    std::string WhatIf::*member;
    std::string_view value, given, help;
};

/// In the order of what_if.def.
inline constexpr std::array kWhatIfFactors{
#define FACTOR(option, key, member, fallback, causal, help, hint) \
    WhatIfFactor{option, key, &Speeds::member, fallback, causal, help, hint},
#define VARIANT(option, key, member, value, help)
#define ACCESS(option, key, member, value, given, help)
#include "replay/plan/what_if.def"
};
inline constexpr std::array kWhatIfVariants{
#define FACTOR(option, key, member, fallback, causal, help, hint)
#define VARIANT(option, key, member, value, help) WhatIfVariant{option, key, &WhatIf::member, value, help},
#define ACCESS(option, key, member, value, given, help)
#include "replay/plan/what_if.def"
};
inline constexpr std::array kWhatIfAccesses{
#define FACTOR(option, key, member, fallback, causal, help, hint)
#define VARIANT(option, key, member, value, help)
#define ACCESS(option, key, member, value, given, help) WhatIfAccess{option, key, &WhatIf::member, value, given, help},
#include "replay/plan/what_if.def"
};

inline constexpr double kLeastFactor = 0.001, kMostFactor = 1000;
/// Whether it is a number in that range.
bool valid_factor(double value);
/// "--cpu-speed is 0, expected auto or a number from 0.001 to 1000"
std::string wrong_factor(const WhatIfFactor& factor, std::string_view given);

/// Throws Error (usage) where a factor is out of range, or needs another pace.
void check_factors(const Speeds& speeds, bool causal);

/// The options as given, "--time-scale 2 --gpus 8", without those that change nothing.
std::string to_string(const WhatIf& what_if);

/// The factors into Header::extra of a run's log.
void put_factors(const Speeds& speeds, std::map<std::string, std::string>& extra);

}  // namespace reprise
