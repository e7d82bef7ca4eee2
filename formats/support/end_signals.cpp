// SPDX-License-Identifier: MIT
#include "formats/support/end_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

namespace reprise {
namespace {

// Fixed, as a signal handler reads it.
struct Slot {
    std::atomic<pid_t> owner{0};  // 0: free; kTaken: being written
    UndoneAtEnd::Undo undo = nullptr;
    std::array<char, PATH_MAX> path{}, beside{};
};
constexpr pid_t kTaken = -1;
std::array<Slot, 16> slots;

void end_by(int signal) {
    undo_all();
    std::signal(signal, SIG_DFL);
    ::raise(signal);
}

void copy(const std::filesystem::path& from, std::array<char, PATH_MAX>& to) {
    std::memcpy(to.data(), from.c_str(), from.native().size() + 1);
}

}  // namespace

UndoneAtEnd::UndoneAtEnd(Undo undo, const std::filesystem::path& path, const std::filesystem::path& beside) {
    if (path.native().size() >= PATH_MAX || beside.native().size() >= PATH_MAX) {
        return;
    }
    for (size_t i = 0; i < slots.size() && slot_ < 0; ++i) {
        pid_t none = 0;
        if (slots[i].owner.compare_exchange_strong(none, kTaken)) {
            slots[i].undo = undo;
            copy(path, slots[i].path);
            copy(beside, slots[i].beside);
            slots[i].owner.store(::getpid());
            slot_ = static_cast<int>(i);
        }
    }
    watch_end_signals();
}

UndoneAtEnd& UndoneAtEnd::operator=(UndoneAtEnd&& other) noexcept {
    if (this != &other) {
        forget();
        slot_ = std::exchange(other.slot_, -1);
    }
    return *this;
}

void UndoneAtEnd::forget() {
    if (slot_ >= 0) {
        slots[static_cast<size_t>(slot_)].owner.store(0);
        slot_ = -1;
    }
}

EndsHeld::EndsHeld() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&ends, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &ends, &before_);
}

EndsHeld::~EndsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void watch_end_signals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
            std::signal(signal, end_by);
        }
    }
}

void undo_all() {
    const int before = errno;
    for (const Slot& slot : slots) {
        if (slot.owner.load() == ::getpid()) {
            slot.undo(slot.path.data(), slot.beside.data());
        }
    }
    errno = before;
}

}  // namespace reprise
