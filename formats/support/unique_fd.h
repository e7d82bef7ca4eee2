// SPDX-License-Identifier: MIT
// A file descriptor that is closed when it goes out of scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace reprise {

class UniqueFd {
public:
    UniqueFd() = default;
    /// Takes `fd`; a negative one is none.
    explicit UniqueFd(int fd) : fd_(fd) {}
    ~UniqueFd() { reset(); }
    UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;

    /// As given, so that -errno stays readable.
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    /// Closes what is held and takes `fd`.
    void reset(int fd = -1) {
        const int old = std::exchange(fd_, fd);
        if (old >= 0) {
            ::close(old);
        }
    }
    /// Gives the descriptor away, to a close() whose result counts, say.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

}  // namespace reprise
