// SPDX-License-Identifier: MIT
// A file descriptor that is closed when it goes out of scope.
#pragma once

#include <unistd.h>

namespace reprise {

class Descriptor {
public:
    /// Takes `fd`; a negative one is none.
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

}  // namespace reprise
