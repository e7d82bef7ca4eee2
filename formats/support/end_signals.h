// SPDX-License-Identifier: MIT
// What must not outlive this process is undone when a signal ends it (SIGINT, SIGTERM, SIGHUP).
#pragma once

#include <csignal>
#include <filesystem>
#include <utility>

namespace reprise {

/// While it lives, such a signal calls `undo` first. A signal that somebody else handles or ignores stays theirs, and
/// a process that this one forks undoes nothing. More than 16 at a time are not remembered.
class UndoneAtEnd {
public:
    /// In a signal handler, with the paths given here.
    using Undo = void (*)(const char* path, const char* beside);

    UndoneAtEnd() = default;
    UndoneAtEnd(Undo undo, const std::filesystem::path& path, const std::filesystem::path& beside = {});
    ~UndoneAtEnd() { forget(); }
    UndoneAtEnd(UndoneAtEnd&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
    UndoneAtEnd(const UndoneAtEnd&) = delete;
    UndoneAtEnd& operator=(const UndoneAtEnd&) = delete;
    UndoneAtEnd& operator=(UndoneAtEnd&& other) noexcept;
    /// There is nothing left to undo.
    void forget();

private:
    int slot_ = -1;
};

/// While it lives, this thread puts such signals off: between making a thing and remembering it.
class EndsHeld {
public:
    EndsHeld();
    ~EndsHeld();
    EndsHeld(const EndsHeld&) = delete;
    EndsHeld& operator=(const EndsHeld&) = delete;

private:
    sigset_t before_{};
};

/// After others have handled these signals and given them back.
void watch_end_signals();

/// For a signal handler that ends the process.
void undo_all();

}  // namespace reprise
