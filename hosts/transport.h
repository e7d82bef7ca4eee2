// SPDX-License-Identifier: MIT
// Bytes between the ranks of a run. All calls come from one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise {

class Transport {
public:
    Transport() = default;
    virtual ~Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    virtual uint32_t rank() const = 0;
    virtual uint32_t size() const = 0;
    /// "Open MPI 4.1.4", for people.
    virtual std::string library() const = 0;
    /// Begins to send; the bytes are copied. Messages to one rank arrive in their order. What cannot be sent is lost:
    /// the silence of a rank tells.
    virtual void send(uint32_t to, const void* data, size_t bytes) = 0;
    /// A message that has arrived. False where there is none; never waits.
    virtual bool receive(uint32_t& from, std::string& into) = 0;
    /// Sleeps until `bell` (a descriptor) is readable, `most_ns` have passed, or, where it hears() them, a message has
    /// arrived.
    virtual void wait(int bell, int64_t most_ns) = 0;
    /// Whether messages end wait(). Else only receive() finds them.
    virtual bool hears() const = 0;
    /// Everything that was sent has left.
    virtual bool all_sent() = 0;
    /// The orderly end, with all ranks. Waits for them.
    virtual void finish() = 0;
    /// The end of all ranks, which cannot all be reached. May return.
    virtual void abort(int code) = 0;
};

}  // namespace reprise
