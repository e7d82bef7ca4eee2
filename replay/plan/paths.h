// SPDX-License-Identifier: MIT
// Where a recorded path lies below the root, and opening beneath the root and nowhere else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// What `prepare` leaves in a root (replay/prepare/root_marker.h). No recorded path may name it.
inline constexpr std::string_view kMarkerName = ".reprise-prepared";

/// Recorded absolute paths to paths relative to the root.
///
/// A rule OLD=NEW replaces the leading components OLD by NEW; the longest OLD wins, and it matches whole components
/// only. NEW is relative to the root ("." or empty: the root itself). Without a rule the leading "/" is dropped.
class PathMap {
public:
    struct Rule {
        std::string from;  ///< absolute, lexically clean
        std::string to;    ///< relative, lexically clean; empty: the root itself
        bool operator==(const Rule&) const = default;
    };

    PathMap() = default;
    /// From "OLD=NEW" (the first "=" separates), or "/a=x,/b=y" (which commas: docs/prepare.md). Throws Error (usage)
    /// where OLD is not absolute, NEW would leave the root, or one OLD is given twice with different NEW.
    static PathMap parse(const std::vector<std::string>& rules);

    /// The same rules for the paths that `real_name` says the OLDs are called by in the recording. Throws Error (usage)
    /// where two of them are one.
    PathMap behind(const std::function<std::string(const std::string&)>& real_name) const;

    /// Relative to the root, lexically clean, "." for the root itself. nullopt: the path is empty or relative, holds a
    /// NUL byte, is longer than the kernel takes, would leave the root, or names the marker file.
    std::optional<std::string> map(std::string_view recorded) const;

    /// What a recorded symbolic link at `link` should hold below the root: a relative target that leads to where the
    /// recorded target lies. nullopt where either end has no place below the root.
    std::optional<std::string> map_link(std::string_view link, std::string_view target) const;

    /// Whether the path is a parent of some OLD and no rule says where it lies itself: its place in the root is not
    /// where OLD lies.
    bool is_above_rule(std::string_view recorded) const;

    const std::vector<Rule>& rules() const { return rules_; }  ///< longest `from` first
    bool operator==(const PathMap&) const = default;

    /// As on a command line: "--map /a=. --map /b=c"; "no --map" where there are no rules.
    std::string to_options() const;
    /// An object {"OLD": "NEW"}, bytes that are not plain ASCII as %NN.
    nlohmann::json to_json() const;
    /// Throws Error (bad_input) with `where` for anything else.
    static PathMap from_json(const nlohmann::json& json, std::string_view where);

private:
    bool add(Rule rule);  // false: another one places the same path elsewhere

    std::vector<Rule> rules_;
};

/// `to` as seen from the directory `from`, both relative to the root and clean: ("a/b", "a/c/d") is "../c/d".
std::string relative_from(std::string_view from, std::string_view to);

/// Bytes outside plain ASCII, and "%", as %NN; decode is the reverse and takes malformed escapes as they stand.
std::string percent_encode(std::string_view bytes);
std::string percent_decode(std::string_view text);

/// How a path may be walked. Both forbid leaving the root and magic links (/proc/PID/fd and the like), in the kernel.
enum class Links : uint8_t {
    refuse,  ///< a symbolic link anywhere is ELOOP
    follow,  ///< links are followed while they stay beneath the root
};

/// openat2 relative to `root`. `path` is relative ("." is the root). O_CLOEXEC and O_NOCTTY are added. Returns the
/// descriptor, or -errno: EXDEV where the path would leave the root, ELOOP for a refused link.
int open_beneath(int root, const char* path, int flags, mode_t mode, Links links);

/// A descriptor (O_PATH | O_DIRECTORY) of the directory that holds `path`, and its last component. -errno as above.
int open_parent(int root, std::string_view path, Links links, std::string_view* last);

}  // namespace reprise
