// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/disk_stacks.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

namespace reprise {
namespace {

constexpr size_t kMostStacked = 1024;

/// "254:0"
std::optional<uint32_t> disk_number(std::string_view text) {
    uint32_t high = 0, low = 0;
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, high);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') {
        return std::nullopt;
    }
    const auto second = std::from_chars(first.ptr + 1, end, low);
    if (second.ec != std::errc() || second.ptr != end || high >= 1U << 12 || low >= 1U << 20) {
        return std::nullopt;
    }
    return high << 20 | low;
}

using Disks = std::set<uint32_t>;

/// The parts of `disks` that no stack joins.
std::vector<Disks> parts_of(Disks disks, const DiskStacks& below, const DiskStacks& above) {
    std::vector<Disks> parts;
    while (!disks.empty()) {
        Disks& part = parts.emplace_back();
        std::vector<uint32_t> next = {*disks.begin()};
        disks.erase(disks.begin());
        while (!next.empty()) {
            const uint32_t disk = next.back();
            next.pop_back();
            part.insert(disk);
            for (const DiskStacks* joined : {&below, &above}) {
                const auto found = joined->find(disk);
                for (size_t i = 0; found != joined->end() && i < found->second.size(); ++i) {
                    if (disks.erase(found->second[i]) != 0) {
                        next.push_back(found->second[i]);
                    }
                }
            }
        }
    }
    return parts;
}

std::vector<DiskGroup> groups_of(Disks disks, const DiskStacks& below, const DiskStacks& above) {
    std::vector<DiskGroup> groups;
    for (Disks& part : parts_of(std::move(disks), below, above)) {
        DiskGroup& group = groups.emplace_back();
        for (const uint32_t disk : part) {
            const auto found = below.find(disk);
            if (found == below.end() || std::none_of(found->second.begin(), found->second.end(),
                                                     [&](uint32_t other) { return part.count(other) != 0; })) {
                group.disks.push_back(disk);
            }
        }
        if (group.disks.empty()) {  // a circle: a damaged file
            group.disks.assign(part.begin(), part.end());
        }
        for (const uint32_t disk : group.disks) {
            part.erase(disk);
        }
        if (!part.empty()) {
            group.above = groups_of(std::move(part), below, above);
        }
    }
    return groups;
}

}  // namespace

DiskStacks stacks_of_meta(const std::string& meta) {
    DiskStacks stacks;
    const auto json = nlohmann::json::parse(meta, nullptr, false);
    if (!json.is_object() || !json.contains("stacked_disks") || !json["stacked_disks"].is_object()) {
        return stacks;
    }
    for (const auto& [name, below] : json["stacked_disks"].items()) {
        const std::optional<uint32_t> disk = disk_number(name);
        if (!disk || !below.is_array() || stacks.size() == kMostStacked) {
            continue;
        }
        for (const auto& other : below) {
            if (const auto number = other.is_string() ? disk_number(other.get<std::string>()) : std::nullopt) {
                stacks[*disk].push_back(*number);
            }
        }
    }
    return stacks;
}

std::vector<DiskGroup> disk_groups(const std::vector<uint32_t>& disks, const DiskStacks& stacks) {
    Disks all(disks.begin(), disks.end());
    DiskStacks above;
    for (const auto& [disk, below] : stacks) {
        all.insert(disk);
        for (const uint32_t other : below) {
            all.insert(other);
            above[other].push_back(disk);
        }
    }
    return groups_of(std::move(all), stacks, above);
}

}  // namespace reprise
