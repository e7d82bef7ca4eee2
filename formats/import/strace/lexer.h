// SPDX-License-Identifier: MIT
// The lexical side of strace's output: what a line is, its arguments, values and strings. Knows no system call.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

/// What stands before a call, and what kind of line it is.
struct StraceLine {
    enum class Kind : uint8_t {
        call,        // name(args) = result
        unfinished,  // name(args <unfinished ...>; text: without the mark
        resumed,     // <... name resumed>rest; text: the rest
        ended,       // +++ exited with 0 +++
        signal,      // --- SIGCHLD {...} ---
        remark,      // strace's own words, stack traces
        malformed,
    };
    enum class Clock : uint8_t { none, of_day, unix_time, relative };

    Kind kind = Kind::malformed;
    int32_t tid = -1;  // -1: no pid column
    Clock clock = Clock::none;
    int64_t time = 0;         // ns
    int fraction_digits = 0;  // of the time stamp
    std::string_view text;
};
StraceLine parse_strace_line(std::string_view line);

struct StraceCall {
    static constexpr size_t kMostArguments = 16;
    std::string_view name;
    std::array<std::string_view, kMostArguments> args;
    size_t count = 0;
    std::string_view result_text;  // after "= ", without the duration
    enum class Result : uint8_t { value, unknown, restarted } result_kind = Result::unknown;
    int64_t result = 0;               // or -errno
    std::optional<int64_t> duration;  // ns, from -T
    bool number_too_large = false;
    bool error_unknown = false;  // an errno without a known name

    std::string_view arg(size_t i) const { return i < count ? args[i] : std::string_view{}; }
};
/// `text`: a whole call. False if it is not one.
bool parse_strace_call(std::string_view text, StraceCall& call);

/// The <0.000123> of -T at the end of a line, in ns; removed if there is one.
std::optional<int64_t> take_strace_duration(std::string_view& text);

/// A descriptor argument: 3, 3</path>, 3</path>(deleted), AT_FDCWD</dir>.
struct StraceFd {
    int32_t fd = -1;  // -1: not a descriptor
    bool at_current_directory = false;
    std::string_view about;  // between the outer < and >, escaped
    bool deleted = false;
};
StraceFd parse_strace_fd(std::string_view text);

/// Decimal, 0x..., 0..., with sign. Values beyond 64 bits saturate and set `too_large`.
bool parse_strace_number(std::string_view text, int64_t& value, bool& too_large);
/// "O_RDONLY|O_CLOEXEC|0x8000"; NULL and structures are 0. Unknown names are counted in `unknown`.
int64_t parse_strace_flags(std::string_view text, bool& too_large, uint64_t& unknown);
/// Value of "key=..." in a structure, up to the next comma or bracket; quoted strings are not looked into.
std::string_view strace_field(std::string_view structure, std::string_view key);
/// Calls visit(value) for every "key=value" outside quotes.
template <class Visit>
void each_strace_field(std::string_view text, std::string_view key, Visit visit);

/// Strings without escapes; they live until clear().
class StraceStrings {
public:
    /// Of "..." (quotes and a trailing "..." allowed); nullopt if it is not a string. `cut`: it was abbreviated.
    std::optional<std::string_view> quoted(std::string_view text, bool* cut = nullptr);
    std::string_view plain(std::string_view escaped, std::string_view suffix = {});
    std::string_view keep(std::string text);
    void clear() { used_ = 0; }

private:
    std::string& slot();
    std::deque<std::string> slots_;
    size_t used_ = 0;
};

/// Position just behind the string that begins with the quote at `at`; npos if it does not end.
size_t skip_strace_string(std::string_view text, size_t at);

template <class Visit>
void each_strace_field(std::string_view text, std::string_view key, Visit visit) {
    for (size_t i = 0; i < text.size();) {
        if (text[i] == '"') {
            i = skip_strace_string(text, i);
            continue;
        }
        const bool starts_word = i == 0 || text[i - 1] == '{' || text[i - 1] == ' ' || text[i - 1] == '[';
        if (starts_word && text.size() - i > key.size() && text.substr(i, key.size()) == key &&
            text[i + key.size()] == '=') {
            const size_t from = i + key.size() + 1;
            size_t to = from;
            for (int depth = 0; to < text.size();) {
                const char c = text[to];
                if (c == '"') {
                    to = skip_strace_string(text, to);
                    if (to == std::string_view::npos) {
                        to = text.size();
                    }
                    continue;
                }
                if (c == '(' || c == '[' || c == '{') {
                    ++depth;
                }
                if ((c == ')' || c == ']' || c == '}') && depth-- == 0) {
                    break;
                }
                if (c == ',' && depth == 0) {
                    break;
                }
                ++to;
            }
            visit(text.substr(from, to - from));
            i = from;
            continue;
        }
        ++i;
    }
}

}  // namespace reprise
