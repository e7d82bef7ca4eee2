// SPDX-License-Identifier: MIT
// [ADDR]:PORT as users give it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

struct ListenAddress {
    std::string host = "127.0.0.1";  // an IPv4 or IPv6 address, without brackets
    uint16_t port = 0;               // 0: a free one
};

/// ":9400" (of this machine alone), "0.0.0.0:9400", "[::]:9400", "localhost:0". Throws Error (usage), which names
/// `option`.
ListenAddress parse_listen_address(std::string_view text, std::string_view option);

/// "127.0.0.1:9400", "[::1]:9400"
std::string to_string(const ListenAddress& address);

}  // namespace reprise
