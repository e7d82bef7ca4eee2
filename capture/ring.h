// SPDX-License-Identifier: MIT
// The reader's side of the BPF ring buffer: it only copies records on, many per update of the position, which
// the kernel's side reads at every record.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "capture/early_holes.h"
#include "formats/raw/log.h"

namespace reprise {

/// What the recorder looks at itself, soon.
struct Noticed {
    std::vector<pid_t> execs;  // processes that began another program
    std::vector<SparseOpen> sparse;
};

class Ring {
public:
    /// Throws Error (machine) where the ring cannot be mapped.
    Ring(int map_fd, uint64_t bytes);
    ~Ring();
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    /// Moves what is there now into the log; at most one ring full, so that it ends. How many bytes that were. Adds to
    /// `noticed`.
    uint64_t drain(RawWriter& to, Noticed& noticed);
    /// Throws the contents away, once `see` has seen each record.
    void discard(const std::function<void(const raw_head&)>& see);
    /// By enum raw_type.
    using Counts = std::array<uint64_t, 256>;
    [[nodiscard]] const Counts& by_type() const { return by_type_; }
    [[nodiscard]] uint64_t records() const;
    [[nodiscard]] uint64_t calls() const { return by_type_[RAW_CALL]; }
    /// Bytes that wait to be drained.
    [[nodiscard]] uint64_t used() const;

private:
    template <class Take>
    uint64_t consume(const Take& take);

    const uint64_t bytes_;
    uint64_t* consumer_ = nullptr;        // page we write
    const uint64_t* producer_ = nullptr;  // page the kernel writes, data behind it, twice in a row
    const uint8_t* data_ = nullptr;
    Counts by_type_{};
};

}  // namespace reprise
