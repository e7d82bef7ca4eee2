// SPDX-License-Identifier: MIT
// The signals of the recorder while it records, and for a moment afterwards.
#pragma once

#include <signal.h>

namespace reprise {

/// Holds back the signals we watch, and gives them back at the end. A signal that ends a recording often comes twice
/// (`timeout` sends it to the process and then to its group; people press Ctrl-C again): what came before the end, and
/// what comes of the same within a second after it, must not end the making of the op log as well.
class SignalBlock {
public:
    SignalBlock();
    ~SignalBlock();
    SignalBlock(const SignalBlock&) = delete;
    SignalBlock& operator=(const SignalBlock&) = delete;
    [[nodiscard]] const sigset_t& old() const { return old_; }
    [[nodiscard]] int fd() const { return fd_; }  ///< the descriptor object that reads it closes it
    /// One of the signals that end a recording was read from the descriptor.
    static bool ends(int signal) {
        return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    }
    void seen(int signal) { seen_ = seen_ || ends(signal); }

private:
    sigset_t old_{};
    int fd_ = -1;
    bool seen_ = false;
};

}  // namespace reprise
