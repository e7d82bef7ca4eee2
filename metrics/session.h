// SPDX-License-Identifier: MIT
// One connection to the metrics server.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace reprise {

/// Lives as long as its connection. Used by the server's thread alone.
class MetricsSession : public std::enable_shared_from_this<MetricsSession> {
public:
    using Text = std::function<std::string()>;

    MetricsSession(boost::asio::ip::tcp::socket socket, const Text& text);
    ~MetricsSession();
    MetricsSession(const MetricsSession&) = delete;
    MetricsSession& operator=(const MetricsSession&) = delete;

    void start();
    /// Disconnects.
    void end();

private:
    using Request = boost::beast::http::request<boost::beast::http::empty_body>;
    using Response = boost::beast::http::response<boost::beast::http::string_body>;

    void read(std::chrono::seconds patience);
    void answer(boost::system::error_code error);
    void send();
    void limit(std::chrono::seconds patience);
    Response respond(const Request& request) const;
    Response page(const Request& request) const;

    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer timer_;
    const Text& text_;
    boost::beast::flat_buffer buffer_;
    std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
    Response response_;
};

}  // namespace reprise
