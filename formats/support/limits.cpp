// SPDX-License-Identifier: MIT
#include "formats/support/limits.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr rlim_t kLeastStack = rlim_t{1} << 20, kWantedStack = rlim_t{8} << 20;

// As given to the process.
struct Given {
    bool changed_signal = false, changed_stack = false;
    rlimit stack{};
};
Given given;

rlim_t limit_of(__rlimit_resource which) {
    rlimit value{};
    return ::getrlimit(which, &value) == 0 ? value.rlim_cur : RLIM_INFINITY;
}

bool size_limited() { return limit_of(RLIMIT_FSIZE) != RLIM_INFINITY; }

void give_stacks_room() {
    if (::getrlimit(RLIMIT_STACK, &given.stack) != 0 || given.stack.rlim_cur >= kLeastStack) {
        return;
    }
    rlimit more = given.stack;
    more.rlim_cur = std::min(more.rlim_max, kWantedStack);
    if (more.rlim_cur < kLeastStack || ::setrlimit(RLIMIT_STACK, &more) != 0) {
        throw machine_error("the stack limit (ulimit -s) is " + std::to_string(given.stack.rlim_cur / 1024) +
                                " KiB, and at least 1024 KiB are needed",
                            "raise it: ulimit -s 8192");
    }
    given.changed_stack = true;
    // Threads have the limit of the time when the process began.
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) == 0) {
        ::pthread_attr_setstacksize(&attributes, more.rlim_cur);
        ::pthread_setattr_default_np(&attributes);
        ::pthread_attr_destroy(&attributes);
    }
}

}  // namespace

std::string reason(int error) {
    if (error == EFBIG && size_limited()) {
        return "file size limit (ulimit -f)";
    }
    if (error == EMFILE) {
        return "limit of open descriptors (ulimit -n " + std::to_string(limit_of(RLIMIT_NOFILE)) + ")";
    }
    return std::strerror(error);
}

std::string remedy(int error, std::string_view otherwise) {
    if (error == EFBIG && size_limited()) {
        return "raise it: ulimit -f unlimited";
    }
    if (error == EMFILE) {
        return "raise it: ulimit -n 1024";
    }
    if (error == ENOSPC || error == EDQUOT) {
        return "free space there, or choose another file system";
    }
    return std::string(otherwise);
}

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void take_limits() {
    struct sigaction now {};
    if (::sigaction(SIGXFSZ, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
        given.changed_signal = std::signal(SIGXFSZ, SIG_IGN) != SIG_ERR;
    }
    give_stacks_room();
}

void restore_limits() {
    if (given.changed_signal) {
        std::signal(SIGXFSZ, SIG_DFL);
    }
    if (given.changed_stack) {
        ::setrlimit(RLIMIT_STACK, &given.stack);
    }
}

}  // namespace reprise
