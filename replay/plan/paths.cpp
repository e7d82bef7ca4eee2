// SPDX-License-Identifier: MIT
// Path mapping and the openat2 calls that hold everything beneath the root.
#include "replay/plan/paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/path.h"

namespace reprise {

namespace {

/// Calls visit(component) for every non-empty component; stops where it returns false.
template <typename Visit>
bool each_component(std::string_view path, Visit visit) {
    while (!path.empty()) {
        const size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
        if (!part.empty() && !visit(part)) {
            return false;
        }
    }
    return true;
}

/// Most recorded paths are clean already, and a log may have millions.
bool is_clean_absolute(std::string_view path) {
    if (path.size() < 2 || path[0] != '/' || path.back() == '/') {
        return false;
    }
    for (size_t i = 0; i + 1 < path.size(); ++i) {
        if (path[i] == '/' && (path[i + 1] == '/' || path[i + 1] == '.')) {
            return false;
        }
    }
    return true;
}

bool kernel_takes(std::string_view relative) {
    if (relative.size() >= PATH_MAX) {
        return false;
    }
    return each_component(relative, [](std::string_view part) { return part.size() <= NAME_MAX; });
}

/// Whether a rule ends at a comma: `before` is one as it stands, and `after` begins another.
bool separates(std::string_view before, std::string_view after) {
    return before.find('=') != before.npos &&
           (after.starts_with('/') || after.substr(0, after.find(',')).find('=') != after.npos);
}

std::vector<std::string> split_rules(std::string_view text) {
    std::vector<std::string> rules;
    std::string rule;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i).starts_with("\\,")) {
            rule += text[++i];
        } else if (text[i] == ',' && separates(rule, text.substr(i + 1))) {
            rules.push_back(std::exchange(rule, {}));
        } else {
            rule += text[i];
        }
    }
    rules.push_back(rule);
    return rules;
}

/// `typed`: what the rule is a part of.
Error wrong_rule(const std::string& text, const std::string& typed, std::string_view why) {
    return usage_error("--map '" + escape_line(typed) +
                           "': " + (text == typed ? "" : "in '" + escape_line(text) + "' ") + std::string(why),
                       "expected OLD=NEW: an absolute recorded path and a path relative to the root, for "
                       "example --map /data/train=train");
}

PathMap::Rule rule_of(const std::string& text, const std::string& typed) {
    const auto wrong = [&](std::string_view why) { return wrong_rule(text, typed, why); };
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
        throw wrong("there is no '='");
    }
    const std::string_view from = std::string_view(text).substr(0, equals);
    const std::string_view to = std::string_view(text).substr(equals + 1);
    if (!from.starts_with('/')) {
        throw wrong("OLD is not absolute");
    }
    if (to.starts_with('/')) {
        throw wrong("NEW is not relative to the root");
    }
    const auto clean_from = clean_path_within(from);
    const auto clean_to = clean_path_within(to);
    if (!clean_from) {
        throw wrong("OLD leads above '/'");
    }
    if (!clean_to) {
        throw wrong("NEW leads out of the root");
    }
    if (text.find('\0') != std::string::npos) {
        throw wrong("it holds a NUL byte");
    }
    return {*clean_from, *clean_to == "." ? "" : *clean_to};
}

}  // namespace

bool PathMap::add(Rule rule) {
    const auto same =
        std::find_if(rules_.begin(), rules_.end(), [&](const Rule& other) { return other.from == rule.from; });
    if (same != rules_.end()) {
        return same->to == rule.to;
    }
    const auto place = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const Rule& other) { return other.from.size() < rule.from.size(); });
    rules_.insert(place, std::move(rule));
    return true;
}

PathMap PathMap::parse(const std::vector<std::string>& given) {
    PathMap map;
    for (const std::string& typed : given) {
        for (const std::string& text : split_rules(typed)) {
            if (!map.add(rule_of(text, typed))) {
                throw wrong_rule(text, typed, "another --map gives the same OLD a different NEW");
            }
        }
    }
    return map;
}

PathMap PathMap::behind(const std::function<std::string(const std::string&)>& real_name) const {
    PathMap map;
    for (const Rule& rule : rules_) {
        if (!map.add({real_name(rule.from), rule.to})) {
            throw usage_error("--map " + escape_line(rule.from) + "=" + escape_line(rule.to.empty() ? "." : rule.to) +
                                  ": another --map places " + escape_line(real_name(rule.from)) +
                                  " elsewhere, to which a link leads",
                              "give one of them");
        }
    }
    return map;
}

std::optional<std::string> PathMap::map(std::string_view recorded) const {
    if (!recorded.starts_with('/') || recorded.find('\0') != std::string_view::npos) {
        return std::nullopt;
    }
    std::string cleaned;
    if (!is_clean_absolute(recorded)) {
        auto clean = clean_path_within(recorded);
        if (!clean) {
            return std::nullopt;
        }
        cleaned = std::move(*clean);
        recorded = cleaned;
    }
    std::string out;
    const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                   [&](const Rule& candidate) { return is_or_lies_below(recorded, candidate.from); });
    if (rule == rules_.end()) {
        out = recorded.substr(1);
    } else {
        std::string_view rest = recorded.substr(rule->from == "/" ? 0 : rule->from.size());
        if (rest.starts_with('/')) {
            rest.remove_prefix(1);
        }
        out = rule->to;
        if (!out.empty() && !rest.empty()) {
            out += '/';
        }
        out += rest;
    }
    if (std::string_view(out).substr(0, out.find('/')).starts_with(kMarkerName)) {
        return std::nullopt;
    }
    if (!kernel_takes(out)) {
        return std::nullopt;
    }
    return out.empty() ? "." : out;
}

bool PathMap::is_above_rule(std::string_view recorded) const {
    return std::none_of(rules_.begin(), rules_.end(),
                        [&](const Rule& rule) { return is_or_lies_below(recorded, rule.from); }) &&
           std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) { return lies_below(rule.from, recorded); });
}

std::optional<std::string> PathMap::map_link(std::string_view link, std::string_view target) const {
    const auto place = map(link);
    if (!place || *place == "." || target.empty()) {
        return std::nullopt;
    }
    std::string full;
    if (!target.starts_with('/')) {
        const auto clean = clean_path_within(link);
        full = clean->substr(0, clean->rfind('/') + 1);
    }
    full += target;
    const auto destination = map(full);
    if (!destination) {
        return std::nullopt;
    }
    const size_t slash = place->rfind('/');
    return relative_from(slash == std::string::npos ? "." : std::string_view(*place).substr(0, slash), *destination);
}

std::string PathMap::to_options() const {
    std::string text;
    for (const Rule& rule : rules_) {
        text += (text.empty() ? "--map " : " --map ") + rule.from + "=" + (rule.to.empty() ? "." : rule.to);
    }
    return text.empty() ? "no --map" : text;
}

nlohmann::json PathMap::to_json() const {
    auto json = nlohmann::json::object();
    for (const Rule& rule : rules_) {
        json[percent_encode(rule.from)] = percent_encode(rule.to.empty() ? "." : rule.to);
    }
    return json;
}

PathMap PathMap::from_json(const nlohmann::json& json, std::string_view where) {
    const auto wrong = [&] {
        return bad_input(where, "the path maps are not an object of absolute to relative paths",
                         "prepare an empty root anew");
    };
    if (!json.is_object()) {
        throw wrong();
    }
    std::vector<std::string> rules;
    for (const auto& [from, to] : json.items()) {
        if (!to.is_string()) {
            throw wrong();
        }
        const std::string old_path = percent_decode(from);
        if (old_path.find('=') == std::string::npos) {
            rules.push_back(old_path + "=" + percent_decode(to.get<std::string>()));
        } else {
            throw wrong();
        }
    }
    try {
        return parse(rules);
    } catch (const Error&) {
        throw wrong();
    }
}

std::string relative_from(std::string_view from, std::string_view to) {
    if (from == ".") {
        from = {};
    }
    if (to == ".") {
        to = {};
    }
    // Drop the leading components both have.
    while (!from.empty() && !to.empty()) {
        const size_t a = from.find('/');
        const size_t b = to.find('/');
        if (from.substr(0, a) != to.substr(0, b)) {
            break;
        }
        from = a == std::string_view::npos ? std::string_view{} : from.substr(a + 1);
        to = b == std::string_view::npos ? std::string_view{} : to.substr(b + 1);
    }
    std::string out;
    each_component(from, [&](std::string_view) {
        out += out.empty() ? ".." : "/..";
        return true;
    });
    if (!to.empty()) {
        if (!out.empty()) {
            out += '/';
        }
        out += to;
    }
    return out.empty() ? "." : out;
}

std::string percent_encode(std::string_view bytes) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f || c == '%') {
            out += '%';
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    return out;
}

std::string percent_decode(std::string_view text) {
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') {
            return c - '0';
        }
        if (c >= 'A' && c <= 'F') {
            return c - 'A' + 10;
        }
        if (c >= 'a' && c <= 'f') {
            return c - 'a' + 10;
        }
        return -1;
    };
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

int open_beneath(int root, const char* path, int flags, mode_t mode, Links links) {
    open_how how{};
    how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags)) | O_CLOEXEC;
    if ((flags & O_PATH) == 0) {
        how.flags |= O_NOCTTY;
    }
    // openat2, unlike open, refuses a mode without creation.
    how.mode = (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0 ? mode & 07777 : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (links == Links::refuse) {
        how.resolve |= RESOLVE_NO_SYMLINKS;
    }
    for (int tries = 0;; ++tries) {
        const long fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0) {
            return static_cast<int>(fd);
        }
        // EAGAIN: ".." raced with a rename elsewhere; the kernel asks to try again.
        if (errno != EINTR && (errno != EAGAIN || tries > 100)) {
            return -errno;
        }
    }
}

int open_parent(int root, std::string_view path, Links links, std::string_view* last) {
    const size_t slash = path.rfind('/');
    *last = slash == std::string_view::npos ? path : path.substr(slash + 1);
    const std::string parent = slash == std::string_view::npos ? "." : std::string(path.substr(0, slash));
    return open_beneath(root, parent.c_str(), O_PATH | O_DIRECTORY, 0, links);
}

}  // namespace reprise
