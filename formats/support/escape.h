// SPDX-License-Identifier: MIT
// Byte strings of a recording (paths, names) written into text that must stay one line of valid UTF-8.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

/// Appends `bytes` so that the original can be read back: backslash becomes \\, newline \n, tab \t, carriage return \r;
/// other control characters (also U+0080..U+009F, U+2028, U+2029) and bytes that are not UTF-8 become \xNN per byte.
void append_escaped(std::string& out, std::string_view bytes);

/// The same between double quotes, with \" for a quote.
void append_quoted(std::string& out, std::string_view bytes);

/// A JSON string of the escaped form: "a\nb" in the recording reads as the four characters a \ n b after JSON decoding.
void append_json(std::string& out, std::string_view bytes);

/// A word of a command that can be pasted into a shell: job.oplog, 'my job.oplog', $'a\nb'.
std::string shell_word(std::string_view bytes);

inline void append_number(std::string& out, int64_t value) {
    char text[24];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

inline void append_number(std::string& out, uint64_t value) {
    char text[24];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}  // namespace reprise
