// SPDX-License-Identifier: MIT
// The words of one section as values: each throws Error (bad_input) with file and line where it cannot be one.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/nearest.h"
#include "formats/support/quantity.h"
#include "generate/distribution.h"
#include "generate/job.h"
#include "generate/job_text.h"

namespace reprise {

inline constexpr uint64_t kMostCount = uint64_t{1} << 40;
inline constexpr uint64_t kMostFiles = 100'000'000, kMostDrawn = 1'000'000'000;  // what generate() keeps numbers of
inline constexpr double kMostBytes = 0x1p60;                                     // of a section's files

template <class T>
struct Choice {
    std::string_view word;
    T value;
};

/// The words of one section as values.
class SectionWords {
public:
    SectionWords(const SectionText& text, const std::string& file) : text_(text), file_(file) {}

    bool given(const char* word) const { return text_.words.contains(word); }
    /// As given, or the default.
    std::string text(const char* word) const {
        const auto found = text_.words.find(word);
        return found == text_.words.end() ? std::string(find_word(word)->otherwise) : found->second.value;
    }
    [[noreturn]] void fail(const char* word, const std::string& what, const std::string& todo) const {
        const auto found = text_.words.find(word);
        wrong_line(file_, found == text_.words.end() ? text_.line : found->second.line, what, todo);
    }
    [[noreturn]] void wrong(const char* word, const std::string& todo) const {
        fail(word, std::string(word) + "= cannot be '" + escape_line(text(word)) + "'", todo);
    }
    void require(const char* word, const std::string& todo) const {
        if (!given(word)) {
            wrong_line(file_, text_.line, "[" + text_.name + "] has no " + word + "=", todo);
        }
    }

    uint64_t count(const char* word, uint64_t least, uint64_t most = kMostCount) const {
        const std::string value = text(word);
        uint64_t number = 0;
        const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || rest != value.data() + value.size() || number < least || number > most) {
            wrong(word, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        }
        return number;
    }
    std::optional<uint64_t> maybe_count(const char* word) const {
        return given(word) ? std::optional(count(word, 1)) : std::nullopt;
    }
    bool yes(const char* word) const {
        const std::string value = text(word);
        if (value != "0" && value != "1") {
            wrong(word, "0 or 1");
        }
        return value == "1";
    }
    int64_t bytes(const char* word, int64_t least = 1) const {
        const auto value = read_bytes(text(word));
        if (!value || *value < least) {
            wrong(word, "a size such as 4k, 1MiB or 2GB");
        }
        return *value;
    }
    int64_t time(const char* word, double unit_ns) const {
        const auto value = read_time(text(word), unit_ns);
        if (!value) {
            wrong(word, "a time such as 250us, 10ms or 1.5s");
        }
        return *value;
    }
    Distribution drawn(const char* word, Distribution::Unit unit, double least) const {
        auto value = Distribution::parse(text(word), unit);
        const bool bytes = unit == Distribution::Unit::bytes;
        if (!value && text(word).find('(') != std::string::npos && text(word).find(',') == std::string::npos) {
            wrong(word, bytes ? "two sizes: a mean and a deviation, or the bounds, e.g. normal(140MiB,65MiB)"
                              : "two times: a mean and a deviation, or the bounds, e.g. normal(250ms,20ms)");
        }
        if (!value && text(word).starts_with("uniform(")) {
            wrong(word, bytes ? "two sizes, the smaller size comes first: uniform(4k,64k)"
                              : "two times, the smaller time comes first: uniform(1ms,2ms)");
        }
        if (!value) {
            wrong(word, bytes ? "150k, normal(140MiB,65MiB), lognormal(1MiB,2MiB) or uniform(4k,64k)"
                              : "250ms, normal(250ms,20ms), lognormal(3ms,1ms) or uniform(1ms,2ms)");
        }
        value->least = least;
        check_draws(word, *value);
        return *value;
    }
    /// Refuses what would mostly, or often, be drawn below the least.
    void check_draws(const char* word, const Distribution& value) const {
        const std::string least = std::to_string(std::llround(value.least));
        if (value.kind == Distribution::Kind::constant && value.a < value.least) {
            fail(word, std::string(word) + "=" + escape_line(text(word)) + " is less than " + least,
                 least + " or more");
        }
        if (value.share_below() > Distribution::kMostBelow) {
            fail(word,
                 std::string(word) + "=" + escape_line(text(word)) + " is below " + least + " in " +
                     format_share(value.share_below()) + " of all draws, which would become " + least,
                 "a smaller deviation, or lognormal(MEAN,DEVIATION)");
        }
    }
    double rate(const char* word) const {
        constexpr double kLeast = 1e-6, kMost = 1e9;
        const std::string value = text(word);
        double number = 0;
        const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || rest != value.data() + value.size() || !(number >= kLeast) || number > kMost) {
            wrong(word, "how many a second, e.g. 500 or 0.5");
        }
        return number;
    }
    template <class T, size_t N>
    T choice(const char* word, const Choice<T> (&choices)[N]) const {
        const std::string value = text(word);
        std::vector<std::string> names;
        for (const Choice<T>& each : choices) {
            if (each.word == value) {
                return each.value;
            }
            names.emplace_back(each.word);
        }
        fail(word,
             std::string(word) + "= cannot be '" + escape_line(value) + "'" + did_you_mean(nearest_names(value, names)),
             "one of: " + join(names, ", "));
    }
    const std::string& file() const { return file_; }
    const SectionText& section() const { return text_; }

private:
    const SectionText& text_;
    const std::string& file_;
};

/// When the requests of an open loop arrive, at the rate that the word `rate` gives; none: a closed loop.
std::optional<Arrivals> open_arrivals(const SectionWords& words, const char* rate);
IoJob io_job(const SectionWords& words);
/// Where a section of plain I/O has units that fio reads otherwise.
std::vector<std::string> unit_notes(const SectionWords& words);
KvCacheJob kv_cache_job(const SectionWords& words);
ModelLoadJob model_load_job(const SectionWords& words);
PreprocessJob preprocess_job(const SectionWords& words);
/// What a section without a word has in its place; empty where the word says nothing there.
std::string resolved_workload(const SectionWords& words, const JobSection& section, std::string_view word);
std::string resolved_io(const SectionWords& words, const IoJob& io, std::string_view word);

}  // namespace reprise
