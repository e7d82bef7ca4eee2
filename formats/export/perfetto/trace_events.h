// SPDX-License-Identifier: MIT
// Writes events of Chrome's Trace Event Format (JSON), one per line.
//
// An event is opened with event(), gets its members, and is closed with end(). Times are microseconds with nanosecond
// decimals.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/support/text_output.h"

namespace reprise {

class TraceEvents {
public:
    explicit TraceEvents(TextOutput& out) : out_(out) {}

    /// Added to all times from now on: viewers drop what is before 0.
    void shift(int64_t ns) { shift_ = ns; }

    void event(std::string_view phase, int64_t pid, int64_t tid);
    void text(std::string_view key, std::string_view value);
    void number(std::string_view key, int64_t value);
    void time(int64_t ns);  // "ts"
    void duration(int64_t ns);
    /// Members until args_end() belong to "args".
    void args();
    void args_end();
    void end();

    /// Names a process (tid 0) or thread.
    void name(std::string_view what, int64_t pid, int64_t tid, std::string_view name);
    /// Perfetto shows the unit behind the name.
    void counter(int64_t pid, std::string_view name, std::string_view unit, int64_t ns, double value);

private:
    void member(std::string_view key);

    TextOutput& out_;
    int64_t shift_ = 0;
    bool any_ = false;
    bool first_ = false;  // member of its object
};

}  // namespace reprise
