// SPDX-License-Identifier: MIT
// The named values in an op log's header, by which one part of reprise tells another how a log was made. The rows are
// in header_facts.def; nothing else reads or writes Header::extra by key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "formats/oplog/tables.h"

namespace reprise {

enum class FactType : uint8_t { text, yes, ns, signed_ns, count, number, json };

template <FactType T>
struct HeaderFact {
    using Value = std::conditional_t<
        T == FactType::text || T == FactType::json, std::string,
        std::conditional_t<T == FactType::yes, bool, std::conditional_t<T == FactType::number, double, int64_t>>>;
    std::string_view key;
};

namespace fact {
#define FACT(name, type, key, written_by, read_by, is_public, meaning) \
    inline constexpr HeaderFact<FactType::type> name{key};
#include "formats/oplog/header_facts.def"
}  // namespace fact

namespace header_facts {

std::optional<std::string> find(const Header& header, std::string_view key);
/// Whether `text` is a whole value of that type.
bool valid(FactType type, std::string_view text);
std::optional<int64_t> integer(FactType type, std::string_view text);
std::optional<double> number(std::string_view text);

}  // namespace header_facts

/// None where the header does not have the fact, or has a value that is not of its type.
template <FactType T>
std::optional<typename HeaderFact<T>::Value> read_fact(const Header& header, const HeaderFact<T>& fact) {
    std::optional<std::string> text = header_facts::find(header, fact.key);
    if (!text || !header_facts::valid(T, *text)) {
        return std::nullopt;
    }
    if constexpr (T == FactType::text || T == FactType::json) {
        return text;
    } else if constexpr (T == FactType::yes) {
        return true;
    } else if constexpr (T == FactType::number) {
        return header_facts::number(*text);
    } else {
        return header_facts::integer(T, *text);
    }
}

template <FactType T>
void write_fact(Header& header, const HeaderFact<T>& fact, const typename HeaderFact<T>::Value& value) {
    if constexpr (T == FactType::text || T == FactType::json) {
        header.extra[std::string(fact.key)] = value;
    } else if constexpr (T == FactType::yes) {
        if (value) {
            header.extra[std::string(fact.key)] = "yes";
        } else {
            header.extra.erase(std::string(fact.key));
        }
    } else {
        header.extra[std::string(fact.key)] = std::to_string(value);
    }
}

/// A fact with a number in its key.
void write_fact(Header& header, const HeaderFact<FactType::text>& fact, size_t index, const std::string& value);

/// Whether anonymize keeps a fact of that key although it is text.
bool is_public_fact(std::string_view key);

/// Facts whose values are not of their type.
uint64_t unreadable_facts(const Header& header);

/// Whether nobody recorded the log's times: `scale` or `generate` made them.
inline bool times_are_computed(const Header& header) {
    return header.source == "generate" || read_fact(header, fact::scale).has_value();
}

/// "254:0": the device of a file, as the facts that are by device number name it.
std::string device_name(uint64_t device);

}  // namespace reprise
