// SPDX-License-Identifier: MIT
// How a scalar of JSON is taken as it was written, for readers whose numbers come with and without quotes.
#pragma once

#include <simdjson.h>

#include <string_view>

namespace reprise {

/// The bytes of a scalar as written, without the quotes of a string.
inline std::string_view token_of(simdjson::ondemand::value& value) {
    std::string_view token = value.raw_json_token();
    while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') {
        token.remove_suffix(1);
    }
    if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
        token = token.substr(1, token.size() - 2);
    }
    return token;
}

}  // namespace reprise
