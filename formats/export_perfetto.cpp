// SPDX-License-Identifier: MIT
// Chrome's Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing open: processes, tasks as threads, ops
// as complete events, markers as nested slices, an accelerator lane per process and device, throughput as counters.
//
// Times are microseconds with nanosecond decimals. Complete events of one thread must nest: where calls of a task
// overlap otherwise (asynchronous ones), the later goes to a further lane of the task. Overlaps of up to two units of
// the log's resolution are rounding; there the later event is drawn from the end of the earlier.
#include <algorithm>
#include <map>
#include <vector>

#include "formats/escape.h"
#include "formats/exporter.h"
#include "formats/merge.h"
#include "formats/op_fields.h"
#include "formats/text_output.h"

namespace reprise {
namespace {

constexpr size_t kCounterBins = 2000;
constexpr int64_t kShortestBin = 1'000'000;  // ns

// ns as microseconds with three decimals.
void append_us(std::string& out, int64_t ns) {
    const bool negative = ns < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    if (negative) out += '-';
    append_number(out, size / 1000);
    const auto part = static_cast<unsigned>(size % 1000);
    if (part == 0) return;
    out += '.';
    out += static_cast<char>('0' + part / 100);
    out += static_cast<char>('0' + part / 10 % 10);
    out += static_cast<char>('0' + part % 10);
}

// The number under which the viewer knows a process or thread: the recorded one where all are distinct, else the id.
template <class Row, class Number>
std::vector<int64_t> viewer_ids(const std::vector<Row>& rows, Number number) {
    std::vector<int64_t> ids(rows.size()), sorted;
    bool distinct = true;
    for (size_t i = 1; i < rows.size(); ++i) sorted.push_back(number(rows[i]));
    std::sort(sorted.begin(), sorted.end());
    distinct =
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && (sorted.empty() || sorted.front() > 0);
    for (size_t i = 1; i < rows.size(); ++i) ids[i] = distinct ? number(rows[i]) : static_cast<int64_t>(i);
    return ids;
}

std::string_view category(const OpInfo& row) {
    if (row.is(Trait::reads)) return "read";
    if (row.is(Trait::writes)) return "write";
    if (row.is(Trait::syncs)) return "sync";
    if (row.is(Trait::memory)) return "memory";
    if (row.is(Trait::async)) return "async";
    if (row.is(Trait::cause)) return "cause";
    if (row.is(Trait::accelerator)) return "accelerator";
    return "metadata";
}

// Lanes on which intervals nest; `place` gives the lane's index and may move the begin over rounding.
class Lanes {
public:
    size_t place(int64_t& begin, int64_t end, int64_t rounding) {
        for (size_t lane = 0;; ++lane) {
            if (lane == ends_.size()) ends_.emplace_back();
            std::vector<int64_t>& open = ends_[lane];
            while (!open.empty() &&
                   (open.back() <= begin || (open.back() < end && open.back() <= end_of(begin, rounding)))) {
                begin = std::max(begin, open.back());
                open.pop_back();
            }
            if (open.empty() || end <= open.back()) {
                open.push_back(end);
                return lane;
            }
        }
    }
    size_t count() const { return ends_.size(); }

private:
    std::vector<std::vector<int64_t>> ends_;
};

class Timeline {
public:
    Timeline(const LogReader& log, TextOutput& out, ExportReport& report, std::span<const TaskId> tasks)
        : log_(log), tables_(log.tables()), out_(out), report_(report), tracks_(tables_.tasks.size()) {
        pids_ = viewer_ids(tables_.processes, [](const ProcessRow& row) { return int64_t{row.pid}; });
        tids_ = viewer_ids(tables_.tasks, [](const TaskRow& row) { return int64_t{row.tid}; });
        for (const int64_t id : pids_) next_id_ = std::max(next_id_, id + 1);
        for (const int64_t id : tids_) next_id_ = std::max(next_id_, id + 1);
        begin_ = std::numeric_limits<int64_t>::max();
        end_ = std::numeric_limits<int64_t>::min();
        for (const BlockInfo& block : log.blocks()) {
            if (!tasks.empty() && std::find(tasks.begin(), tasks.end(), block.task) == tasks.end()) continue;
            begin_ = std::min(begin_, block.begin);
            end_ = std::max(end_, block.end);
        }
        if (begin_ > end_) begin_ = end_ = 0;
        int64_t span;
        if (__builtin_sub_overflow(end_, begin_, &span)) {
            span = std::numeric_limits<int64_t>::max();
            end_ = end_of(begin_, span);
        }
        bin_ns_ = std::max<int64_t>(kShortestBin, span / static_cast<int64_t>(kCounterBins) + 1);
        const size_t bins = static_cast<size_t>(span / bin_ns_) + 1;
        read_.resize(bins);
        written_.resize(bins);
    }

    void start() {
        out_.text += "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"reprise\"";
        other("source", log_.header().source);
        other("command", log_.header().command);
        other("host", log_.header().host);
        for (const Counter& counter : tables_.counters)
            if (counter.severity != Severity::note)
                other(counter.name, std::to_string(counter.value) + ": " + counter.meaning);
        out_.text += "},\"traceEvents\":[\n";
        for (ProcessId id = 1; id < tables_.processes.size(); ++id) {
            const ProcessRow& row = tables_.processes[id];
            std::string name(tables_.strings[row.command]);
            if (name.empty()) name = "process " + std::to_string(row.pid);
            if (row.host) name += " on " + std::string(tables_.strings[row.host]);
            metadata("process_name", pids_[id], 0, "name", name);
        }
    }

    void op(TaskId task, const Op& op, uint64_t number) {
        if (task >= tracks_.size()) return;
        if (op.kind == OpKind::marker) {
            marker(task, op);
            return;
        }
        if (op.kind == OpKind::gpu_submit) accelerator(task, op);
        call(task, op, number);
    }

    void finish() {
        for (TaskId task = 1; task < tracks_.size(); ++task)
            while (!tracks_[task].open.empty()) end_marker(task, std::max(end_, tracks_[task].open.back().begin));
        counters();
        out_.text += "\n]}\n";
    }

private:
    struct OpenMarker {
        StringId name;
        int64_t begin;
    };
    // What is drawn for one task: lanes of calls, and a lane of markers above them.
    struct Track {
        Lanes lanes;
        std::vector<int64_t> lane_ids;
        int64_t marker_id = 0;
        std::vector<OpenMarker> open;
    };
    struct Device {
        int64_t id = 0;
        int64_t busy_until = std::numeric_limits<int64_t>::min();
    };

    void other(std::string_view key, std::string_view value) {
        if (value.empty()) return;
        out_.text += ',';
        append_json(out_.text, key);
        out_.text += ':';
        append_json(out_.text, value);
    }

    // Opens an event's object with what all have; the caller closes it with end().
    void event(std::string_view phase, int64_t pid, int64_t tid) {
        if (any_) out_.text += ",\n";
        any_ = true;
        out_.text += "{\"ph\":\"";
        out_.text += phase;
        out_.text += "\",\"pid\":";
        append_number(out_.text, pid);
        out_.text += ",\"tid\":";
        append_number(out_.text, tid);
    }
    void end() {
        out_.text += '}';
        out_.drain();
    }
    void text(std::string_view key, std::string_view value) {
        out_.text += ",\"";
        out_.text += key;
        out_.text += "\":";
        append_json(out_.text, value);
    }
    void time(std::string_view key, int64_t ns) {
        out_.text += ",\"";
        out_.text += key;
        out_.text += "\":";
        append_us(out_.text, ns);
    }
    void metadata(std::string_view name, int64_t pid, int64_t tid, std::string_view key, std::string_view value) {
        event("M", pid, tid);
        text("name", name);
        out_.text += ",\"args\":{\"";
        out_.text += key;
        out_.text += "\":";
        append_json(out_.text, value);
        out_.text += '}';
        end();
    }
    void sort_index(int64_t pid, int64_t tid, int64_t index) {
        event("M", pid, tid);
        text("name", "thread_sort_index");
        out_.text += ",\"args\":{\"sort_index\":";
        append_number(out_.text, index);
        out_.text += '}';
        end();
    }

    int64_t pid_of(TaskId task) const {
        const ProcessId process = tables_.tasks[task].process;
        return process < pids_.size() ? pids_[process] : 0;
    }
    std::string task_name(TaskId task) const {
        const TaskRow& row = tables_.tasks[task];
        const std::string_view name = tables_.strings[row.name];
        return (name.empty() ? "task" : std::string(name)) + " " + std::to_string(row.tid);
    }
    int64_t lane_id(TaskId task, size_t lane) {
        std::vector<int64_t>& ids = tracks_[task].lane_ids;
        while (ids.size() <= lane) {
            const bool first = ids.empty();
            ids.push_back(first ? tids_[task] : next_id_++);
            const std::string name =
                task_name(task) + (first ? "" : " (overlap " + std::to_string(ids.size() - 1) + ")");
            metadata("thread_name", pid_of(task), ids.back(), "name", name);
            sort_index(pid_of(task), ids.back(),
                       int64_t{task} * 64 + std::min<int64_t>(static_cast<int64_t>(ids.size()), 63));
        }
        return ids[lane];
    }

    void call(TaskId task, const Op& op, uint64_t number) {
        const OpInfo& row = info(op.kind);
        const int64_t end_time = std::max(op.begin, end_of(op));
        int64_t begin = op.begin;
        const size_t lane = tracks_[task].lanes.place(begin, end_time, 2 * int64_t{log_.header().time_unit_ns});
        const int64_t id = lane_id(task, lane);
        event("X", pid_of(task), id);
        text("name", row.name);
        text("cat", category(row));
        time("ts", begin);
        time("dur", std::max<int64_t>(0, end_time - begin));
        out_.text += ",\"args\":{\"op\":";
        append_number(out_.text, number);
        if (const FileId file = tables_.file_of(op)) text("file", tables_.path(file));
        if (op.file2) text("file2", tables_.path(op.file2));
        for (const FieldInfo& field : all_fields()) arg(row, op, field);
        out_.text += ",\"result\":";
        append_number(out_.text, op.result);
        out_.text += '}';
        end();
        throughput(op, row);
    }

    // Numbers a reader of the timeline asks for; ids of tables would tell nothing.
    void arg(const OpInfo& row, const Op& op, const FieldInfo& field) {
        if (!row.has(field.field)) return;
        switch (field.field) {
            case Field::handle:
            case Field::handle2:
            case Field::file:
            case Field::file2:
            case Field::list: return;
            case Field::text: text("text", tables_.strings[op.text]); return;
            case Field::fd:
            case Field::fd2:
            case Field::offset:
            case Field::offset2:
            case Field::size:
            case Field::flags:
            case Field::mode:
            case Field::arg:
            case Field::map:
            case Field::peer:
            case Field::request: break;
        }
        out_.text += ",\"";
        out_.text += field.name;
        out_.text += "\":";
        append_number(out_.text, field_value(op, field.field));
    }

    // The device's queue as a replay runs it: work starts when it is submitted and the work before it is done.
    void accelerator(TaskId task, const Op& op) {
        const ProcessId process = tables_.tasks[task].process;
        Device& device = devices_[{process, op.arg}];
        if (device.id == 0) {
            device.id = next_id_++;
            metadata("thread_name", pid_of(task), device.id, "name", "accelerator " + std::to_string(op.arg));
            sort_index(pid_of(task), device.id, -1);
        }
        const int64_t begin = std::max(op.begin, device.busy_until);
        device.busy_until = end_of(begin, std::max<int64_t>(0, op.size));
        event("X", pid_of(task), device.id);
        const std::string_view name = tables_.strings[op.text];
        text("name", name.empty() ? "busy" : name);
        text("cat", "accelerator");
        time("ts", begin);
        time("dur", device.busy_until - begin);
        out_.text += ",\"args\":{\"stream\":";
        append_number(out_.text, op.flags);
        out_.text += '}';
        end();
    }

    void marker(TaskId task, const Op& op) {
        Track& track = tracks_[task];
        if (track.marker_id == 0) {
            track.marker_id = next_id_++;
            metadata("thread_name", pid_of(task), track.marker_id, "name", task_name(task) + " markers");
            sort_index(pid_of(task), track.marker_id, int64_t{task} * 64);
        }
        const auto phase = static_cast<MarkerPhase>(op.flags);
        if (phase == MarkerPhase::end) {
            const auto open = std::find_if(track.open.rbegin(), track.open.rend(),
                                           [&](const OpenMarker& m) { return m.name == op.text; });
            if (open != track.open.rend()) {
                const auto crossed = static_cast<uint64_t>(open - track.open.rbegin());
                if (crossed)
                    report_.count("markers_crossed", Severity::note,
                                  "spans cut short in the timeline because an outer span ended first", crossed);
                for (uint64_t i = 0; i <= crossed; ++i) end_marker(task, op.begin);
                return;
            }
            report_.count("markers_unmatched", Severity::note, "ends of spans that never began, drawn as instants");
        }
        const bool begins = phase == MarkerPhase::begin;
        event(begins ? "B" : "i", pid_of(task), track.marker_id);
        std::string name(tables_.strings[op.text]);
        if (op.arg >= 0) name += " " + std::to_string(op.arg);
        text("name", phase == MarkerPhase::end ? name + " (end)" : name);
        text("cat", "marker");
        time("ts", op.begin);
        if (!begins) text("s", "t");
        out_.text += ",\"args\":{\"number\":";
        append_number(out_.text, op.arg);
        out_.text += '}';
        end();
        if (begins) track.open.push_back({op.text, op.begin});
    }

    void end_marker(TaskId task, int64_t at) {
        Track& track = tracks_[task];
        track.open.pop_back();
        event("E", pid_of(task), track.marker_id);
        time("ts", at);
        end();
    }

    // Spreads an op's bytes evenly over its duration.
    void throughput(const Op& op, const OpInfo& row) {
        const int64_t bytes = data_bytes(op);
        if (bytes <= 0) return;
        std::vector<double>& bins = row.is(Trait::reads) ? read_ : written_;
        const int64_t last = std::clamp(end_of(op), begin_, end_), first = std::clamp(op.begin, begin_, last);
        const auto a = static_cast<size_t>((first - begin_) / bin_ns_),
                   b = static_cast<size_t>((last - begin_) / bin_ns_);
        if (a == b) {
            bins[a] += static_cast<double>(bytes);
            return;
        }
        const double per_ns = static_cast<double>(bytes) / static_cast<double>(last - first);
        for (size_t bin = a; bin <= b; ++bin) {
            const int64_t from = std::max(first, begin_ + static_cast<int64_t>(bin) * bin_ns_);
            const int64_t to = bin == b ? last : begin_ + static_cast<int64_t>(bin + 1) * bin_ns_;
            bins[bin] += per_ns * static_cast<double>(to - from);
        }
    }

    void counters() {
        const auto moved = [](double bytes) { return bytes > 0; };
        const bool any_read = std::any_of(read_.begin(), read_.end(), moved),
                   any_written = std::any_of(written_.begin(), written_.end(), moved);
        if (!any_read && !any_written) return;
        const int64_t pid = next_id_++;
        metadata("process_name", pid, 0, "name", "throughput");
        for (size_t bin = 0; bin <= read_.size(); ++bin) {
            const bool past = bin == read_.size();
            if (any_read) counter(pid, bin, "read MB/s", past ? 0 : read_[bin]);
            if (any_written) counter(pid, bin, "write MB/s", past ? 0 : written_[bin]);
        }
    }
    void counter(int64_t pid, size_t bin, std::string_view name, double bytes) {
        event("C", pid, 0);
        text("name", name);
        time("ts", end_of(begin_, static_cast<int64_t>(bin) * bin_ns_));
        out_.text += ",\"args\":{\"MB/s\":";
        char number[40];
        std::snprintf(number, sizeof number, "%.3f", bytes / 1e6 / (static_cast<double>(bin_ns_) / 1e9));
        out_.text += number;
        out_.text += '}';
        end();
    }

    const LogReader& log_;
    const Tables& tables_;
    TextOutput& out_;
    ExportReport& report_;
    std::vector<Track> tracks_;
    std::vector<int64_t> pids_, tids_;
    std::map<std::pair<ProcessId, int64_t>, Device> devices_;
    int64_t next_id_ = 1;
    int64_t begin_ = 0, end_ = 0, bin_ns_ = kShortestBin;
    std::vector<double> read_, written_;  // bytes per bin
    bool any_ = false;
};

ExportReport write(const LogReader& log, const std::filesystem::path& output, const ExportOptions& options) {
    const OpSelector selector(log, options.filter);
    ExportReport report;
    TextOutput out(output);
    Timeline timeline(log, out, report, options.tasks);
    timeline.start();
    for_each_between(log, {}, options.tasks, [&](TaskId task, const Op& op, uint64_t number) {
        if (selector.keeps(op)) {
            timeline.op(task, op, number);
            ++report.ops;
        } else {
            ++report.left_out;
        }
        if (options.progress) options.progress(report.ops + report.left_out);
    });
    timeline.finish();
    out.finish();
    report.files.push_back(output);
    return report;
}

}  // namespace

extern const Exporter export_perfetto;
const Exporter export_perfetto{"perfetto", "timeline for ui.perfetto.dev (Chrome trace JSON; .gz compresses)", write};

}  // namespace reprise
