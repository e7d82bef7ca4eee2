// SPDX-License-Identifier: MIT
// A thread that takes no signals: they are for the thread that waits for them.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>
#include <utility>

namespace reprise {

/// `name`: at most 15 bytes, as `ps -T` shows it.
inline std::thread quiet_thread(const char* name, std::function<void()> work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(work));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace reprise
