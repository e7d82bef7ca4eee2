// SPDX-License-Identifier: MIT
#include "formats/oplog/header_facts.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace reprise {
namespace {

constexpr bool no = false, yes = true;

struct Row {
    FactType type;
    std::string_view key;
    bool is_public;
};

constexpr Row kRows[] = {
#define FACT(name, type, key, written_by, read_by, is_public, meaning) {FactType::type, key, is_public},
#include "formats/oplog/header_facts.def"
};

template <class T>
std::optional<T> whole(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

namespace header_facts {

std::optional<std::string> find(const Header& header, std::string_view key) {
    const auto found = header.extra.find(std::string(key));
    return found == header.extra.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> integer(FactType type, std::string_view text) {
    const auto value = whole<int64_t>(text);
    return value && *value < 0 && type != FactType::signed_ns ? std::nullopt : value;
}

std::optional<double> number(std::string_view text) {
    const auto value = whole<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

bool valid(FactType type, std::string_view text) {
    switch (type) {
        case FactType::text: return true;
        case FactType::yes: return text == "yes";
        case FactType::ns:
        case FactType::signed_ns:
        case FactType::count: return integer(type, text).has_value();
        case FactType::number: return number(text).has_value();
        case FactType::json: return nlohmann::json::accept(text);
    }
    return false;
}

}  // namespace header_facts

void write_fact(Header& header, const HeaderFact<FactType::text>& fact, size_t index, const std::string& value) {
    std::string key(fact.key);
    key.replace(key.find('*'), 1, std::to_string(index));
    header.extra[key] = value;
}

bool is_public_fact(std::string_view key) {
    return std::any_of(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.is_public && row.key == key; });
}

uint64_t unreadable_facts(const Header& header) {
    return static_cast<uint64_t>(std::count_if(std::begin(kRows), std::end(kRows), [&](const Row& row) {
        const auto text = header_facts::find(header, row.key);
        return text && !header_facts::valid(row.type, *text);
    }));
}

std::string device_name(uint64_t device) {
    return std::to_string(gnu_dev_major(device)) + ":" + std::to_string(gnu_dev_minor(device));
}

}  // namespace reprise
