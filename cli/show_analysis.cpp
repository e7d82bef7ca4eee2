// SPDX-License-Identifier: MIT
#include "cli/show_analysis.h"

#include <algorithm>
#include <cmath>

#include "analyze/job/findings.h"
#include "analyze/job/not_recorded.h"
#include "cli/show_summary.h"
#include "cli/show_verdict.h"
#include "cli/units.h"

namespace reprise::cli {
namespace {

constexpr size_t kLabel = 18, kSpark = 60;
constexpr size_t kHottest = 5;

/// Broken at blanks; what follows is below the text.
void wrapped_line(std::ostream& out, const std::string& begin, std::string_view text) {
    const size_t indent = display_width(begin);
    std::string row = begin;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (display_width(row) > indent && display_width(row) + 1 + display_width(word) > kSummaryColumns) {
            out << row << '\n';
            row = std::string(indent, ' ');
        }
        row += (display_width(row) > indent ? " " : "") + std::string(word);
    }
    out << row << '\n';
}

std::string padded(std::string_view label) {
    return std::string(label) + std::string(label.size() < kLabel ? kLabel - label.size() : 1, ' ');
}

void line(std::ostream& out, std::string_view label, std::string_view text) {
    wrapped_line(out, padded(label), printable(text));
}

std::string in_words(const JobBounds& bounds) {
    if (!bounds.known()) {
        return "not computed: " + bounds.why_none;
    }
    const auto without = [](const std::optional<JobBounds::WhatIf>& what) {
        return what ? format_duration(what->elapsed) : std::string("not recorded");
    };
    return format_duration(bounds.modelled->elapsed) + " modelled as recorded; with infinitely fast storage " +
           without(bounds.storage) + ", processors " + without(bounds.processor) + ", accelerators " +
           without(bounds.accelerator);
}

std::string path_words(const JobBounds& bounds) {
    const JobBounds::Path& path = bounds.path;
    const auto whole = static_cast<double>(std::max<int64_t>(path.sum(), 1));
    std::string out;
    for (const auto& [name, ns] : {std::pair{"storage", path.storage},
                                   {"compute", path.compute},
                                   {"accelerator", path.accelerator},
                                   {"calls and gaps", path.calls},
                                   {"asleep", path.asleep},
                                   {"waits without a known cause", path.unexplained}}) {
        if (ns > 0) {
            out += (out.empty() ? "" : " + ") + std::string(name) + " " + format_share(static_cast<double>(ns) / whole);
        }
    }
    return out;
}

void print_bounds(std::ostream& out, const JobBounds& bounds) {
    line(out, "what if", in_words(bounds));
    if (!bounds.known()) {
        return;
    }
    line(out, "critical path", path_words(bounds));
    if (!bounds.doubt.empty()) {
        line(out, "", "with care: " + bounds.doubt);
    }
    if (bounds.guessed_bytes > 0) {
        line(out, "",
             "for " + format_bytes(bounds.guessed_bytes) +
                 " no call was served by memory: copied at 3 GB/s with infinitely fast storage, a guess");
    }
}

void print_over_time(std::ostream& out, const JobAnalysis& job) {
    const double seconds = job.time.grid.width_ns() / 1e9;
    const auto row = [&](const char* label, const OverTime& values, double by, auto text) {
        const double most = *std::max_element(values.begin(), values.end());
        if (most > 0) {
            out << padded(label) << spark_line(values, kSpark) << "  at most " << text(most / by) << '\n';
        }
    };
    row("read", job.time.read_bytes, seconds, [](double rate) { return format_rate(rate); });
    row("write", job.time.written_bytes, seconds, [](double rate) { return format_rate(rate); });
    row("I/O in flight", job.time.in_flight_ns, job.time.grid.width_ns(),
        [](double depth) { return number_cell(depth, 1).text; });
    row("computing", job.time.compute_ns, job.time.grid.width_ns(),
        [](double tasks) { return number_cell(tasks, 1).text + " CPUs"; });
    row("accelerators", job.time.busy_ns, job.time.grid.width_ns(),
        [](double busy) { return number_cell(busy, 1).text + " busy"; });
}

Table hottest(const JobAnalysis& job) {
    Table table({{"hottest files", "path"},
                 {"role", "role"},
                 {"read", "read", true},
                 {"written", "written", true},
                 {"ops", "ops", true},
                 {"in calls", "time_ns", true},
                 {"re-use distance", "reuse", true}});
    constexpr size_t kWidest = 52;
    for (size_t i = 0; i < std::min(kHottest, job.hot_files.size()); ++i) {
        const HotFile& row = job.hot_files[i];
        std::string path = printable(row.path);
        if (display_width(path) > kWidest) {
            size_t from = path.size() - kWidest + 4;
            while (from < path.size() && (static_cast<unsigned char>(path[from]) & 0xc0) == 0x80) {
                ++from;
            }
            path = "..." + path.substr(from);
        }
        table.row({path, role_name(row.role), bytes_cell(row.use.read), bytes_cell(row.use.written),
                   count_cell(row.use.ops), duration_cell(row.use.time),
                   row.reuse < 0 ? Cell("-", nullptr) : bytes_cell(static_cast<uint64_t>(row.reuse))});
    }
    return table;
}

}  // namespace

std::string spark_line(const std::vector<double>& values, size_t width) {
    static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    width = std::min(width, values.size());
    std::vector<double> means(width);
    for (size_t i = 0; i < width; ++i) {
        const size_t from = i * values.size() / width, to = (i + 1) * values.size() / width;
        for (size_t at = from; at < to; ++at) {
            means[i] += std::max(values[at], 0.0) / static_cast<double>(to - from);
        }
    }
    const double most = means.empty() ? 0 : *std::max_element(means.begin(), means.end());
    std::string out;
    for (const double mean : means) {
        out += kBlocks[most <= 0 ? 0 : static_cast<size_t>(std::ceil(8 * mean / most))];
    }
    return out;
}

void print_analysis(std::ostream& out, const AnalyzedJob& analyzed) {
    const JobAnalysis& job = analyzed.job;
    if (!job.part.empty()) {
        out << "INCOMPLETE: " << job.part << "; what is missing is in no figure.\n";
    }
    const std::vector<std::string> found = top_findings(job, analyzed.bounds ? &*analyzed.bounds : nullptr);
    for (size_t i = 0; i < found.size(); ++i) {
        wrapped_line(out, std::to_string(i + 1) + ". ", found[i]);
    }
    out << '\n';
    if (analyzed.bounds) {
        print_bounds(out, *analyzed.bounds);
    }
    for (const auto& [name, value] : key_figures(analyzed)) {
        if (value != "not recorded") {  // the last line has those
            line(out, name, value);
        }
    }
    print_over_time(out, job);
    if (const Table table = hottest(job); !table.empty()) {
        out << '\n';
        table.print(out);
    }
    std::string missing;
    for (const std::string& what : not_recorded(job)) {
        missing += (missing.empty() ? "" : "; ") + what;
    }
    out << '\n';
    line(out, "not recorded", missing);
}

void print_side_by_side(std::ostream& out, std::span<const AnalyzedJob> jobs) {
    std::vector<Column> columns{{"", "figure"}};
    std::vector<std::vector<Cell>> rows;
    for (size_t i = 0; i < jobs.size(); ++i) {
        columns.push_back({jobs[i].name, std::to_string(i)});
        auto figures = key_figures(jobs[i]);
        if (jobs[i].bounds && jobs[i].bounds->known()) {
            const JobBounds& bounds = *jobs[i].bounds;
            const auto without = [](const std::optional<JobBounds::WhatIf>& what) {
                return what ? format_duration(what->elapsed) : std::string("not recorded");
            };
            figures.emplace(figures.begin() + 1, "infinitely fast storage", without(bounds.storage));
            figures.emplace(figures.begin() + 2, "... processors", without(bounds.processor));
            figures.emplace(figures.begin() + 3, "... accelerators", without(bounds.accelerator));
        }
        for (const auto& [name, value] : figures) {
            auto row = std::find_if(rows.begin(), rows.end(), [wanted = std::string_view(name)](const auto& cells) {
                return cells[0].text == wanted;
            });
            if (row == rows.end()) {
                row = rows.insert(rows.end(), {Cell(name)});
            }
            row->resize(i + 1, Cell("-"));
            row->push_back(Cell(value));
        }
    }
    Table table(columns);
    for (std::vector<Cell>& row : rows) {
        row.resize(columns.size(), Cell("-"));
        table.row(std::move(row));
    }
    table.print(out, 0, kSummaryColumns);
    for (const AnalyzedJob& one : jobs) {
        out << '\n' << printable(one.name) << '\n';
        if (!one.job.part.empty()) {
            out << "  INCOMPLETE: " << one.job.part << '\n';
        }
        for (const std::string& sentence : top_findings(one.job, one.bounds ? &*one.bounds : nullptr)) {
            wrapped_line(out, "  ", sentence);
        }
    }
}

Json analysis_json(const AnalyzedJob& analyzed, const Tables& tables) {
    Json out = {{"log", printable(analyzed.job.path)},
                {"header", header_json(analyzed.job.header)},
                {"filter", analyzed.job.filter},
                {"losses", analyzed.job.losses},
                {"part", analyzed.job.part.empty() ? Json(nullptr) : Json(analyzed.job.part)},
                {"recovered", analyzed.job.recovered ? Json(*analyzed.job.recovered) : Json(nullptr)}};
    out["findings"] = top_findings(analyzed.job, analyzed.bounds ? &*analyzed.bounds : nullptr);
    out["bounds"] = analyzed.bounds ? to_json(*analyzed.bounds) : Json(nullptr);
    out.update(to_json(analyzed.job, tables));
    return out;
}

}  // namespace reprise::cli
