// SPDX-License-Identifier: MIT
// The one exception type a command ends with (and its exit codes).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace reprise {

/// What the process returns. Part of the command line's contract.
enum class ExitCode : int {
    done = 0,
    check_failed = 1,  ///< a comparison or regression went beyond its tolerance
    usage = 2,         ///< the command line is wrong
    bad_input = 3,     ///< a file or stream is not what it should be
    machine = 4,       ///< permission, kernel, space: the machine refuses
};

/// Bytes from a file or path made safe for one line of a message: control
/// bytes and backslash become \n, \t, \\ or \xNN; other bytes pass through.
inline std::string escape_line(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (c == '\\') {
            out += "\\\\";
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    return out;
}

/// Thrown where a command cannot go on; caught only in main. Never thrown for
/// a bad row or a replayed op that differs: those are counters and data.
class Error : public std::runtime_error {
public:
    /// `where` is "file:position" or empty; `what` says what is wrong and what
    /// was expected; `todo` says what the user can do, or is empty.
    Error(ExitCode code, std::string_view where, std::string_view what, std::string_view todo)
        : std::runtime_error(render(where, what, todo)), code_(code) {}

    [[nodiscard]] ExitCode code() const noexcept { return code_; }

private:
    static std::string render(std::string_view where, std::string_view what, std::string_view todo) {
        std::string text;
        if (!where.empty()) {
            text = escape_line(where) + ": ";
        }
        text += what;
        if (!todo.empty()) {
            text += "\n  ";
            text += todo;
        }
        return text;
    }

    ExitCode code_;
};

/// A file or stream is wrong. Use: throw bad_input("a.oplog:4096", "block
/// checksum differs", "copy the file again, or recover it with --recover").
inline Error bad_input(std::string_view where, std::string_view what, std::string_view todo) {
    return {ExitCode::bad_input, where, what, todo};
}

/// The command line is wrong.
inline Error usage_error(std::string_view what, std::string_view todo) { return {ExitCode::usage, {}, what, todo}; }

/// The machine refuses: permission, kernel feature, space.
inline Error machine_error(std::string_view what, std::string_view todo) { return {ExitCode::machine, {}, what, todo}; }

/// "file:position" for the `where` of bad_input. The position is a byte offset
/// or a line number; say which in the text of the message.
inline std::string at(std::string_view file, unsigned long long position) {
    return std::string(file) + ":" + std::to_string(position);
}

}  // namespace reprise
