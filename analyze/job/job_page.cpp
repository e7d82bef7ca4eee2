// SPDX-License-Identifier: MIT
#include "analyze/job/job_page.h"

#include <algorithm>
#include <cmath>

#include "analyze/job/findings.h"
#include "analyze/job/job_charts.h"
#include "analyze/job/not_recorded.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

std::string bytes(double value) { return format_bytes(static_cast<uint64_t>(std::llround(std::max(value, 0.0)))); }
std::string or_dash(const std::string& text) { return text.empty() ? "–" : text; }

void add_all(Page& page, const std::vector<PageChart>& charts) {
    for (const PageChart& chart : charts) {
        page.chart(chart);
    }
}

PageTable calls_table(const JobAnalysis& job) {
    constexpr size_t kRows = 40;
    PageTable table{"Calls by kind and role of the file, most time first",
                    {{"op"},
                     {"role"},
                     {"calls", true},
                     {"failed", true},
                     {"bytes", true},
                     {"size p50", true},
                     {"in calls", true},
                     {"p50", true},
                     {"p90", true},
                     {"p99", true},
                     {"max", true}},
                    {}};
    for (const KindOfRole& row : job.kinds) {
        if (table.rows.size() == kRows) {
            break;
        }
        const Latency latency = latency_of(row.latency);
        table.rows.push_back(
            {std::string(info(row.kind).name), std::string(role_name(row.role)), format_count(row.calls),
             row.errors == 0 ? "" : format_count(row.errors), row.bytes == 0 ? "" : format_bytes(row.bytes),
             row.sizes.count() == 0 ? "" : bytes(static_cast<double>(row.sizes.percentile(0.5))),
             format_duration(std::llround(std::min(row.latency.sum(), 9e18))), format_duration(latency.p50),
             format_duration(latency.p90), format_duration(latency.p99), format_duration(latency.max)});
    }
    return table;
}

std::string share_of(uint64_t part, uint64_t whole) {
    return whole == 0 ? "–" : format_share(static_cast<double>(part) / static_cast<double>(whole));
}

PageTable files_table(const JobAnalysis& job) {
    PageTable table{"Hottest files, most bytes first",
                    {{"file"},
                     {"role"},
                     {"ops", true},
                     {"read", true},
                     {"written", true},
                     {"in calls", true},
                     {"sequential", true},
                     {"strided", true},
                     {"random", true},
                     {"re-use distance", true}},
                    {}};
    for (const HotFile& row : job.hot_files) {
        const AccessOrders& orders = row.use.orders;
        table.rows.push_back({or_dash(row.path), std::string(role_name(row.role)), format_count(row.use.ops),
                              format_bytes(row.use.read), format_bytes(row.use.written), format_duration(row.use.time),
                              share_of(orders.sequential, orders.total()), share_of(orders.strided, orders.total()),
                              share_of(orders.random, orders.total()), row.reuse < 0 ? "–" : bytes(row.reuse)});
    }
    return table;
}

PageTable directories_table(const JobAnalysis& job) {
    PageTable table{
        "Hottest directories, most bytes first",
        {{"directory"}, {"files", true}, {"ops", true}, {"read", true}, {"written", true}, {"in calls", true}},
        {}};
    for (const HotDirectory& row : job.hot_directories) {
        table.rows.push_back({or_dash(row.path), format_count(row.files), format_count(row.ops), format_bytes(row.read),
                              format_bytes(row.written), format_duration(row.time)});
    }
    return table;
}

std::string order_cell(const SampleOrder& order) {
    if (order.kind == SampleOrder::Kind::too_few) {
        return "–";
    }
    std::string out(sample_order_name(order.kind));
    if (order.kind == SampleOrder::Kind::windowed) {
        out += " of " + format_count(static_cast<uint64_t>(std::llround(order.window)));
    }
    return out;
}

PageTable epochs_table(const JobAnalysis& job) {
    PageTable table{job.passes.by == JobEpochs::By::marks ? "Epochs, as marked" : "Epochs, by the samples read",
                    {{"epoch", true},
                     {"begins", true},
                     {"time", true},
                     {"samples", true},
                     {"read", true},
                     {"device read", true},
                     {"mean read", true},
                     {"AU", true},
                     {"files"},
                     {"records"},
                     {"as before"}},
                    {}};
    for (const EpochFigures& row : job.epochs) {
        const auto elapsed = static_cast<double>(row.epoch.end - row.epoch.begin);
        const auto devices = static_cast<double>(job.summary.devices.size());
        table.rows.push_back({std::to_string(row.epoch.number), format_duration(row.epoch.begin - job.summary.begin),
                              format_duration(row.epoch.end - row.epoch.begin),
                              row.epoch.samples == 0 ? "–" : format_count(static_cast<uint64_t>(row.epoch.samples)),
                              bytes(row.read_bytes), row.device_bytes ? bytes(*row.device_bytes) : "not recorded",
                              row.reads > 0 ? format_duration(std::llround(row.read_ns / row.reads)) : "–",
                              devices > 0 && elapsed > 0 ? format_share(row.busy_ns / elapsed / devices) : "–",
                              order_cell(row.epoch.files), order_cell(row.epoch.records),
                              !row.epoch.as_before   ? "–"
                              : *row.epoch.as_before ? "yes"
                                                     : "no"});
    }
    return table;
}

PageTable bursts_table(const JobAnalysis& job) {
    PageTable table{job.bursts_of_checkpoints ? "Bursts of checkpoint writing" : "Bursts of writing",
                    {{"begins", true}, {"time", true}, {"bytes", true}, {"rate", true}},
                    {}};
    for (const Burst& burst : job.bursts.bursts) {
        const double seconds = static_cast<double>(burst.end_ns - burst.begin_ns) / 1e9;
        table.rows.push_back({format_duration(burst.begin_ns), format_duration(burst.end_ns - burst.begin_ns),
                              bytes(burst.bytes), format_rate(burst.bytes / std::max(seconds, 1e-9))});
    }
    return table;
}

void add_bounds(Page& page, const JobBounds& bounds, const std::string& name, const std::string& prefix) {
    page.section(name + "What bounds it");
    if (!bounds.known()) {
        page.paragraph("Not computed: " + bounds.why_none + ".");
        return;
    }
    page.paragraph("Computed on the causal graph of the log. With all times as recorded it gives " +
                   format_duration(bounds.modelled->elapsed) + " for the recorded " + format_duration(bounds.recorded) +
                   "; differences of that size say nothing.");
    if (!bounds.doubt.empty()) {
        page.paragraph("With care: " + bounds.doubt + ".");
    }
    if (bounds.guessed_bytes > 0) {
        page.paragraph("For " + format_bytes(bounds.guessed_bytes) +
                       " the log has no call that memory served: with infinitely fast storage they are copied at "
                       "3 GB/s, a guess.");
    }
    add_all(page, bounds_charts(bounds, prefix));
}

void add_trust(Page& page, const JobAnalysis& job) {
    if (!job.part.empty()) {
        page.paragraph("A part of the job, as " + job.part + ": what is missing is in no figure.");
    }
    if (job.recovered) {
        page.paragraph("The log was cut, and read as far as it goes: " + *job.recovered);
    }
}

void add_files(Page& page, const JobAnalysis& job, const std::string& name, const std::string& prefix) {
    page.section(name + "Files");
    if (job.sampled < 1) {
        page.paragraph("Re-use and epochs are of " + format_share(job.sampled) +
                       " of the places in the files, chosen by chance.");
    }
    add_all(page, file_charts(job, prefix));
    page.table(files_table(job));
    page.table(directories_table(job));
}

/// Everything of one job. `name`: before the headings.
void add_job(Page& page, const AnalyzedJob& one, const std::string& name, const std::string& prefix) {
    const JobAnalysis& job = one.job;
    page.section(name + "Summary");
    add_trust(page, job);
    page.findings(top_findings(job, one.bounds ? &*one.bounds : nullptr));
    page.figures(key_figures(one));
    if (one.bounds) {
        add_bounds(page, *one.bounds, name, prefix);
    }
    page.section(name + "Over time",
                 "Drag to zoom, double-click to go back; with the keyboard: arrows read values, + and "
                 "- zoom, Shift with arrows moves, 0 goes back.");
    if (const auto lanes = timeline_chart(job, prefix)) {
        page.lanes(*lanes);
    }
    add_all(page, time_charts(job, prefix));
    add_all(page, context_charts(job, prefix));
    page.section(name + "Requests");
    add_all(page, size_charts(job, prefix));
    add_all(page, request_charts(job, prefix));
    page.table(calls_table(job));
    add_files(page, job, name, prefix);
    page.section(name + "Epochs", "Order: " + order_words(job) + ".");
    if (!job.epochs.empty()) {
        add_all(page, epoch_charts(job, prefix));
        page.table(epochs_table(job));
    }
    if (!job.bursts.bursts.empty()) {
        page.table(bursts_table(job));
    }
    page.section(name + "Not recorded");
    for (const std::string& what : not_recorded(job)) {
        page.paragraph(what + ".");
    }
}

void add_side_by_side(Page& page, std::span<const AnalyzedJob> jobs) {
    page.section("Side by side");
    PageTable table{"Key figures", {{""}}, {}};
    for (const AnalyzedJob& one : jobs) {
        table.columns.push_back({one.name});
        const auto figures = key_figures(one);
        for (const auto& [name, value] : figures) {
            auto row =
                std::find_if(table.rows.begin(), table.rows.end(),
                             [&, wanted = name](const std::vector<std::string>& cells) { return cells[0] == wanted; });
            if (row == table.rows.end()) {
                row = table.rows.insert(table.rows.end(), {name});
            }
            row->resize(table.columns.size() - 1, "–");
            row->push_back(value);
        }
    }
    page.table(table);
    add_all(page, side_by_side_charts(jobs));
}

std::string lead_of(const JobAnalysis& job) {
    std::string out = job.header.source;
    for (const std::string& more : {job.header.command, job.header.host, job.header.kernel}) {
        out += (out.empty() || more.empty() ? "" : " · ") + more;
    }
    return out;
}

}  // namespace

std::unique_ptr<Page> job_page(std::span<const AnalyzedJob> jobs) {
    std::string title, lead;
    for (const AnalyzedJob& one : jobs) {
        title += (title.empty() ? "" : ", ") + one.name;
        lead += (lead.empty() ? "" : " | ") + lead_of(one.job);
    }
    auto page = std::make_unique<Page>(title + " – reprise analyze", lead);
    if (jobs.size() == 1) {
        add_job(*page, jobs[0], "", "");
        return page;
    }
    add_side_by_side(*page, jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
        add_job(*page, jobs[i], jobs[i].name + ": ", "log" + std::to_string(i + 1) + "-");
    }
    return page;
}

}  // namespace reprise
