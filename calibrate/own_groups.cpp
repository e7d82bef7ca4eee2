// SPDX-License-Identifier: MIT
#include "calibrate/own_groups.h"

#include <fstream>
#include <sstream>

namespace reprise {
namespace {

namespace fs = std::filesystem;

std::string text_of(const char* path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

/// "cpu,cpuacct" has "cpu".
bool lists(std::string_view names, std::string_view name) {
    return ("," + std::string(names) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

struct Mount {
    std::string root;
    fs::path at;
};

/// "36 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory": fields before the dash vary.
std::optional<Mount> mount_of(const std::string& mounts, std::string_view type, std::string_view controller) {
    std::istringstream lines(mounts);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word, at, found, source, options;
        Mount mount;
        words >> word >> word >> word >> mount.root >> at;
        while (words >> word && word != "-") {
        }
        words >> found >> source >> options;
        if (words && found == type && (controller.empty() || lists(options, controller))) {
            mount.at = at;
            return mount;
        }
    }
    return std::nullopt;
}

/// "4:memory:/a", "0::/a"
std::string name_in(const std::string& own, std::string_view controller) {
    std::istringstream lines(own);
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string names = line.substr(first + 1, second - first - 1);
        if (controller.empty() ? names.empty() : lists(names, controller)) {
            return line.substr(second + 1);
        }
    }
    return "/";
}

OwnGroup group_at(int version, const Mount& mount, const std::string& name) {
    const fs::path below = fs::path(name).lexically_relative(mount.root);
    std::error_code error;
    if (below == ".") {
        return {version, mount.at, mount.at};
    }
    const bool shown = !below.empty() && *below.begin() != ".." && fs::is_directory(mount.at / below, error);
    return {version, mount.at, shown ? mount.at / below : mount.at, shown};
}

}  // namespace

GroupTexts read_group_texts() { return {text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup")}; }

std::optional<OwnGroup> own_group_of(std::string_view controller, const GroupTexts& texts) {
    const auto mount = mount_of(texts.mounts, "cgroup", controller);
    return mount ? std::optional(group_at(1, *mount, name_in(texts.own, controller))) : std::nullopt;
}

std::optional<OwnGroup> own_unified_group(const GroupTexts& texts) {
    const auto mount = mount_of(texts.mounts, "cgroup2", {});
    return mount ? std::optional(group_at(2, *mount, name_in(texts.own, {}))) : std::nullopt;
}

std::optional<uint64_t> number_in(const fs::path& path, std::string_view word) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(word)) {
            continue;
        }
        const std::string rest = line.substr(word.size());
        const bool whole = word.empty() || word.back() == '=' || rest.starts_with(' ');
        uint64_t value = 0;
        if (whole && std::istringstream(rest) >> value) {
            return value;
        }
    }
    return std::nullopt;
}

}  // namespace reprise
