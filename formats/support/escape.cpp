// SPDX-License-Identifier: MIT
#include "formats/support/escape.h"

namespace reprise {
namespace {

constexpr char kHex[] = "0123456789abcdef";

unsigned byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Length of the valid UTF-8 sequence at the start of `text`; 0 where there is none. Sets the code point.
size_t decode_utf8(std::string_view text, uint32_t& code) {
    const unsigned first = byte_at(text, 0);
    size_t length;
    if (first < 0x80) {
        code = first;
        return 1;
    }
    if (first >= 0xc2 && first < 0xe0) {
        length = 2;
        code = first & 0x1f;
    } else if (first >= 0xe0 && first < 0xf0) {
        length = 3;
        code = first & 0x0f;
    } else if (first >= 0xf0 && first < 0xf5) {
        length = 4;
        code = first & 0x07;
    } else {
        return 0;
    }
    if (text.size() < length) {
        return 0;
    }
    for (size_t i = 1; i < length; ++i) {
        if ((byte_at(text, i) & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (byte_at(text, i) & 0x3f);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

bool breaks_lines(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

void append_hex(std::string& out, unsigned byte) {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
}

// `quote` is escaped with a backslash too, unless it is 0.
void append_escaped_with(std::string& out, std::string_view bytes, char quote) {
    while (!bytes.empty()) {
        uint32_t code = 0;
        size_t length = decode_utf8(bytes, code);
        if (length == 0 || breaks_lines(code)) {
            const bool one = length <= 1;
            if (one && bytes[0] == '\n') {
                out += "\\n";
            } else if (one && bytes[0] == '\t') {
                out += "\\t";
            } else if (one && bytes[0] == '\r') {
                out += "\\r";
            } else {
                length = length == 0 ? 1 : length;
                for (size_t i = 0; i < length; ++i) {
                    append_hex(out, byte_at(bytes, i));
                }
            }
            length = length == 0 ? 1 : length;
        } else if (bytes[0] == '\\' || (quote && bytes[0] == quote)) {
            out += '\\';
            out += bytes[0];
        } else {
            out.append(bytes.substr(0, length));
        }
        bytes.remove_prefix(length);
    }
}

}  // namespace

void append_escaped(std::string& out, std::string_view bytes) { append_escaped_with(out, bytes, 0); }

void append_quoted(std::string& out, std::string_view bytes) {
    out += '"';
    append_escaped_with(out, bytes, '"');
    out += '"';
}

std::string shell_word(std::string_view bytes) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
    std::string escaped;
    append_escaped_with(escaped, bytes, '\'');
    if (!bytes.empty() && bytes.find_first_not_of(kPlain) == bytes.npos) {
        return std::string(bytes);
    }
    return (escaped == bytes ? "'" : "$'") + escaped + "'";
}

void append_json(std::string& out, std::string_view bytes) {
    std::string text;
    append_escaped(text, bytes);
    out += '"';
    for (const char c : text) {  // printable UTF-8 by now: only these two need more
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    out += '"';
}

}  // namespace reprise
