// SPDX-License-Identifier: MIT
#include "formats/import/strace/lexer.h"

#include <algorithm>

#include "formats/oplog/kernel_names.h"

namespace reprise {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr int64_t kSecond = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

void skip_spaces(std::string_view& text) {
    const size_t n = std::min(text.find_first_not_of(" \t"), text.size());
    text.remove_prefix(n);
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

std::string_view trim(std::string_view text) {
    skip_spaces(text);
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return text;
}

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

// Digits only; false beyond `most`.
bool to_int(std::string_view digits, int64_t most, int64_t& value) {
    if (!all_digits(digits) || digits.size() > 18) {
        return false;
    }
    value = 0;
    for (const char c : digits) {
        value = value * 10 + (c - '0');
    }
    return value <= most;
}

// "123.000456" or "123" in ns.
bool to_ns(std::string_view text, int64_t& ns, int& fraction_digits) {
    const size_t point = std::min(text.find('.'), text.size());
    int64_t seconds = 0;
    if (!to_int(text.substr(0, point), INT64_MAX / kSecond - 1, seconds)) {
        return false;
    }
    std::string_view fraction = point < text.size() ? text.substr(point + 1) : std::string_view{};
    fraction_digits = static_cast<int>(fraction.size());
    if (fraction.size() > 9) {
        return false;
    }
    int64_t part = 0;
    if (!fraction.empty() && !to_int(fraction, kSecond, part)) {
        return false;
    }
    for (size_t i = fraction.size(); i < 9; ++i) {
        part *= 10;
    }
    ns = seconds * kSecond + part;
    return true;
}

// "21:04:05.123456"
bool to_time_of_day(std::string_view text, int64_t& ns, int& fraction_digits) {
    if (text.size() < 8 || text[2] != ':' || text[5] != ':') {
        return false;
    }
    int64_t hours = 0, minutes = 0;
    if (!to_int(text.substr(0, 2), 23, hours) || !to_int(text.substr(3, 2), 59, minutes)) {
        return false;
    }
    if (!to_ns(text.substr(6), ns, fraction_digits) || ns >= 61 * kSecond) {
        return false;
    }
    ns += (hours * 60 + minutes) * 60 * kSecond;
    return true;
}

std::string_view first_word(std::string_view text) { return text.substr(0, std::min(text.find(' '), text.size())); }

// A time stamp at the start of `text`; removed if there is one.
bool take_time(std::string_view& text, StraceLine& line) {
    const std::string_view word = first_word(text);
    if (word.empty() || !is_digit(word[0])) {
        return false;
    }
    // No recording is from before September 2001; smaller numbers are the steps of -r, or a pid.
    constexpr int64_t kEarliest = 1'000'000'000 * kSecond;
    if (to_time_of_day(word, line.time, line.fraction_digits)) {
        line.clock = StraceLine::Clock::of_day;
    } else if (to_ns(word, line.time, line.fraction_digits)) {
        if (line.time < kEarliest && line.fraction_digits == 0) {
            return false;
        }
        line.clock = line.time < kEarliest ? StraceLine::Clock::relative : StraceLine::Clock::unix_time;
    } else {
        return false;
    }
    text.remove_prefix(word.size());
    skip_spaces(text);
    if (text.starts_with("(+")) {  // -r beside another clock
        const size_t end = text.find(')');
        if (end == kNone) {
            return false;
        }
        text.remove_prefix(end + 1);
        skip_spaces(text);
    }
    return true;
}

void take_pid(std::string_view& text, StraceLine& line) {
    const bool bracket = drop_prefix(text, "[pid");
    if (bracket) {
        skip_spaces(text);
    }
    size_t n = 0;
    while (n < text.size() && is_digit(text[n])) {
        ++n;
    }
    int64_t pid = 0;
    if (n == 0 || !to_int(text.substr(0, n), INT32_MAX, pid)) {
        return;
    }
    std::string_view rest = text.substr(n);
    if (rest.starts_with('<')) {  // -Y: the command's name
        const size_t end = rest.find('>');
        if (end == kNone) {
            return;
        }
        rest.remove_prefix(end + 1);
    }
    if (bracket ? !drop_prefix(rest, "]") : !rest.starts_with(' ')) {
        return;
    }
    line.tid = static_cast<int32_t>(pid);
    text = rest;
    skip_spaces(text);
}

// -i and -n put a number in brackets before the call.
void skip_bracketed_number(std::string_view& text) {
    while (text.starts_with('[')) {
        const size_t end = text.find(']');
        if (end == kNone || text.substr(1, end - 1).find_first_not_of("0123456789abcdef? ") != kNone) {
            return;
        }
        text.remove_prefix(end + 1);
        skip_spaces(text);
    }
}

// Position behind the decoration of a descriptor whose < is at `at`.
size_t skip_decoration(std::string_view text, size_t at) {
    if (at + 1 < text.size() && text[at + 1] == '/') {
        for (size_t i = at + 1, depth = 1; i < text.size(); ++i) {
            if (text[i] == '<') {
                ++depth;  // </dev/null<char 1:3>>; within a path < and > are escaped
            }
            if (text[i] == '>' && --depth == 0) {
                return i + 1;
            }
        }
        return kNone;
    }
    int depth = 0;  // <UNIX-STREAM:[1->2,"/path"]>
    for (size_t i = at + 1; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            i = skip_strace_string(text, i);
            if (i == kNone) {
                return kNone;
            }
            --i;
        } else if (c == '[') {
            ++depth;
        } else if (c == ']') {
            --depth;
        } else if (c == '>' && depth <= 0) {
            return i + 1;
        }
    }
    return kNone;
}

// Whether the < at `at` follows a descriptor: a number or AT_FDCWD.
bool follows_descriptor(std::string_view text, size_t at) {
    if (at == 0 || at + 1 >= text.size() || text[at + 1] == '<' || text[at + 1] == '.') {
        return false;
    }
    size_t from = at;
    while (from > 0 && is_name(text[from - 1])) {
        --from;
    }
    const std::string_view word = text.substr(from, at - from);
    return all_digits(word) || word == "AT_FDCWD";
}

bool parse_result(std::string_view text, StraceCall& call) {
    call.duration = take_strace_duration(text);
    text = trim(text);
    if (text.ends_with("<unavailable>")) {
        text = trim(text.substr(0, text.rfind('<')));
    }
    call.result_text = text;
    if (text.starts_with('?')) {
        call.result_kind = text.find("ERESTART") != kNone ? StraceCall::Result::restarted : StraceCall::Result::unknown;
        return true;
    }
    size_t n = 0;
    while (n < text.size() && (is_name(text[n]) || text[n] == '-')) {
        ++n;
    }
    if (!parse_strace_number(text.substr(0, n), call.result, call.number_too_large)) {
        return false;
    }
    call.result_kind = StraceCall::Result::value;
    std::string_view rest = text.substr(n);
    skip_spaces(rest);
    if (call.result == -1 && !rest.empty() && (rest[0] == 'E' || rest[0] == '(')) {
        if (const auto error = errno_value(first_word(rest))) {
            call.result = -*error;
        } else {
            call.error_unknown = true;
            call.result = -5;  // EIO
        }
    }
    // A pid as seen in another namespace: 5 /* 1234 in strace's PID NS */
    if (drop_prefix(rest, "/* ") && rest.find("in strace's PID NS") != kNone) {
        bool ignored = false;
        int64_t pid = 0;
        if (parse_strace_number(first_word(rest), pid, ignored)) {
            call.result = pid;
        }
    }
    return true;
}

}  // namespace

size_t skip_strace_string(std::string_view text, size_t at) {
    for (size_t i = at + 1; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '"') {
            return i + 1;
        }
    }
    return kNone;
}

std::optional<int64_t> take_strace_duration(std::string_view& text) {
    if (!text.ends_with('>')) {
        return std::nullopt;
    }
    const size_t open = text.rfind('<');
    int digits = 0;
    int64_t ns = 0;
    if (open == kNone || !to_ns(text.substr(open + 1, text.size() - open - 2), ns, digits)) {
        return std::nullopt;
    }
    text = text.substr(0, open);
    return ns;
}

StraceLine parse_strace_line(std::string_view line) {
    StraceLine out;
    if (line.starts_with(" > ")) {  // -k
        out.kind = StraceLine::Kind::remark;
        return out;
    }
    skip_spaces(line);
    if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    if (line.starts_with("strace: ") || line.starts_with("[ Process ") || line == "<unfinished ...>" ||
        (line.starts_with("Process ") && (line.ends_with("attached") || line.ends_with("detached")))) {
        out.kind = StraceLine::Kind::remark;
        return out;
    }
    if (line.starts_with("[pid") || !take_time(line, out)) {
        take_pid(line, out);
        take_time(line, out);
    }
    skip_bracketed_number(line);
    out.text = line;

    if (line.starts_with("+++ ")) {
        out.kind = StraceLine::Kind::ended;
    } else if (line.starts_with("--- ")) {
        out.kind = StraceLine::Kind::signal;
    } else if (line.starts_with("strace: ") || line.starts_with("[ Process ") || line == "<unfinished ...>") {
        out.kind = StraceLine::Kind::remark;
    } else if (line.starts_with("<... ")) {
        const size_t end = line.find(" resumed>");
        if (end == kNone) {
            return out;
        }
        out.text = line.substr(end + 9);
        out.kind = StraceLine::Kind::resumed;
    } else {
        size_t n = 0;
        while (n < line.size() && is_name(line[n])) {
            ++n;
        }
        if (n == 0 || n == line.size() || line[n] != '(' || is_digit(line[0])) {
            return out;
        }
        out.kind = StraceLine::Kind::call;
        // On a terminal strace's own words get between: clone(flags=...strace: Process 12 attached
        const size_t words = line.ends_with(" attached") ? line.rfind("strace: Process ") : kNone;
        if (words != kNone) {
            out.kind = StraceLine::Kind::unfinished;
            out.text = line.substr(0, words);
            return out;
        }
        for (const std::string_view mark : {"<unfinished ...>", "<detached ...>"}) {
            if (line.ends_with(mark)) {
                out.kind = StraceLine::Kind::unfinished;
                out.text.remove_suffix(mark.size());
            }
        }
    }
    return out;
}

bool parse_strace_call(std::string_view text, StraceCall& call) {
    call = StraceCall();
    const size_t open = text.find('(');
    if (open == kNone) {
        return false;
    }
    call.name = text.substr(0, open);
    size_t start = open + 1;
    const auto add = [&](size_t end) {
        const std::string_view arg = trim(text.substr(start, end - start));
        start = end + 1;
        if (arg.empty() && call.count == 0) {
            return true;
        }
        if (call.count == StraceCall::kMostArguments) {
            return false;
        }
        call.args[call.count++] = arg;
        return true;
    };
    int depth = 0;
    for (size_t i = start; i < text.size();) {
        switch (text[i]) {
            case '"':
                i = skip_strace_string(text, i);
                if (i == kNone) {
                    return false;
                }
                continue;
            case '<':
                if (follows_descriptor(text, i)) {
                    i = skip_decoration(text, i);
                    if (i == kNone) {
                        return false;
                    }
                    if (text.substr(i).starts_with("(deleted)")) {
                        i += 9;
                    }
                    continue;
                }
                break;
            case '/':
                if (i + 1 < text.size() && text[i + 1] == '*') {
                    const size_t end = text.find("*/", i);
                    if (end == kNone) {
                        return false;
                    }
                    i = end + 2;
                    continue;
                }
                break;
            case '(':
            case '[':
            case '{': ++depth; break;
            case ']':
            case '}': --depth; break;
            case ',':
                if (depth == 0 && !add(i)) {
                    return false;
                }
                break;
            case ')':
                if (depth-- > 0) {
                    break;
                }
                // A call cut short by the end of its task: name(args <unfinished ...>) = ?
                {
                    constexpr std::string_view kCut = "<unfinished ...>";
                    const std::string_view last = trim(text.substr(start, i - start));
                    const size_t end = last.ends_with(kCut) ? i - kCut.size() : i;
                    if (!add(std::max(end, start))) {
                        return false;
                    }
                }
                std::string_view rest = text.substr(i + 1);
                skip_spaces(rest);
                return drop_prefix(rest, "= ") && parse_result(rest, call);
        }
        ++i;
    }
    return false;
}

StraceFd parse_strace_fd(std::string_view text) {
    StraceFd out;
    const size_t open = std::min(text.find('<'), text.size());
    const std::string_view number = trim(text.substr(0, open));
    int64_t value = 0;
    if (number == "AT_FDCWD" || number == "-100") {
        out.at_current_directory = true;
    } else if (to_int(number, INT32_MAX, value)) {
        out.fd = static_cast<int32_t>(value);
    } else {
        return out;
    }
    if (open == text.size()) {
        return out;
    }
    const size_t end = skip_decoration(text, open);
    if (end == kNone) {
        return out;
    }
    out.about = text.substr(open + 1, end - open - 2);
    out.deleted = text.substr(end).starts_with("(deleted)");
    return out;
}

bool parse_strace_number(std::string_view text, int64_t& value, bool& too_large) {
    text = trim(text);
    if (const size_t comment = text.find(" /*"); comment != kNone) {
        text = text.substr(0, comment);
    }
    const bool negative = drop_prefix(text, "-");
    uint64_t base = 10;
    if (drop_prefix(text, "0x")) {
        base = 16;
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
    }
    if (text.empty()) {
        return false;
    }
    uint64_t sum = 0;
    bool over = false;
    for (const char c : text) {
        uint64_t digit = 0;
        if (is_digit(c)) {
            digit = static_cast<uint64_t>(c - '0');
        } else if (base == 16 && c >= 'a' && c <= 'f') {
            digit = static_cast<uint64_t>(c - 'a') + 10;
        } else {
            return false;
        }
        if (digit >= base) {
            return false;
        }
        over |= __builtin_mul_overflow(sum, base, &sum);
        over |= __builtin_add_overflow(sum, digit, &sum);
    }
    // Hexadecimal values are bit patterns; decimal ones are numbers.
    if (over || (base != 16 && sum > static_cast<uint64_t>(INT64_MAX))) {
        too_large = true;
        value = negative ? INT64_MIN : INT64_MAX;
        return true;
    }
    value = static_cast<int64_t>(sum);
    if (negative) {
        value = value == INT64_MIN ? value : -value;
    }
    return true;
}

int64_t parse_strace_flags(std::string_view text, bool& too_large, uint64_t& unknown) {
    int64_t sum = 0;
    if (text.starts_with('{') || text.starts_with('[') || text.starts_with('"') || text == "NULL") {
        return 0;
    }
    while (!text.empty()) {
        const size_t bar = std::min(text.find('|'), text.size());
        std::string_view part = text.substr(0, bar);
        text.remove_prefix(std::min(bar + 1, text.size()));
        if (const size_t comment = part.find("/*"); comment != kNone) {
            part = part.substr(0, comment);
        }
        part = trim(part);
        if (part.empty()) {
            continue;
        }
        int64_t value = 0;
        if (is_digit(part[0]) || part[0] == '-') {
            const size_t shift = part.find("<<");
            int64_t by = 0;
            if (shift != kNone && to_int(part.substr(shift + 2), 62, by) && to_int(part.substr(0, shift), 1, value)) {
                sum |= value << by;
            } else if (parse_strace_number(part, value, too_large)) {
                sum |= value;
            } else {
                ++unknown;
            }
        } else if (const auto symbol = symbol_value(part)) {
            sum |= *symbol;
        } else {
            ++unknown;
        }
    }
    return sum;
}

std::string_view strace_field(std::string_view structure, std::string_view key) {
    std::string_view found;
    each_strace_field(structure, key, [&](std::string_view value) {
        if (found.empty()) {
            found = value;
        }
    });
    return found;
}

std::string& StraceStrings::slot() {
    if (used_ == slots_.size()) {
        slots_.emplace_back();
    }
    std::string& text = slots_[used_++];
    text.clear();
    return text;
}

std::string_view StraceStrings::keep(std::string text) {
    std::string& kept = slot();
    kept = std::move(text);
    return kept;
}

std::string_view StraceStrings::plain(std::string_view escaped, std::string_view suffix) {
    if (suffix.empty() && escaped.find('\\') == kNone) {
        return escaped;
    }
    std::string& out = slot();
    const auto hex = [](char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    for (size_t i = 0; i < escaped.size(); ++i) {
        if (escaped[i] != '\\' || i + 1 == escaped.size()) {
            out += escaped[i];
            continue;
        }
        const char c = escaped[++i];
        switch (c) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case 'v': out += '\v'; break;
            case 'f': out += '\f'; break;
            case 'x':
                if (i + 2 < escaped.size() && hex(escaped[i + 1]) >= 0 && hex(escaped[i + 2]) >= 0) {
                    out += static_cast<char>(hex(escaped[i + 1]) * 16 + hex(escaped[i + 2]));
                    i += 2;
                } else {
                    out += 'x';
                }
                break;
            default:
                if (c >= '0' && c <= '7') {
                    int value = 0;
                    size_t n = 0;
                    for (; n < 3 && i + n < escaped.size() && escaped[i + n] >= '0' && escaped[i + n] <= '7'; ++n) {
                        value = value * 8 + (escaped[i + n] - '0');
                    }
                    out += static_cast<char>(value);
                    i += n - 1;
                } else {
                    out += c;  // \" and \\ .
                }
        }
    }
    out += suffix;
    return out;
}

std::optional<std::string_view> StraceStrings::quoted(std::string_view text, bool* cut) {
    if (!text.starts_with('"')) {
        return std::nullopt;
    }
    const size_t end = skip_strace_string(text, 0);
    if (end == kNone) {
        return std::nullopt;
    }
    if (cut) {
        *cut = text.substr(end).starts_with("...");
    }
    return plain(text.substr(1, end - 2));
}

}  // namespace reprise
