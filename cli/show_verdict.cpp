// SPDX-License-Identifier: MIT
#include "cli/show_verdict.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <utility>

#include "cli/command.h"
#include "cli/show_requests.h"
#include "cli/table.h"
#include "cli/units.h"

namespace reprise::cli {
namespace {

constexpr size_t kLabel = 12;
constexpr double kManyTimes = 2;  // what was asked for: a share beyond says little

std::string padded(const std::string& text, size_t columns) {
    const size_t width = display_width(text);
    return width < columns ? text + std::string(columns - width, ' ') : text;
}

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
    return out;
}

/// "+1.6 %" of `here` over `recorded`; empty where there is nothing to divide by.
std::string change(int64_t here, int64_t recorded) {
    if (recorded <= 0) {
        return {};
    }
    char text[48];
    std::snprintf(text, sizeof text, " (%+.1f %%)",
                  (static_cast<double>(here) / static_cast<double>(recorded) - 1) * 100);
    return text;
}

/// "0 %", "0.3 %", "43 %", "100 %"
std::string share(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f %%", value > 0 && value < 0.0995 ? 1 : 0, value * 100);
    return text;
}

class Lines {
public:
    Lines(const Verdict& verdict, std::string_view beside) : v_(verdict), beside_(beside) {}

    std::vector<SummaryLine> all() {
        if (v_.incomplete()) {
            lines_.push_back({13, "INCOMPLETE: " + printable(v_.ended), true});
        }
        if (!v_.what_if.empty()) {
            lines_.push_back({12, what_if_sentence(v_.what_if), v_.same_job || v_.incomplete()});
        }
        job();
        time();
        if (!v_.access.empty()) {
            add(8, "access", v_.access);
        }
        bytes();
        requests();
        calls();
        spent();
        accelerator();
        trust();
        return std::move(lines_);
    }

private:
    void add(int keep, std::string_view label, const std::string& text) {
        lines_.push_back({keep, padded(std::string(label), kLabel) + text, false});
    }
    /// " (recorded 1.20 ms)"
    std::string other(const std::string& text) const { return " (" + std::string(beside_) + " " + text + ")"; }

    void job() {
        const JobOps& ops = v_.ops;
        const auto line = [&](const std::string& reasons, const std::string& by) {
            std::string text = v_.incomplete()                   ? "INCOMPLETE: "
                               : !v_.part.empty() && v_.same_job ? "A PART OF IT (" + v_.part + "): "
                               : v_.tolerated()                  ? differences(by)
                               : v_.same_job                     ? "SAME: "
                                                                 : "NOT THE SAME: ";
            text += counted(ops.alike, "I/O op") + " as " + (beside_ == "A" ? "in A" : std::string(beside_)) + " + " +
                    format_count(ops.differ) + (ops.differ == 1 ? " differs + " : " differ + ") +
                    format_count(ops.left_out) + " left out";
            text += reasons + " = " + format_count(ops.recorded()) +
                    (beside_ == "A" ? " in A" : " " + std::string(beside_));
            return ops.extra == 0 ? text : text + "; " + format_count(ops.extra) + " more here";
        };
        constexpr const char* kSomehow = "tolerated";
        const std::string by = v_.tolerated_by.empty() ? kSomehow : v_.tolerated_by;
        for (const std::string& text :
             {line(left_out_reasons(false), by), line(left_out_reasons(true), by), line("", by), line("", kSomehow)}) {
            if (kLabel + display_width(text) <= kSummaryColumns) {
                return add(10, "job", text);
            }
        }
        add(10, "job", line("", kSomehow));
    }
    /// "40 of 40 differ (--tolerance-results 100%): "
    std::string differences(const std::string& by) const {
        const JobOps& ops = v_.ops;
        const std::string what = ops.differ == 0 ? format_count(ops.extra) + " more here"
                                                 : format_count(ops.differ) + " of " + format_count(ops.recorded()) +
                                                       (ops.differ == 1 ? " differs" : " differ");
        return what + " (" + by + "): ";
    }
    /// The reasons, most ops first; with `most` only the first.
    std::string left_out_reasons(bool most) const {
        auto by = v_.ops.left_out_by;
        std::stable_sort(by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
        if (by.size() <= 1) {
            return by.empty() ? "" : " (" + by.front().first + ")";
        }
        std::string text;
        for (const auto& [reason, ops] : by) {
            text += (text.empty() ? " (" : ", ") + reason + " " + format_count(ops);
            if (most) {
                return text + ", ...)";
            }
        }
        return text + ")";
    }

    /// " (95 %: 2.70 s to 2.88 s)", " (no interval: trust POOR)"
    std::string interval() const {
        if (!v_.interval && !v_.no_interval.empty()) {
            return " (no interval: " + v_.no_interval + ")";
        }
        return v_.interval ? " (95 %: " + format_duration(v_.interval->first) + " to " +
                                 format_duration(v_.interval->second) + ")"
                           : "";
    }
    void time() {
        std::string text = format_duration(v_.here.elapsed) + interval();
        if (v_.pace == "afap") {
            text += " as fast as possible (" + std::string(beside_) +
                    ", with waits: " + format_duration(v_.recorded.elapsed) + ")";
        } else {
            // Computed times are those of memory: how much longer storage takes says nothing.
            text += ", " + std::string(beside_) + " " + format_duration(v_.recorded.elapsed) +
                    (beside_ == "computed" ? "" : change(v_.here.elapsed, v_.recorded.elapsed));
        }
        std::string cache = temperature();
        // Where the line is full, less of the explanation: the words in capitals stay.
        for (const char* end : {",", ":"}) {
            if (verbosity() == 0 && !v_.no_storage && kLabel + display_width(text + "; " + cache) > kSummaryColumns) {
                cache.erase(std::min(cache.find(end), cache.size()));
            }
        }
        add(10, "time", cache.empty() ? text : text + "; " + cache);
    }
    std::string temperature() const {
        if (v_.no_storage) {
            return "NO STORAGE: the null engine reads and writes nothing";
        }
        const std::optional<double> device = v_.device_share();
        if (!device) {
            const bool read = v_.here.storage_bytes_read + v_.here.bytes_touched != 0;
            return read && !v_.ended.empty() ? "CACHE UNKNOWN: nobody counted what the device served" : "";
        }
        const std::string text = upper(temperature_name(v_.temperature())) + ": ";
        switch (v_.temperature()) {
            case Temperature::cold:
                // Few pages of a mapped file bring their neighbours in.
                if (*device > kManyTimes) {
                    return text + "the device read " + format_bytes(*v_.device_read) + " for " +
                           format_bytes(v_.here.storage_bytes_read + v_.here.bytes_touched) + " asked for";
                }
                return text + (*device > 1.005 ? "the device read " + share(*device) + " of the bytes asked for"
                                               : "the device served " + share(*device) + " of the bytes read");
            case Temperature::warm:
                return text + "memory served the reads, the device " + share(*device) + " of the bytes";
            case Temperature::metadata:
                return text + "the device read names, " + (v_.device_data.value_or(0) == 0 ? "no data" : "little data");
            case Temperature::no_data: return "NOT MEASURED: no data on the device";
            case Temperature::mixed:
            case Temperature::unknown: break;
        }
        return text + "the device served " + share(*device) + " of the bytes read, memory the rest";
    }

    void bytes() {
        const JobFigures &here = v_.here, &recorded = v_.recorded;
        const auto part = [&](const char* name, uint64_t is, uint64_t was) {
            return name + format_bytes(is) + (is == was ? std::string() : other(format_bytes(was)));
        };
        std::string text = part("read ", here.bytes_read, recorded.bytes_read) +
                           part(", wrote ", here.bytes_written, recorded.bytes_written);
        if (here.bytes_read == recorded.bytes_read && here.bytes_written == recorded.bytes_written) {
            text += beside_ == "A" ? " (as in A)" : " (as " + std::string(beside_) + ")";
        }
        std::string device;
        if (v_.device_read && !v_.no_storage) {
            device = "; device read " + format_bytes(*v_.device_read);
            device += v_.device_written ? ", wrote " + format_bytes(*v_.device_written) : "";
        }
        const std::string touched =
            here.bytes_touched == 0 ? "" : ", pages touched " + format_bytes(here.bytes_touched);
        const bool fits = kLabel + display_width(text + touched + device) <= kSummaryColumns;
        add(8, "bytes", text + (fits ? touched : "") + device);
    }

    void requests() {
        if (v_.here.requests.any() || v_.recorded.requests.any()) {
            add(6, "requests", requests_line(v_.here.requests, v_.recorded.requests, beside_));
        }
    }
    /// Calls matter less where most of the data is moved by requests.
    bool mostly_requests() const { return v_.here.requests.all.requests > v_.here.reads.count + v_.here.writes.count; }

    void calls() {
        const bool reads = v_.here.reads.count != 0;
        const Latency &here = reads ? v_.here.reads : v_.here.writes,
                      &recorded = reads ? v_.recorded.reads : v_.recorded.writes;
        if (here.count == 0) {
            return;
        }
        add(mostly_requests() ? 2 : 6, reads ? "reads" : "writes",
            "p50 " + format_duration(here.p50) + other(format_duration(recorded.p50)) + ", p99 " +
                format_duration(here.p99) + other(format_duration(recorded.p99)) + ", of " +
                counted(here.count, "call"));
    }

    void spent() {
        const TimeSpent &here = v_.here.time, &recorded = v_.recorded.time;
        if (here.total == 0 && recorded.total == 0) {
            return;
        }
        struct Part {
            const char* name;
            int64_t here, recorded;
        };
        const std::array<Part, 5> parts{{{"compute", here.compute, recorded.compute},
                                         {"storage", here.storage, recorded.storage},
                                         {"accelerator", here.accelerator, recorded.accelerator},
                                         {"other waits", here.waits, recorded.waits},
                                         {"rest", here.rest(), recorded.rest()}}};
        std::string above, below;
        for (const Part& part : parts) {
            if (part.here == 0 && part.recorded == 0) {
                continue;
            }
            const std::string one = std::string(part.name) + " " + format_duration(part.here),
                              two = std::string(part.name) + " " + format_duration(part.recorded);
            const size_t width = std::max(display_width(one), display_width(two));
            above += (above.empty() ? "" : " + ") + padded(one, width);
            below += (below.empty() ? "" : " + ") + padded(two, width);
        }
        add(7, "spent", above + " = " + format_duration(here.total));
        add(6, "  " + std::string(beside_), below + " = " + format_duration(recorded.total));
    }

    void accelerator() {
        if (!v_.here.au) {
            return;
        }
        std::string text = "AU " + format_share(*v_.here.au);
        if (const auto range = v_.au_interval()) {
            text += " (95 %: " + format_share(range->first) + " to " + format_share(range->second) + ")";
        }
        if (v_.recorded.au) {
            text += other(format_share(*v_.recorded.au));
        }
        text += ", busy " + format_duration(v_.here.busy) + ", stall " + format_duration(v_.here.stall);
        if (v_.recorded.au) {
            text += other(format_duration(v_.recorded.stall));
        }
        add(5, "accelerator", text);
    }

    void trust() {
        if (!v_.trust.empty()) {
            add(9, "trust", padded(upper(v_.trust), 6) + v_.trust_reason);
        } else {
            add(3, "trust", "not known: the log does not say how well its machine kept the times");
        }
    }

    const Verdict& v_;
    const std::string_view beside_;
    std::vector<SummaryLine> lines_;
};

/// To kSummaryColumns with "..." at its end, after a whole word where one ends nearby.
std::string shortened(std::string text) {
    constexpr std::string_view kMore = " ...";
    constexpr size_t kLongestWord = 40;
    const bool cuts = display_width(text) > kSummaryColumns - kMore.size();
    while (display_width(text) > kSummaryColumns - kMore.size()) {
        const auto is_rest = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
        while (is_rest(text.back())) {
            text.pop_back();
        }
        text.pop_back();
    }
    const auto drop_word = [&] {
        const size_t blank = text.find_last_of(' ');
        const bool near = blank != std::string::npos && blank > kLabel && text.size() - blank < kLongestWord;
        text.erase(near ? blank : text.size());
        return near;
    };
    // A number without its unit says something else.
    const auto ends_with_number = [&] {
        const std::string word = text.substr(text.find_last_of(' ') + 1);
        return !word.empty() && word.find_first_not_of("0123456789.,+-") == std::string::npos;
    };
    bool more = cuts && drop_word();
    while (more && ends_with_number()) {
        more = drop_word();
    }
    while (!text.empty() && std::string_view(" ,;:").find(text.back()) != std::string_view::npos) {
        text.pop_back();
    }
    return text.append(kMore);
}

/// Lines that go on matter less than others, but for some of what is said first: its point may be at its end.
constexpr int kContinuation = 4, kToItsEnd = 100;
constexpr size_t kLinesToItsEnd = 4;

/// What must be read to its end goes on in further lines, all else stays one line.
std::vector<std::string> continued(const std::string& text) {
    const bool to_its_end = text.starts_with("trust ") || text.starts_with("access ");
    if (!to_its_end || display_width(text) <= kSummaryColumns) {
        return {text};
    }
    constexpr size_t kWord = 18;  // "trust       POOR  "
    const size_t label = text.rfind("  ", kWord - 2) + 2;
    return wrapped(text.substr(0, label), text.substr(label));
}

/// A line on its way to the summary.
struct Shown {
    SummaryLine line;
    bool continues = false;  // the sentence of the line before
    bool cut = false;        // the lines that continue it are left out
};

/// Takes out the line that matters least; of a sentence the last one. False: none may go.
bool drop_one(std::vector<Shown>& lines) {
    auto least = std::min_element(lines.begin(), lines.end(),
                                  [](const Shown& a, const Shown& b) { return a.line.keep < b.line.keep; });
    if (least == lines.end() || least->line.keep == kToItsEnd) {
        return false;
    }
    if (least->continues) {
        while (std::next(least) != lines.end() && std::next(least)->continues) {
            ++least;
        }
        std::prev(least)->cut = true;
    }
    lines.erase(least);
    return true;
}

}  // namespace

std::string what_if_sentence(std::string_view what_if) {
    return "what-if: " + printable(what_if) + "; not the job as recorded";
}

std::string log_lost_sentence(std::string_view why) { return "LOG NOT WRITTEN: " + printable(why); }

bool far_apart(int64_t a, int64_t b) {
    constexpr double kShare = 0.1, kLeast = 1e3;
    const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
    return apart > std::max(kLeast, kShare * static_cast<double>(std::max(a, b)));
}

std::string cut_line(std::string text) {
    return display_width(text) <= kSummaryColumns ? std::move(text) : shortened(std::move(text));
}

std::vector<std::string> wrapped(std::string_view label, std::string_view text) {
    std::vector<std::string> lines{std::string(label)};
    const std::string indent(kLabel, ' ');
    std::istringstream words{std::string(text)};
    std::string word;
    while (words >> word) {
        std::string& line = lines.back();
        const bool begins = line.empty() || line.back() == ' ';
        if (!begins && display_width(line) + 1 + display_width(word) > kSummaryColumns) {
            lines.push_back(indent + word);
        } else {
            line += (begins ? "" : " ") + word;
        }
    }
    return lines;
}

std::vector<SummaryLine> verdict_lines(const Verdict& verdict, std::string_view beside) {
    return Lines(verdict, beside).all();
}

void print_summary(std::ostream& out, const std::vector<std::string>& first, std::vector<SummaryLine> lines,
                   const std::vector<std::string>& notes) {
    const bool everything = verbosity() > 0;
    std::vector<Shown> all;
    const auto add_wrapped = [&all](int keep, const std::string& sentence) {
        const std::vector<std::string> of_one = wrapped("", sentence);
        for (size_t i = 0; i < of_one.size(); ++i) {
            const int further = keep == kToItsEnd && i < kLinesToItsEnd ? keep : kContinuation;
            all.push_back({{i == 0 ? keep : further, of_one[i], false}, i != 0, false});
        }
    };
    const auto others = std::stable_partition(lines.begin(), lines.end(), [](const auto& line) { return line.first; });
    std::for_each(lines.begin(), others, [&](const auto& line) { add_wrapped(kToItsEnd, line.text); });
    lines.erase(lines.begin(), others);
    for (const std::string& sentence : first) {
        add_wrapped(&sentence == &first.front() ? kToItsEnd : 11, sentence);
    }
    for (const SummaryLine& line : lines) {
        const std::vector<std::string> of_one = continued(line.text);
        for (size_t i = 0; i < of_one.size(); ++i) {
            all.push_back({{i == 0 ? line.keep : kContinuation, of_one[i], false}, i != 0, false});
        }
    }
    std::vector<std::string> below;
    size_t shown = 0;
    const size_t room = std::max(all.size() + 1, kSummaryLines) - all.size();
    for (; shown < notes.size(); ++shown) {
        const std::vector<std::string> note = wrapped("", notes[shown]);
        const bool last = shown + 1 == notes.size();
        if (!everything && below.size() + note.size() + (last ? 0 : 1) > room) {
            break;
        }
        below.insert(below.end(), note.begin(), note.end());
    }
    if (shown < notes.size()) {
        below.push_back((shown == 0 ? "" : "and ") + counted(notes.size() - shown, shown == 0 ? "note" : "more note") +
                        ": -v");
    }
    while (!everything && all.size() + below.size() > kSummaryLines && drop_one(all)) {
    }
    for (const Shown& one : all) {
        out << (everything ? one.line.text : one.cut ? shortened(one.line.text) : cut_line(one.line.text)) << '\n';
    }
    for (const std::string& line : below) {
        out << (everything ? line : cut_line(line)) << '\n';
    }
}

}  // namespace reprise::cli
