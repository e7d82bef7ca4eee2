// SPDX-License-Identifier: MIT
// "Did you mean": the known names nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Up to three of `names` that `typed` begins or that are a third of their letters away at most, nearest first.
std::vector<std::string> nearest_names(std::string_view typed, const std::vector<std::string>& names);

/// The same among the leading parts of `paths` that have as many components as `typed`.
std::vector<std::string> nearest_paths(std::string_view typed, const std::vector<std::string_view>& paths);

/// "; did you mean a, b?", or nothing where there are none.
std::string did_you_mean(const std::vector<std::string>& names);

/// "a, b"
std::string join(const std::vector<std::string>& words, std::string_view between);

}  // namespace reprise
