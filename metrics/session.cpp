// SPDX-License-Identifier: MIT
#include "metrics/session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <string_view>
#include <utility>

#include "metrics/exposition.h"

namespace reprise {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

constexpr size_t kMostHeader = 8192, kMostRead = 16384;  // bytes of a request
// For a client's first request, for the next one on the same connection, and for taking the answer.
constexpr auto kFirst = 5s, kNext = 75s, kAnswer = 10s;

http::response<http::string_body> short_answer(http::status status, unsigned version, std::string text) {
    http::response<http::string_body> out(status, version);
    out.set(http::field::content_type, "text/plain; charset=utf-8");
    out.body() = std::move(text);
    return out;
}

}  // namespace

MetricsSession::MetricsSession(asio::ip::tcp::socket socket, const Text& text)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), text_(text), buffer_(kMostRead) {}

MetricsSession::~MetricsSession() { end(); }

void MetricsSession::start() { read(kFirst); }

/// Not by socket_.close(): a process that was forked meanwhile has the socket, too. It would stay in the reactor's
/// epoll set, and the client would not see the end.
void MetricsSession::end() {
    timer_.cancel();
    if (!socket_.is_open()) {
        return;
    }
    boost::system::error_code ignored;
    const int fd = socket_.release(ignored);
    if (fd >= 0) {
        ::shutdown(fd, SHUT_RDWR);
        ::close(fd);
    }
}

void MetricsSession::limit(std::chrono::seconds patience) {
    timer_.expires_after(patience);
    timer_.async_wait([self = shared_from_this()](const auto& error) {
        if (!error) {
            self->end();
        }
    });
}

void MetricsSession::read(std::chrono::seconds patience) {
    parser_.emplace();
    parser_->header_limit(kMostHeader);
    parser_->body_limit(uint64_t{0});
    limit(patience);
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](const auto& error, size_t) { self->answer(error); });
}

void MetricsSession::answer(boost::system::error_code error) {
    if (error.category() != make_error_code(http::error::bad_method).category()) {
        if (error) {
            return end();
        }
        response_ = respond(parser_->get());
        return send();
    }
    // What came is no request that this server takes.
    if (error == http::error::end_of_stream || error == http::error::partial_message) {
        return end();
    }
    const bool body = error == http::error::body_limit || error == http::error::unexpected_body;
    const bool large = error == http::error::header_limit || error == http::error::buffer_overflow;
    const http::status status = body    ? http::status::payload_too_large
                                : large ? http::status::request_header_fields_too_large
                                        : http::status::bad_request;
    response_ = short_answer(status, 11, "expected: GET /metrics\n");
    response_.keep_alive(false);
    response_.prepare_payload();
    send();
}

void MetricsSession::send() {
    limit(kAnswer);
    http::async_write(socket_, response_, [self = shared_from_this()](const auto& error, size_t) {
        if (error || !self->response_.keep_alive()) {
            return self->end();
        }
        self->read(kNext);
    });
}

MetricsSession::Response MetricsSession::respond(const Request& request) const {
    Response out = page(request);
    out.keep_alive(request.keep_alive());
    out.prepare_payload();
    if (request.method() == http::verb::head) {
        out.body().clear();  // its length stays
    }
    return out;
}

MetricsSession::Response MetricsSession::page(const Request& request) const {
    const std::string_view target(request.target().data(), request.target().size());
    if (target.substr(0, target.find('?')) != "/metrics") {
        return short_answer(http::status::not_found, request.version(), "nothing here; the metrics are at /metrics\n");
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
        Response out = short_answer(http::status::method_not_allowed, request.version(), "expected: GET or HEAD\n");
        out.set(http::field::allow, "GET, HEAD");
        return out;
    }
    try {
        Response out(http::status::ok, request.version());
        out.set(http::field::content_type, std::string(kExpositionType));
        out.set(http::field::cache_control, "no-store");
        out.body() = text_();
        return out;
    } catch (const std::exception& error) {
        return short_answer(http::status::internal_server_error, request.version(), std::string(error.what()) + "\n");
    }
}

}  // namespace reprise
