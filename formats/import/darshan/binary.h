// SPDX-License-Identifier: MIT
// Darshan's own binary logs: recognised here, read by PyPI's `darshan` in a python3 that prints the text of
// darshan-dxt-parser.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "formats/support/unique_fd.h"

namespace reprise::darshan {

/// Whether a file that begins so is a binary log of Darshan 3.
bool is_binary(std::string_view head);

/// A running python3 that prints a binary log as text. It ends with this object at the latest.
class Printer {
public:
    /// Throws Error (machine) where there is no python3, (bad_input) where the log is packed.
    explicit Printer(const std::filesystem::path& log);
    ~Printer();
    Printer(const Printer&) = delete;
    Printer& operator=(const Printer&) = delete;

    /// Where the text can be read, once.
    std::filesystem::path text() const;
    /// After the text was read. Throws Error (machine) where python3 has no module darshan, (bad_input) where that
    /// could not read the log.
    void finish();

private:
    void start();
    std::string complaint() const;

    std::filesystem::path log_;
    UniqueFd text_, errors_;
    pid_t child_ = -1;
};

}  // namespace reprise::darshan
