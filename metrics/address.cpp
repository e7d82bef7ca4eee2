// SPDX-License-Identifier: MIT
#include "metrics/address.h"

#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "formats/support/error.h"

namespace reprise {

ListenAddress parse_listen_address(std::string_view text, std::string_view option) {
    const auto refuse = [&](const std::string& todo) -> Error {
        return usage_error(std::string(option) + " is '" + escape_line(text) + "', expected [ADDR]:PORT", todo);
    };
    const std::string examples = "such as :9400 (for this machine alone), 0.0.0.0:9400, [::]:9400";
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
        throw refuse(number ? "give " + std::string(option) + " :" + std::string(text) : examples);
    }
    ListenAddress out;
    const std::string_view port = text.substr(colon + 1);
    std::string_view host = text.substr(0, colon);
    const auto read = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (port.empty() || read.ec != std::errc() || read.ptr != port.data() + port.size()) {
        throw refuse("a port is a number from 0 (a free one) to 65535");
    }
    if (host.empty() || host == "localhost") {
        return out;
    }
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(std::string(host), error);
    if (error || address.is_v6() != bracketed) {
        throw refuse(!error && address.is_v6() ? "put an IPv6 address in brackets: [" + std::string(host) + "]:9400"
                                               : "ADDR is an address of this machine; " + examples);
    }
    out.host = std::string(host);
    return out;
}

std::string to_string(const ListenAddress& address) {
    const bool v6 = address.host.find(':') != std::string::npos;
    return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace reprise
