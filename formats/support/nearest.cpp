// SPDX-License-Identifier: MIT
#include "formats/support/nearest.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace reprise {
namespace {

/// Edits needed to turn `a` into `b`; a swap of neighbours counts as one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        d[i][0] = i;
    }
    std::iota(d[0].begin(), d[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view typed, const std::vector<std::string>& names) {
    constexpr std::size_t kLongestName = 32;
    if (typed.size() > kLongestName) {
        return {};
    }
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const std::string& name : names) {
        const std::size_t distance = edit_distance(typed, name);
        const bool starts = typed.size() > 1 && name.starts_with(typed);
        if (starts || distance <= std::max<std::size_t>(1, name.size() / 3)) {
            found.emplace_back(starts ? 0 : distance, name);
        }
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> nearest;
    for (std::size_t i = 0; i < found.size() && i < 3; ++i) {
        nearest.push_back(found[i].second);
    }
    return nearest;
}

std::vector<std::string> nearest_paths(std::string_view typed, const std::vector<std::string_view>& paths) {
    constexpr std::size_t kMost = 10'000;  // comparing takes its time
    const auto depth = std::count(typed.begin(), typed.end(), '/');
    std::set<std::string_view> parts;
    for (const std::string_view path : paths) {
        std::size_t end = 0;
        for (auto left = depth; left >= 0 && end != std::string_view::npos; --left) {
            end = path.find('/', end + (left == depth ? 0 : 1));
        }
        if (parts.insert(path.substr(0, end)).second && parts.size() >= kMost) {
            break;
        }
    }
    return nearest_names(typed, {parts.begin(), parts.end()});
}

std::string did_you_mean(const std::vector<std::string>& names) {
    return names.empty() ? std::string() : "; did you mean " + join(names, ", ") + "?";
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : std::string(between)) + word;
    }
    return out;
}

}  // namespace reprise
