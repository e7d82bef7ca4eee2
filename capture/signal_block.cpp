// SPDX-License-Identifier: MIT
#include "capture/signal_block.h"

#include <sys/signalfd.h>

#include <ctime>

#include "formats/support/end_signals.h"

namespace reprise {
namespace {

constexpr int kWatched[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT, SIGCONT, SIGCHLD};
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile sig_atomic_t ended_at = 0;  // seconds

sig_atomic_t monotonic_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<sig_atomic_t>(now.tv_sec);
}

// The same signal once more is ignored; later it ends us as it would have done.
void repeated(int signal) {
    if (monotonic_seconds() - ended_at <= 1) {
        return;
    }
    undo_all();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

}  // namespace

SignalBlock::SignalBlock() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kWatched) {
        sigaddset(&set, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &set, &old_);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalBlock::~SignalBlock() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : kEnding) {
        sigaddset(&ending, signal);
    }
    const timespec at_once{};
    while (::sigtimedwait(&ending, nullptr, &at_once) > 0) {
        seen_ = true;
    }
    if (seen_) {
        ended_at = monotonic_seconds();
        for (const int signal : kEnding) {
            struct sigaction action {};
            ::sigaction(signal, nullptr, &action);
            if (action.sa_handler != SIG_DFL) {
                continue;
            }
            action.sa_handler = repeated;
            action.sa_flags = SA_RESTART;
            ::sigaction(signal, &action, nullptr);
        }
    }
    ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
}

}  // namespace reprise
