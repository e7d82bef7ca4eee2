// SPDX-License-Identifier: MIT
// The HTTP server behind --metrics: one page, /metrics, on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "metrics/address.h"

namespace reprise {

/// Serves what `text` returns, called on the server's thread for each scrape. Connections are served side by side; a
/// client that is silent, slow or asks for too much is disconnected and holds nobody up. The thread takes no signals,
/// and processes that this one starts do not inherit its sockets across an exec.
class MetricsServer {
public:
    /// Listens when it returns. Throws Error (machine) where the address cannot be had.
    MetricsServer(const ListenAddress& address, std::function<std::string()> text);
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    /// With the port that was chosen.
    const ListenAddress& address() const;

private:
    class Listener;
    std::unique_ptr<Listener> listener_;
};

}  // namespace reprise
