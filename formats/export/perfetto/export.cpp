// SPDX-License-Identifier: MIT
// Chrome's Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing open: processes, tasks as threads, ops
// as complete events, edges as flow arrows, markers as nested slices, a lane per stream of an accelerator, a lane of
// asynchronous requests per ring, a lane of network waits per task, throughput, requests in flight and what happened
// around the job as counters.
//
// Complete events of one thread must nest: where calls of a task overlap otherwise (asynchronous ones), the later goes
// to a further lane of the task. Overlaps of up to two units of the log's resolution are rounding; there the later
// event is drawn from the end of the earlier.
//
// Viewers put processes in the order of how many events they have, and threads in that of their ids. Lanes of our own
// have ids that no recorded task has: accelerators and markers small ones, the rest next to their task.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "formats/export/exporter.h"
#include "formats/export/perfetto/network_lanes.h"
#include "formats/export/perfetto/request_lanes.h"
#include "formats/export/perfetto/timeline_edges.h"
#include "formats/export/perfetto/trace_events.h"
#include "formats/oplog/context_series.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/reap_arg.h"
#include "formats/oplog/time_order.h"
#include "formats/support/escape.h"
#include "formats/support/text_output.h"

namespace reprise {
namespace {

constexpr size_t kCounterBins = 2000;
constexpr int64_t kShortestBin = 1'000'000;  // ns

// The number under which the viewer knows a process or thread: the recorded one where all are distinct, else the id.
template <class Row, class Number>
std::vector<int64_t> viewer_ids(const std::vector<Row>& rows, Number number) {
    std::vector<int64_t> ids(rows.size()), sorted;
    bool distinct = true;
    for (size_t i = 1; i < rows.size(); ++i) {
        sorted.push_back(number(rows[i]));
    }
    std::sort(sorted.begin(), sorted.end());
    distinct =
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && (sorted.empty() || sorted.front() > 0);
    for (size_t i = 1; i < rows.size(); ++i) {
        ids[i] = distinct ? number(rows[i]) : static_cast<int64_t>(i);
    }
    return ids;
}

std::string_view category(const OpInfo& row) {
    if (row.is(Trait::reads)) {
        return "read";
    }
    if (row.is(Trait::writes)) {
        return "write";
    }
    if (row.is(Trait::syncs)) {
        return "sync";
    }
    if (row.is(Trait::memory)) {
        return "memory";
    }
    if (row.is(Trait::async)) {
        return "async";
    }
    if (row.is(Trait::cause)) {
        return "cause";
    }
    if (row.is(Trait::accelerator)) {
        return "accelerator";
    }
    return "metadata";
}

std::string_view wait_name(int64_t what) {
    switch (what) {
        case kWaitFutex: return "futex";
        case kWaitPoll: return "poll";
        case kWaitSleep: return "sleep";
        case kWaitChild: return "child";
        case kWaitLock: return "lock";
        case kWaitWokeOthers: return "a call that woke others";
        case kWaitEpoll: return "epoll";
        case kWaitUntil: return "a point in time";
        default: return "unknown";
    }
}

// Lanes on which intervals nest; `place` gives the lane's index and may move the begin over rounding.
class Lanes {
public:
    size_t place(int64_t& begin, int64_t end, int64_t rounding) {
        for (size_t lane = 0;; ++lane) {
            if (lane == ends_.size()) {
                ends_.emplace_back();
            }
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
    Timeline(const LogReader& log, TextOutput& out, ExportReport& report, std::span<const TaskId> tasks,
             const TimelineEdges& edges)
        : log_(log),
          tables_(log.tables()),
          out_(out),
          to_(out),
          report_(report),
          edges_(edges),
          tracks_(tables_.tasks.size()),
          requests_(tables_, to_, pids_,
                    [this](const DoneRequest& request) {
                        moved(request.begin, std::max(request.begin, request.end), request.bytes(),
                              request.what.reads());
                    }),
          network_(log, to_, [this](TaskId task) { return network_lane(task); }) {
        pids_ = viewer_ids(tables_.processes, [](const ProcessRow& row) { return int64_t{row.pid}; });
        tids_ = viewer_ids(tables_.tasks, [](const TaskRow& row) { return int64_t{row.tid}; });
        used_.insert(pids_.begin(), pids_.end());
        used_.insert(tids_.begin(), tids_.end());
        begin_ = std::numeric_limits<int64_t>::max();
        end_ = std::numeric_limits<int64_t>::min();
        for (const BlockInfo& block : log.blocks()) {
            if (!tasks.empty() && std::find(tasks.begin(), tasks.end(), block.task) == tasks.end()) {
                continue;
            }
            begin_ = std::min(begin_, block.begin);
            end_ = std::max(end_, block.end);
        }
        if (begin_ > end_) {
            begin_ = end_ = 0;
        }
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
        if (begin_ < 0) {
            const int64_t shift = begin_ == std::numeric_limits<int64_t>::min() ? 0 - (begin_ + 1) : 0 - begin_;
            to_.shift(shift);
            other("zero", "timeline 0 is log time -" + std::to_string(shift) + " ns");
        }
        for (const Counter& counter : tables_.counters) {
            if (counter.severity != Severity::note) {
                other(counter.name, std::to_string(counter.value) + ": " + counter.meaning);
            }
        }
        out_.text += "},\"traceEvents\":[\n";
        for (ProcessId id = 1; id < tables_.processes.size(); ++id) {
            const ProcessRow& row = tables_.processes[id];
            std::string name(tables_.strings[row.command]);
            if (name.empty()) {
                name = "process " + std::to_string(row.pid);
            }
            if (row.host) {
                name += " on " + std::string(tables_.strings[row.host]);
            }
            to_.name("process_name", pids_[id], 0, name);
        }
    }

    void op(TaskId task, const Op& op, uint64_t number) {
        if (task >= tracks_.size()) {
            return;
        }
        if (op.kind == OpKind::marker) {
            marker(task, op, number);
            return;
        }
        if (op.kind == OpKind::gpu_submit) {
            accelerator(task, op);
        }
        if (!(is_run_ && op.result == -ECANCELED)) {
            requests_.op(task, op);
        }
        network_.op(task, op);
        call(task, op, number);
    }

    void finish() {
        for (TaskId task = 1; task < tracks_.size(); ++task) {
            while (!tracks_[task].open.empty()) {
                end_marker(task, std::max(end_, tracks_[task].open.back().begin));
            }
        }
        requests_.finish();
        counters();
        context();
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
    struct Queue {  // of an accelerator
        int64_t id = 0;
        int64_t busy_until = std::numeric_limits<int64_t>::min();
    };

    void other(std::string_view key, std::string_view value) {
        if (value.empty()) {
            return;
        }
        out_.text += ',';
        append_json(out_.text, key);
        out_.text += ':';
        append_json(out_.text, value);
    }

    // The lowest unused id from `from` on.
    int64_t new_id(int64_t from) {
        while (!used_.insert(from).second) {
            ++from;
        }
        return from;
    }
    int64_t pid_of(TaskId task) const {
        const ProcessId process = tables_.tasks[task].process;
        return process < pids_.size() ? pids_[process] : 0;
    }
    // Viewers show the thread's id behind its name.
    std::string task_name(TaskId task, bool with_id) const {
        const TaskRow& row = tables_.tasks[task];
        std::string name(tables_.strings[row.name]);
        if (name.empty()) {
            name = "task";
        }
        return with_id || row.tid != tids_[task] ? name + " " + std::to_string(row.tid) : name;
    }
    int64_t lane_id(TaskId task, size_t lane) {
        std::vector<int64_t>& ids = tracks_[task].lane_ids;
        while (ids.size() <= lane) {
            const bool first = ids.empty();
            ids.push_back(first ? tids_[task] : new_id(ids.back() + 1));
            to_.name("thread_name", pid_of(task), ids.back(),
                     first ? task_name(task, false)
                           : task_name(task, true) + " (overlap " + std::to_string(ids.size() - 1) + ")");
        }
        return ids[lane];
    }

    NetworkLanes::Lane network_lane(TaskId task) {
        const int64_t id = new_id(tids_[task] + 1);
        to_.name("thread_name", pid_of(task), id, "network of " + task_name(task, true));
        return {pid_of(task), id};
    }

    void call(TaskId task, const Op& op, uint64_t number) {
        const OpInfo& row = info(op.kind);
        const int64_t end_time = std::max(op.begin, end_of(op));
        int64_t begin = op.begin;
        const size_t lane = tracks_[task].lanes.place(begin, end_time, 2 * int64_t{log_.header().time_unit_ns});
        const int64_t id = lane_id(task, lane);
        to_.event("X", pid_of(task), id);
        to_.text("name", row.name);
        to_.text("cat", category(row));
        to_.time(begin);
        to_.duration(std::max<int64_t>(0, end_time - begin));
        to_.args();
        to_.number("op", static_cast<int64_t>(number));
        if (const FileId file = file_of(op)) {
            to_.text("file", tables_.path(file));
        }
        if (op.file2) {
            to_.text("file2", tables_.path(op.file2));
        }
        for (const FieldInfo& field : all_fields()) {
            arg(row, op, field);
        }
        to_.number("result", op.result);
        if (op.result < 0 && op.result > -4096 && row.is(Trait::io)) {
            to_.text("error", std::strerror(static_cast<int>(-op.result)));
        }
        to_.args_end();
        to_.end();
        flows(task, op, number, id, begin, end_time);
        throughput(op, row);
    }

    // The file of an op, also of one that only names a mapping.
    FileId file_of(const Op& op) {
        const FileId file = tables_.file_of(op);
        if (!info(op.kind).has(Field::map) || op.map == 0) {
            return file;
        }
        if (op.kind == OpKind::mmap) {
            maps_[op.map] = file;
            return file;
        }
        const auto found = maps_.find(op.map);
        return found == maps_.end() ? file : found->second;
    }

    // Numbers a reader of the timeline needs; table ids would mean nothing there.
    void arg(const OpInfo& row, const Op& op, const FieldInfo& field) {
        if (!row.has(field.field)) {
            return;
        }
        switch (field.field) {
            case Field::handle:
            case Field::handle2:
            case Field::file:
            case Field::file2:
            case Field::list: return;
            case Field::text: to_.text("text", tables_.strings[op.text]); return;
            case Field::peer:
                if (op.peer && op.peer < tracks_.size()) {
                    to_.text("peer", task_name(op.peer, true));
                }
                return;
            case Field::arg:
                if (takes_results(op.kind)) {
                    to_.number("arg", least_results(op.arg));
                    to_.number("looks", looks_more(op.arg) + 1);
                    return;
                }
                if (op.kind != OpKind::wait) {
                    break;
                }
                to_.text("for", wait_name(wait_class(op.arg)));
                return;
            case Field::fd:
            case Field::fd2:
            case Field::offset:
            case Field::offset2:
            case Field::size:
            case Field::flags:
            case Field::mode:
            case Field::map:
            case Field::request: break;
        }
        to_.number(field.name, field_value(op, field.field));
    }

    // Arrows out of and into the event that was just written: viewers tie them to the event that began last on the
    // thread. An arrow ends where an event begins; what releases an op that had begun before therefore points to an
    // instant at the op's end.
    void flows(TaskId task, const Op& op, uint64_t number, int64_t id, int64_t begin, int64_t end) {
        for (const TimelineEdges::Source& source : edges_.from(task, number)) {
            flow("s", task, id, begin, source.id(), source.kind);
        }
        for (const Edge& edge : op.edges) {
            const TimelineEdges::Source* source = edges_.source(edge);
            if (source == nullptr || edge.task == task) {  // the latter are of requests, which have lanes of their own
                continue;
            }
            const bool within = source->end > begin;
            // The arrow's begin must come first, also where rounding moved it.
            if (within && distance_ns(source->begin, end) <= 2 * int64_t{log_.header().time_unit_ns}) {
                report_.count(Count::edges_backwards);
                continue;
            }
            if (within) {
                to_.event("i", pid_of(task), id);
                to_.text("name", "released");
                to_.text("cat", "edge");
                to_.time(end);
                to_.text("s", "t");
                to_.args();
                to_.text("by", task_name(edge.task, true));
                to_.text("edge", edge_name(edge.kind));
                to_.args_end();
                to_.end();
            }
            flow("f", task, id, within ? end : begin, source->id(), edge.kind);
        }
    }
    void flow(std::string_view phase, TaskId task, int64_t id, int64_t at, int64_t number, EdgeKind kind) {
        to_.event(phase, pid_of(task), id);
        to_.text("name", edge_name(kind));
        to_.text("cat", "edge");
        to_.time(at);
        to_.number("id", number);
        if (phase == "f") {
            to_.text("bp", "e");
        }
        to_.end();
    }

    // The queue of a device's stream as a replay runs it: work starts when it is submitted and the work before it is
    // done.
    void accelerator(TaskId task, const Op& op) {
        const ProcessId process = tables_.tasks[task].process;
        Queue& queue = queues_[{process, op.arg, op.flags}];
        if (queue.id == 0) {
            queue.id = new_id(1);
            to_.name(
                "thread_name", pid_of(task), queue.id,
                "accelerator " + std::to_string(op.arg) + (op.flags == 0 ? "" : " stream " + std::to_string(op.flags)));
        }
        const int64_t begin = std::max(op.begin, queue.busy_until);
        queue.busy_until = end_of(begin, std::max<int64_t>(0, op.size));
        to_.event("X", pid_of(task), queue.id);
        const std::string_view name = tables_.strings[op.text];
        to_.text("name", name.empty() ? "busy" : name);
        to_.text("cat", "accelerator");
        to_.time(begin);
        to_.duration(queue.busy_until - begin);
        to_.args();
        to_.number("stream", op.flags);
        to_.args_end();
        to_.end();
    }

    void marker(TaskId task, const Op& op, uint64_t number) {
        Track& track = tracks_[task];
        if (track.marker_id == 0) {
            track.marker_id = new_id(1);
            to_.name("thread_name", pid_of(task), track.marker_id, "markers of " + task_name(task, true));
        }
        const auto phase = static_cast<MarkerPhase>(op.flags);
        if (phase == MarkerPhase::end) {
            const auto open = std::find_if(track.open.rbegin(), track.open.rend(),
                                           [&](const OpenMarker& m) { return m.name == op.text; });
            if (open != track.open.rend()) {
                const auto crossed = static_cast<uint64_t>(open - track.open.rbegin());
                if (crossed) {
                    report_.count(Count::markers_crossed, crossed);
                }
                for (uint64_t i = 0; i < crossed; ++i) {
                    end_marker(task, op.begin);
                }
                // At the end itself viewers find the span closed.
                const int64_t inside = std::max(track.open.back().begin, op.begin - 1);
                flows(task, op, number, track.marker_id, inside, inside);
                end_marker(task, op.begin);
                return;
            }
            report_.count(Count::markers_unmatched);
        }
        const bool begins = phase == MarkerPhase::begin;
        to_.event(begins ? "B" : "i", pid_of(task), track.marker_id);
        std::string name(tables_.strings[op.text]);
        if (op.arg >= 0) {
            name += " " + std::to_string(op.arg);
        }
        to_.text("name", phase == MarkerPhase::end ? name + " (end)" : name);
        to_.text("cat", "marker");
        to_.time(op.begin);
        if (!begins) {
            to_.text("s", "t");
        }
        to_.args();
        to_.number("number", op.arg);
        to_.args_end();
        to_.end();
        flows(task, op, number, track.marker_id, op.begin, op.begin);
        if (begins) {
            track.open.push_back({op.text, op.begin});
        }
    }

    void end_marker(TaskId task, int64_t at) {
        Track& track = tracks_[task];
        track.open.pop_back();
        to_.event("E", pid_of(task), track.marker_id);
        to_.time(at);
        to_.end();
    }

    void throughput(const Op& op, const OpInfo& row) {
        moved(op.begin, end_of(op), static_cast<uint64_t>(std::max<int64_t>(data_bytes(op), 0)), row.is(Trait::reads));
    }
    // Spreads the bytes of a call or a request evenly over its duration.
    void moved(int64_t begin, int64_t end, uint64_t bytes, bool reads) {
        if (bytes == 0) {
            return;
        }
        std::vector<double>& bins = reads ? read_ : written_;
        const int64_t last = std::clamp(end, begin_, end_), first = std::clamp(begin, begin_, last);
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
        if (!any_read && !any_written) {
            return;
        }
        const int64_t pid = new_id(1);
        to_.name("process_name", pid, 0, "throughput");
        for (size_t bin = 0; bin <= read_.size(); ++bin) {
            const bool past = bin == read_.size();
            const int64_t at = end_of(begin_, static_cast<int64_t>(bin) * bin_ns_);
            if (any_read) {
                to_.counter(pid, "read", "MB/s", at, past ? 0 : rate(read_[bin]));
            }
            if (any_written) {
                to_.counter(pid, "write", "MB/s", at, past ? 0 : rate(written_[bin]));
            }
        }
    }
    double rate(double bytes) const { return bytes / 1e6 / (static_cast<double>(bin_ns_) / 1e9); }

    void context() {
        const Context context = read_context(log_.header());
        if (context.series.empty()) {
            return;
        }
        const int64_t pid = new_id(1);
        to_.name("process_name", pid, 0, "machine");
        for (const ContextSeries& series : context.series) {
            for (size_t i = 0; i <= series.values.size(); ++i) {
                to_.counter(pid, series.name, series.unit, static_cast<int64_t>(i) * context.interval_ns,
                            i < series.values.size() ? series.values[i] : 0);
            }
        }
    }

    const LogReader& log_;
    const Tables& tables_;
    TextOutput& out_;
    TraceEvents to_;
    ExportReport& report_;
    const TimelineEdges& edges_;
    std::vector<Track> tracks_;
    std::vector<int64_t> pids_, tids_;
    std::set<int64_t> used_;                                           // ids of processes and threads
    std::map<std::tuple<ProcessId, int64_t, int64_t>, Queue> queues_;  // by device and stream
    std::unordered_map<uint32_t, FileId> maps_;
    const bool is_run_ = log_.header().source == "replay";
    RequestLanes requests_;
    NetworkLanes network_;
    int64_t begin_ = 0, end_ = 0, bin_ns_ = kShortestBin;
    std::vector<double> read_, written_;  // bytes per bin
};

ExportReport write(const LogReader& log, const std::filesystem::path& output, const ExportOptions& options) {
    const OpSelector selector(log, options.filter);
    const TimelineEdges edges(log, options.tasks, selector);
    ExportReport report;
    check_written(output, options);
    TextOutput out(output);
    Timeline timeline(log, out, report, options.tasks, edges);
    timeline.start();
    for_each_between(log, {}, options.tasks, [&](TaskId task, const Op& op, uint64_t number) {
        if (selector.keeps(op)) {
            timeline.op(task, op, number);
            ++report.ops;
        } else {
            ++report.left_out;
        }
        if (options.progress) {
            options.progress(report.ops + report.left_out);
        }
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
