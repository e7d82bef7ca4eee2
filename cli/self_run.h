// SPDX-License-Identifier: MIT
// Runs this program again, as a child, for one step of something longer.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

struct SelfRun {
    int code = 0;         // exit code; 128 + the signal that ended it
    std::string message;  // the first line that it wrote to standard error, without its name
};

/// Its standard output goes nowhere, or, with `shown`, where this one's goes; likewise standard error, which is else
/// kept for the message. It is asked to end (SIGTERM) when this process dies.
SelfRun run_self(const std::vector<std::string>& arguments, bool shown);

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end this process, but are noticed.
class Interrupts {
public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;
    static bool any();
};

}  // namespace reprise::cli
