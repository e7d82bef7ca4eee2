// SPDX-License-Identifier: MIT
// The keys of a DLIO workload and their values, each with the line that it is from.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

class DlioKeys {
public:
    /// Throws Error (bad_input) for what is no YAML, keys that nobody knows, and keys that are given twice. `name`: of
    /// the file, in messages.
    DlioKeys(std::string_view yaml, const std::string& name);

    bool given(std::string_view key) const { return given_.contains(key); }
    /// Each of these makes the key one that is used. Throws Error (bad_input) where the value is none of its kind.
    std::string text(std::string_view key, const std::string& otherwise);
    bool yes(std::string_view key, bool otherwise);
    double number(std::string_view key, double otherwise, double least, double most);
    uint64_t count(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most = kMostCount);
    /// None, too, where it is 0 or less: DLIO's "not".
    std::optional<uint64_t> maybe_count(std::string_view key);
    /// Numbers of a list; one number is a list, too.
    std::vector<double> numbers(std::string_view key);
    /// None where the key is not given.
    std::optional<YAML::Node> node(std::string_view key);

    [[noreturn]] void fail(std::string_view key, const std::string& what, const std::string& todo) const;
    [[noreturn]] void wrong(std::string_view key, const std::string& todo) const;
    double number_of(std::string_view key, const YAML::Node& node, double least, double most) const;

    /// Sentences that name all keys which were given and have not been used.
    std::vector<std::string> ignored() const;

    static constexpr uint64_t kMostCount = uint64_t{1} << 40;

private:
    struct Given {
        YAML::Node node;
        size_t line = 0;
    };
    void read(const YAML::Node& map, const std::string& above, size_t depth);
    void add(const std::string& path, const YAML::Node& key, const YAML::Node& value, size_t depth);
    [[noreturn]] void unknown(const std::string& path, size_t line) const;

    const std::string name_;
    std::map<std::string, Given, std::less<>> given_;
    std::set<std::string, std::less<>> used_;
};

}  // namespace reprise
