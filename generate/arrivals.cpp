// SPDX-License-Identifier: MIT
#include "generate/arrivals.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "formats/support/error.h"
#include "generate/distribution.h"
#include "generate/job_text.h"

namespace reprise {
namespace {

constexpr double kMostNs = 1e16;  // 115 days
constexpr size_t kMostFile = size_t{1} << 30;

std::string_view trimmed(std::string_view text) {
    constexpr const char* kBlanks = " \t\r\"";
    const size_t from = text.find_first_not_of(kBlanks);
    return from == text.npos ? std::string_view() : text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> out;
    for (size_t at = 0; at <= line.size();) {
        const size_t end = std::min(line.find(',', at), line.size());
        out.push_back(trimmed(line.substr(at, end - at)));
        at = end + 1;
    }
    return out;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value{};
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && rest == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "2023-11-16 18:15:46.6805900", ns since 1970.
std::optional<int64_t> calendar_ns(std::string_view text) {
    constexpr size_t kSeconds = 17;  // where they begin
    if (text.size() <= kSeconds || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':' || text[16] != ':') {
        return std::nullopt;
    }
    std::string_view fraction = text.substr(kSeconds);
    const size_t zone = fraction.find_first_of("+Z");
    fraction = fraction.substr(0, zone);
    const auto year = number<int>(text.substr(0, 4));
    const auto month = number<unsigned>(text.substr(5, 2)), day = number<unsigned>(text.substr(8, 2));
    const auto hour = number<int>(text.substr(11, 2)), minute = number<int>(text.substr(14, 2));
    const auto second = number<double>(fraction);
    constexpr int kFirst = 1970, kLast = 2200;
    if (!year || !month || !day || !hour || !minute || !second || *year < kFirst || *year > kLast || !(*second < 62) ||
        *hour > 24 || *minute > 60) {
        return std::nullopt;
    }
    const std::chrono::sys_days date = std::chrono::year(*year) / std::chrono::month(*month) / std::chrono::day(*day);
    const int64_t minutes = int64_t{date.time_since_epoch().count()} * 1440 + *hour * 60 + *minute;
    return minutes * 60'000'000'000 + std::llround(*second * 1e9);
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

/// Names of published traces: Azure's, BurstGPT's, Mooncake's, and plain ones.
constexpr std::string_view kPrompt[] = {"contexttokens", "request tokens", "input_length", "prompt_tokens"};
constexpr std::string_view kNew[] = {"generatedtokens", "response tokens", "output_length", "output_tokens"};

class ArrivalFile {
public:
    explicit ArrivalFile(const std::string& name) : name_(name) {}

    void line(std::string_view text) {
        ++line_;
        if (trimmed(text).empty() || trimmed(text).front() == '#') {
            return;
        }
        const std::vector<std::string_view> cells = cells_of(text);
        const auto plain = number<double>(cells[0]);
        const auto calendar = plain ? std::nullopt : calendar_ns(cells[0]);
        if (!plain && !calendar) {
            if (out.empty() && !named_) {
                return names(cells);
            }
            wrong_line(name_, line_, "'" + escape_line(std::string(cells[0])) + "' is no time",
                       "seconds since the begin, or 2023-11-16 18:15:46.68");
        }
        if (calendar && out.empty()) {
            first_ = *calendar;
        }
        const double ns = plain ? std::round(*plain * 1e9) : static_cast<double>(*calendar - first_);
        const double before = out.empty() ? 0 : static_cast<double>(out.back().ns);
        if (!(ns >= 0) || ns > kMostNs || ns < before) {
            wrong_line(name_, line_,
                       "'" + escape_line(std::string(cells[0])) + "' is before the line above, or too far",
                       "sort the file by its times: from 0 on, 115 days at most");
        }
        out.push_back({static_cast<int64_t>(ns), tokens(cells, prompt_), tokens(cells, new_)});
    }

    std::vector<Arrival> out;

private:
    void names(const std::vector<std::string_view>& cells) {
        named_ = true;
        for (size_t i = 1; i < cells.size(); ++i) {
            const std::string name = lower(cells[i]);
            prompt_ = std::find(std::begin(kPrompt), std::end(kPrompt), name) != std::end(kPrompt) ? i : prompt_;
            new_ = std::find(std::begin(kNew), std::end(kNew), name) != std::end(kNew) ? i : new_;
        }
    }
    int64_t tokens(const std::vector<std::string_view>& cells, size_t column) const {
        constexpr int64_t kMost = 100'000'000;
        if (column == 0) {
            return 0;
        }
        const auto value = column < cells.size() ? number<int64_t>(cells[column]) : std::nullopt;
        if (!value || *value < 0 || *value > kMost) {
            wrong_line(name_, line_, "no number of tokens in column " + std::to_string(column + 1),
                       "a whole number, as the first line names the column");
        }
        return *value;
    }

    const std::string& name_;
    size_t line_ = 0, prompt_ = 0, new_ = 0;  // columns; 0: none
    bool named_ = false;
    int64_t first_ = 0;  // ns, of calendar times
};

}  // namespace

std::vector<Arrival> parse_arrivals(std::string_view text, const std::string& name) {
    ArrivalFile file(name);
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        file.line(text.substr(at, end - at));
        at = end + 1;
    }
    if (file.out.empty()) {
        throw bad_input(name, "has no arrivals", "a line for each, with its time in seconds first");
    }
    return std::move(file.out);
}

std::vector<Arrival> read_arrivals(const std::filesystem::path& file) {
    const std::string text = read_text(file, kMostFile, "file of arrivals");
    check_size(text, kMostFile, file.string(), "file of arrivals");
    return parse_arrivals(text, file.string());
}

std::optional<Arrival> ArrivalTimes::next() {
    Arrival out;
    if (arrivals_.kind == Arrivals::Kind::listed) {
        if (made_ == arrivals_.list.size()) {
            return std::nullopt;
        }
        out = arrivals_.list[made_++];
    } else {
        const double gap = 1e9 / arrivals_.per_second;
        // The first comes after a gap, too; by their number, fixed ones do not drift.
        ++made_;
        at_ = arrivals_.kind == Arrivals::Kind::fixed ? gap * static_cast<double>(made_)
                                                      : at_ - gap * std::log(uniform_of(mixed_bits(seed_, made_)));
        if (at_ > kMostNs) {
            return std::nullopt;
        }
        out.ns = std::llround(at_);
    }
    if (arrivals_.runtime_ns && out.ns > *arrivals_.runtime_ns) {
        return std::nullopt;
    }
    out.ns = std::max<int64_t>(out.ns, 1);
    return out;
}

}  // namespace reprise
