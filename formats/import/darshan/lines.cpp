// SPDX-License-Identifier: MIT
// The format is what darshan-dxt-parser of darshan-util 3.1 to 3.4 prints, and what the recorded traces hold: the
// column of OSTs comes with files on Lustre, that of thread ids with builds that record them.
#include "formats/import/darshan/lines.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/path.h"

namespace reprise::darshan {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr int64_t kMostSeconds = 9'000'000'000;              // ns of them fit
constexpr int64_t kLatestStart = 4'000'000'000'000'000'000;  // with kLatest, twice, it fits

bool in_range(int64_t ns) { return ns >= kEarliest && ns <= kLatest; }

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Takes the first word off `text`; empty if there is none.
std::string_view next_word(std::string_view& text) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) {
        text = {};
        return {};
    }
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    text.remove_prefix(end);
    return word;
}

template <class Number>
bool to_number(std::string_view text, Number& into) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

// What follows `key` in a comment line, up to ", " where `to_comma`.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key, bool to_comma = false) {
    const size_t at = line.find(key);
    if (at == line.npos) {
        return std::nullopt;
    }
    line.remove_prefix(at + key.size());
    return trimmed(to_comma ? line.substr(0, line.find(',')) : line);
}

}  // namespace

bool to_time(std::string_view text, int64_t& ns, int& decimals) {
    constexpr int kMost = 9;
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const size_t point = std::min(text.find('.'), text.size());
    int64_t whole = 0;
    if (!to_number(text.substr(0, point), whole) || whole < 0 || whole > kMostSeconds) {
        return false;
    }
    int64_t part = 0;
    decimals = 0;
    for (const char c : text.substr(std::min(point + 1, text.size()))) {
        if (c < '0' || c > '9') {
            return false;
        }
        if (decimals < kMost) {
            part = part * 10 + (c - '0');
            ++decimals;
        }
    }
    for (int i = decimals; i < kMost; ++i) {
        part *= 10;
    }
    ns = (whole * 1'000'000'000 + part) * (negative ? -1 : 1);
    return true;
}

// One log on its way in: the file and rank that the rows to come belong to.
class Lines::Parser {
public:
    Parser(Lines& lines, uint32_t log) : lines_(lines), log_(log) {}

    // Null, or what is wrong with the line.
    const char* take(std::string_view line) {
        const size_t begin = line.find_first_not_of(kBlanks);
        if (begin == line.npos) {
            return nullptr;
        }
        line.remove_prefix(begin);
        return line.front() == '#' ? comment(line) : row(line);
    }
    void end_section() {
        lines_.missing += expected_ > seen_ ? expected_ - seen_ : 0;
        expected_ = seen_ = 0;
    }
    bool has_records() const { return has_modules_; }

private:
    const char* comment(std::string_view line);
    const char* record(std::string_view line);
    const char* row(std::string_view line);
    const char* thread(std::string_view rest, Row& into) const;
    uint32_t rank(int64_t number);
    uint32_t file(std::string_view name, std::string_view id);

    static constexpr uint32_t kNone = UINT32_MAX;
    Lines& lines_;
    uint32_t log_;
    std::map<int64_t, uint32_t> ranks_;
    int64_t last_rank_ = 0;
    uint32_t last_rank_row_ = kNone, file_ = kNone;
    uint64_t expected_ = 0, seen_ = 0;  // calls of the section
    std::string file_id_;
    bool has_modules_ = false;
};

const char* Lines::Parser::comment(std::string_view line) {
    Log& log = lines_.logs[log_];
    int ignored = 0;
    if (line.starts_with("# DXT, ")) {
        return record(line);
    }
    if (line.starts_with("# exe:")) {
        log.command = *value_of(line, "exe:");
    } else if (line.starts_with("# start_time:")) {
        if (!to_time(*value_of(line, "start_time:"), log.start, ignored) || log.start < 0 || log.start > kLatestStart) {
            log.start = 0;
            return "a start time that is not one";
        }
    } else if (line.starts_with("# run time:")) {
        if (!to_time(*value_of(line, "run time:"), log.run_time, ignored) || !in_range(log.run_time)) {
            log.run_time = 0;
            return "a run time that is not one";
        }
    } else if (line.starts_with("# DXT_POSIX module data") || line.starts_with("# DXT_MPIIO module data")) {
        has_modules_ = true;
    } else if (line.find("module contains incomplete data") != line.npos && line.find("DXT_") != line.npos) {
        if (++lines_.incomplete == 1) {
            lines_.first_incomplete = log.path.filename().native();
        }
    }
    return nullptr;
}

const char* Lines::Parser::record(std::string_view line) {
    if (const auto id = value_of(line, "file_id:", true)) {
        end_section();
        has_modules_ = true;
        const auto name = value_of(line, "file_name:");
        file_ = file(name.value_or(""), *id);
        return nullptr;
    }
    if (const auto host = value_of(line, "hostname:")) {
        int64_t number = 0;
        if (!to_number(value_of(line, "rank:", true).value_or(""), number)) {
            return "a rank that is not a number";
        }
        lines_.ranks[rank(number)].host = *host;
        return nullptr;
    }
    if (const auto writes = value_of(line, "write_count:", true)) {
        uint64_t written = 0, read = 0;
        if (!to_number(*writes, written) || !to_number(value_of(line, "read_count:", true).value_or(""), read) ||
            written > UINT32_MAX || read > UINT32_MAX) {
            return "counts of calls that are no numbers";
        }
        expected_ = written + read;
    }
    return nullptr;
}

uint32_t Lines::Parser::rank(int64_t number) {
    if (last_rank_row_ == kNone || number != last_rank_) {
        const auto [found, is_new] = ranks_.try_emplace(number, static_cast<uint32_t>(lines_.ranks.size()));
        if (is_new) {
            lines_.ranks.push_back({log_, number, {}});
        }
        last_rank_ = number;
        last_rank_row_ = found->second;
    }
    return last_rank_row_;
}

uint32_t Lines::Parser::file(std::string_view name, std::string_view id) {
    std::string path = name.starts_with('/') ? clean_path("/", name) : std::string(name);
    if (path.empty()) {
        path = "/unnamed/darshan_" + std::string(id);
        std::replace(path.begin() + 9, path.end(), '/', '_');
    }
    const auto [found, is_new] = lines_.file_numbers_.try_emplace(path, static_cast<uint32_t>(lines_.files.size()));
    if (is_new) {
        lines_.files.push_back({std::move(path)});
    }
    return found->second;
}

const char* Lines::Parser::row(std::string_view line) {
    Row into;
    const std::string_view module = next_word(line);
    if (module != "X_POSIX" && module != "X_MPIIO") {
        return "expected a comment, or a call of X_POSIX or X_MPIIO";
    }
    into.mpiio = module == "X_MPIIO";
    int64_t number = 0, segment = 0;
    if (!to_number(next_word(line), number)) {
        return "a rank that is not a number";
    }
    const std::string_view what = next_word(line);
    if (what != "read" && what != "write") {
        return "expected read or write";
    }
    into.writes = what == "write";
    if (!to_number(next_word(line), segment) || !to_number(next_word(line), into.offset) ||
        !to_number(next_word(line), into.length)) {
        return "a segment, offset or length that is not a number, or beyond 64 bits";
    }
    if (into.offset < 0 || into.length < 0 || into.length > INT64_MAX - into.offset) {
        return "a negative offset or length, or a range beyond 64 bits";
    }
    int begin_decimals = 0, end_decimals = 0;
    if (!to_time(next_word(line), into.begin, begin_decimals) || !to_time(next_word(line), into.end, end_decimals) ||
        !in_range(into.begin) || !in_range(into.end)) {
        return "a time that is not one, or out of range";
    }
    if (into.end < into.begin) {
        return "a call that ends before it begins";
    }
    if (const char* problem = thread(line, into)) {
        return problem;
    }
    if (file_ == kNone) {
        return "a call before the first file";
    }
    into.rank = rank(number);
    into.file = file_;
    lines_.files[file_].posix |= !into.mpiio;
    lines_.decimals = std::max({lines_.decimals, begin_decimals, end_decimals});
    lines_.rows.push_back(into);
    ++seen_;
    return nullptr;
}

// Behind the times: the OSTs in brackets ("[ 37] [  9]"), then the id of the thread or N/A; each may be missing.
const char* Lines::Parser::thread(std::string_view rest, Row& into) const {
    if (const size_t bracket = rest.rfind(']'); bracket != rest.npos) {
        rest.remove_prefix(bracket + 1);
    }
    const std::string_view word = next_word(rest);
    if (word.empty() || word == "N/A") {
        return nullptr;
    }
    uint64_t id = 0;  // pthread_self(), which is an address
    if (!to_number(word, id)) {
        return "expected a thread id, N/A or nothing after the times";
    }
    into.thread = static_cast<int64_t>(id);
    return nullptr;
}

void Lines::read(const std::filesystem::path& text, const std::filesystem::path& name,
                 const std::function<void(uint64_t)>& progress) {
    LineReader reader(text);
    reader.set_truncated_ok(true);
    logs.push_back({name, {}});
    Parser parser(*this, static_cast<uint32_t>(logs.size() - 1));
    for (std::string_view line; reader.next(line);) {
        if (progress && reader.line_number() % 4096 == 0) {
            progress(reader.file_bytes());
        }
        if (reader.ends_in_line()) {
            ++cut;  // a number that lost its last digits is still a number
            break;
        }
        if (const char* problem = parser.take(line); problem && ++malformed == 1) {
            first_malformed = at(name.native(), reader.line_number()) + ": " + problem;
        }
    }
    parser.end_section();
    cut += reader.truncated() && !reader.ends_in_line();
    if (progress) {
        progress(reader.file_bytes());
    }
    if (reader.line_number() == 0) {
        throw bad_input(name.native(), "is empty; expected the text of darshan-dxt-parser", {});
    }
    if (!parser.has_records()) {
        throw bad_input(
            name.native(),
            "holds no DXT records, only Darshan's counters or nothing: they do not say which calls were made",
            "run the job with DXT_ENABLE_IO_TRACE=1, and print the log with darshan-dxt-parser");
    }
}

}  // namespace reprise::darshan
