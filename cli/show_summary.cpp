// SPDX-License-Identifier: MIT
#include "cli/show_summary.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/units.h"

namespace reprise::cli {
namespace {

Cell share_or_dash(const std::optional<double>& share) {
    return share_cell(share.value_or(std::numeric_limits<double>::quiet_NaN()));
}

template <class Part>
std::vector<Cell> utilisation_cells(std::string_view process, std::string_view device, std::string_view part,
                                    const Part& row, const Histogram* steps) {
    const auto step = [&](double share) {
        return steps && steps->count() > 0 ? duration_cell(steps->percentile(share)) : Cell("", nullptr);
    };
    return {process,
            device,
            part,
            count_cell(row.submits),
            duration_cell(row.busy),
            duration_cell(row.end - row.begin),
            share_or_dash(row.au()),
            share_or_dash(row.au_mlperf()),
            duration_cell(row.stall()),
            step(0.5),
            step(0.99)};
}

}  // namespace

Cell text_cell(std::string_view bytes) { return {bytes, printable(bytes)}; }

Table kinds_table(const Summary& summary) {
    Table table({{"op", "kind"},
                 {"ops", "ops", true},
                 {"errors", "errors", true},
                 {"bytes", "bytes", true},
                 {"in calls", "time_ns", true},
                 {"p50", "p50_ns", true},
                 {"p90", "p90_ns", true},
                 {"p99", "p99_ns", true},
                 {"p99.9", "p999_ns", true},
                 {"max", "max_ns", true}});
    for (const KindSummary& row : summary.kinds) {
        const auto time = static_cast<int64_t>(std::min(row.time, 9.2e18));
        table.row({info(row.kind).name, count_cell(row.ops), row.errors ? count_cell(row.errors) : Cell("", 0),
                   row.bytes ? bytes_cell(row.bytes) : Cell("", 0), duration_cell(time), duration_cell(row.latency.p50),
                   duration_cell(row.latency.p90), duration_cell(row.latency.p99), duration_cell(row.latency.p999),
                   duration_cell(row.latency.max)});
    }
    return table;
}

Table roles_table(const Summary& summary) {
    std::vector<Column> columns{{"role", "role"},
                                {"files", "files", true},
                                {"absent", "absent", true},
                                {"size", "bytes_on_disk", true},
                                {"ops", "ops", true},
                                {"read", "bytes_read", true},
                                {"written", "bytes_written", true}};
    const bool page_cache = std::any_of(summary.roles.begin(), summary.roles.end(),
                                        [](const RoleSummary& row) { return row.bytes_cached || row.bytes_fetched; });
    if (page_cache) {
        columns.insert(columns.end(), {{"cached at open", "bytes_cached", true}, {"fetched", "bytes_fetched", true}});
    }
    Table table(std::move(columns));
    const auto known = [](const std::optional<uint64_t>& bytes) {
        return bytes ? bytes_cell(*bytes) : Cell("-", nullptr);
    };
    for (const RoleSummary& row : summary.roles) {
        std::vector<Cell> cells{
            role_name(row.role),           count_cell(row.files), row.absent ? count_cell(row.absent) : Cell("", 0),
            bytes_cell(row.bytes_on_disk), count_cell(row.ops),   bytes_cell(row.bytes_read),
            bytes_cell(row.bytes_written)};
        if (page_cache) {
            cells.insert(cells.end(), {known(row.bytes_cached), known(row.bytes_fetched)});
        }
        table.row(std::move(cells));
    }
    return table;
}

Table times_table(const Summary& summary, size_t most) {
    Table table({{"task", "task", true},
                 {"time", "span_ns", true},
                 {"in calls", "io", true},
                 {"compute", "compute", true},
                 {"blocked", "blocked", true},
                 {"locks", "locks", true},
                 {"sleep", "slept", true},
                 {"idle", "idle", true},
                 {"rest", "rest", true},
                 {"explained", "explained", true},
                 {"by", "by"}});
    const auto row = [&](const Cell& name, const TaskTime& time) {
        const auto part = [](int64_t ns, int64_t of) {
            return ns == 0 || of <= 0 ? Cell("", 0) : share_cell(static_cast<double>(ns) / static_cast<double>(of));
        };
        std::string by;
        for (size_t kind = 1; kind < time.waited.size(); ++kind) {
            if (time.waited[kind]) {
                by += (by.empty() ? "" : " ") + std::string(edge_name(static_cast<EdgeKind>(kind))) + " " +
                      format_share(static_cast<double>(time.waited[kind]) / static_cast<double>(time.explained()));
            }
        }
        const int64_t span = time.span();
        // Locks are not causes, and sleeps need none.
        const int64_t asks = time.explained() + time.unexplained;
        table.row({name, duration_cell(span), part(time.io, span), part(time.compute, span), part(time.blocked(), span),
                   part(time.locks, span), part(time.slept, span), part(time.idle, span), part(time.rest(), span),
                   part(time.explained(), asks), by});
    };
    if (summary.task_times.empty()) {
        return table;
    }
    TaskTime all;
    for (const TaskTime& time : summary.task_times) {
        all.end += time.span();
        all.io += time.io;
        all.compute += time.compute;
        for (size_t kind = 0; kind < all.waited.size(); ++kind) {
            all.waited[kind] += time.waited[kind];
        }
        all.unexplained += time.unexplained;
        all.slept += time.slept;
        all.locks += time.locks;
        all.idle += time.idle;
    }
    row({"all", 0}, all);
    std::vector<TaskTime> shown = summary.task_times;
    if (shown.size() > most) {
        const auto longer = [](const TaskTime& a, const TaskTime& b) { return a.span() > b.span(); };
        std::stable_sort(shown.begin(), shown.end(), longer);
        shown.resize(most);
    }
    for (const TaskTime& time : shown) {
        row({std::to_string(time.task), time.task}, time);
    }
    return table;
}

Table devices_table(const AcceleratorUse& use, const Tables& tables) {
    Table table({{"pid", "pid", true},
                 {"device", "device", true},
                 {"part", "part"},
                 {"submits", "submits", true},
                 {"busy", "busy_ns", true},
                 {"of", "elapsed_ns", true},
                 {"AU", "au", true},
                 {"AU (MLPerf)", "au_mlperf", true},
                 {"stall", "stall_ns", true},
                 {"step p50", "step_p50_ns", true},
                 {"step p99", "step_p99_ns", true}});
    for (const DeviceUtilisation& device : use.devices) {
        const std::string pid =
            device.process < tables.processes.size() ? std::to_string(tables.processes[device.process].pid) : "?";
        const std::string id = std::to_string(device.device);
        table.row(utilisation_cells(pid, id, "run", device, &device.steps.lengths));
        for (const EpochUtilisation& epoch : device.epochs) {
            const std::string part =
                "epoch " + (epoch.number >= 0 ? std::to_string(epoch.number) : "?") + (epoch.complete ? "" : " (cut)");
            table.row(utilisation_cells(pid, id, part, epoch, nullptr));
        }
    }
    return table;
}

bool is_shown(const Counter& counter) { return counter.severity != Severity::note || !quiet(); }

Table counters_table(const std::vector<Counter>& counters) {
    std::vector<Counter> sorted = counters;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Counter& x, const Counter& y) { return x.severity > y.severity; });
    Table table({{"severity", "severity"}, {"count", "value", true}, {"name", "name"}, {"meaning", "meaning"}});
    for (const Counter& row : sorted) {
        if (!is_shown(row)) {
            continue;
        }
        table.row({severity_name(row.severity), count_cell(row.value), row.name, row.meaning});
    }
    return table;
}

Json counters_json(const std::vector<Counter>& counters) {
    Json out = Json::array();
    for (const Counter& row : counters) {
        out.push_back({{"name", printable(row.name)},
                       {"severity", severity_name(row.severity)},
                       {"value", row.value},
                       {"meaning", printable(row.meaning)}});
    }
    return out;
}

Json header_json(const Header& header) {
    Json extra = Json::object();
    for (const auto& [key, value] : header.extra) {
        extra[printable(key)] = printable(value);
    }
    return {{"source", printable(header.source)},
            {"tool", printable(header.tool)},
            {"command", printable(header.command)},
            {"host", printable(header.host)},
            {"kernel", printable(header.kernel)},
            {"clock", printable(header.clock)},
            {"time_unit_ns", header.time_unit_ns},
            {"origin_unix_ns", header.origin_unix_ns},
            {"extra", std::move(extra)}};
}

}  // namespace reprise::cli
