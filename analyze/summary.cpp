// SPDX-License-Identifier: MIT
#include "analyze/summary.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>

#include "analyze/passed_reads.h"
#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/time_order.h"

namespace reprise {
namespace {

constexpr size_t kRoles = static_cast<size_t>(Role::system) + 1;

enum class Way : uint8_t { none, read, write, copy };

Way way_of(OpKind kind) {
    const OpInfo& row = info(kind);
    if (row.is(Trait::reads) && row.is(Trait::writes)) {
        return Way::copy;
    }
    if (row.is(Trait::reads)) {
        return Way::read;
    }
    return row.is(Trait::writes) ? Way::write : Way::none;
}

class Collector {
public:
    Collector(const LogReader& log, const OpFilter& filter, const std::function<void(uint64_t)>& progress,
              const SeeBusy& busy)
        : log_(log),
          tables_(log.tables()),
          selector_(log, filter),
          progress_(progress),
          busy_(busy),
          requests_(tables_, [this](const DoneRequest& request) { done(request); }),
          left_out_(tables_, [this](const DoneRequest& request) { out_.left_out_bytes += request.bytes(); }),
          accelerated_(tables_.tasks.size()),
          spent_(tables_),
          times_(tables_.tasks.size()) {
        for (size_t id = 1; id < kOpKindLimit; ++id) {
            ways_[id] = way_of(static_cast<OpKind>(id));
        }
    }

    Summary run() {
        files();
        OpBlock block;
        uint64_t done = 0;
        for (const BlockInfo& where : log_.blocks()) {
            log_.decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                op(block, i);
            }
            log_.forget(where);
            done += block.count();
            if (progress_) {
                progress_(done);
            }
        }
        finish();
        return std::move(out_);
    }

private:
    void files() {
        out_.tasks = tables_.tasks.size() - 1;
        out_.processes = tables_.processes.size() - 1;
        out_.handles = tables_.handles.size() - 1;
        out_.file_bytes = log_.file_bytes();
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            if (!selector_.keeps_file(id)) {
                continue;
            }
            const FileRow& row = tables_.files[id];
            RoleSummary& role = role_of(id);
            if (row.origin == Origin::absent) {
                ++role.absent;
                continue;
            }
            ++role.files;
            ++out_.files;
            if (row.type == FileType::regular || row.type == FileType::unknown) {
                role.bytes_on_disk += row.size;
            }
        }
        page_cache();
    }

    void page_cache() {
        const std::optional<CachedPages> cached = cached_pages(log_);
        const std::optional<FetchedPages> fetched = fetched_pages(log_);
        passed_ = PassedReads(tables_, fetched, cached);
        for (RoleSummary& role : roles_) {
            role.bytes_cached = cached ? std::optional<uint64_t>(0) : std::nullopt;
            role.bytes_fetched = fetched ? std::optional<uint64_t>(0) : std::nullopt;
        }
        for (const auto& [file, pages] : cached.value_or(CachedPages())) {
            *role_of(file).bytes_cached += selector_.keeps_file(file) ? within(file, pages * RangeSet::kPage) : 0;
        }
        for (const auto& [file, pages] : fetched.value_or(FetchedPages())) {
            *role_of(file).bytes_fetched += selector_.keeps_file(file) ? within(file, pages.bytes()) : 0;
        }
        const std::optional<RefetchedPages> again = fetched ? refetched_pages(log_) : std::nullopt;
        for (const auto& [file, pages] : again.value_or(RefetchedPages())) {
            *role_of(file).bytes_fetched += selector_.keeps_file(file) ? again_bytes(file, pages) : 0;
        }
    }

    /// The last page of a file counts as far as the file goes.
    uint64_t within(FileId file, uint64_t bytes) const {
        const FileRow& row = tables_.files[file];
        return row.size_exact ? std::min(bytes, row.size) : bytes;
    }
    /// As above; how often the last page came is not known: as often as the others.
    uint64_t again_bytes(FileId file, uint64_t pages) const {
        const FileRow& row = tables_.files[file];
        const uint64_t bytes = pages * RangeSet::kPage,
                       whole = (row.size + RangeSet::kPage - 1) & ~(RangeSet::kPage - 1);
        return row.size_exact && row.size > 0 && whole > 0
                   ? static_cast<uint64_t>(std::llround(static_cast<double>(bytes) * static_cast<double>(row.size) /
                                                        static_cast<double>(whole)))
                   : bytes;
    }

    RoleSummary& role_of(FileId file) {
        const size_t role = file < tables_.files.size() ? static_cast<size_t>(tables_.files[file].role) : 0;
        return roles_[std::min(role, kRoles - 1)];
    }
    FileId file_of_handle(HandleId handle) const {
        return handle < tables_.handles.size() ? tables_.handles[handle].file : 0;
    }

    void op(const OpBlock& block, size_t i) {
        const auto kind = static_cast<OpKind>(block.kind[i]);
        const int64_t result = block.result[i];
        if (!selector_.keeps_everything() && !selector_.keeps(block.row(i))) {
            ++out_.left_out_ops;
            out_.left_out_io_ops += info(kind).is(Trait::io) ? 1 : 0;
            out_.left_out_bytes += static_cast<uint64_t>(data_bytes(block.row(i)));
            if (info(kind).is(Trait::async)) {
                left_out_.add(block.task, block.row(i));
            }
            return;
        }
        ++out_.ops;
        begin_ = std::min(begin_, block.begin[i]);
        end_ = std::max(end_, std::max(block.begin[i], end_of(block.begin[i], block.duration[i])));
        KindSummary& row = kinds_[block.kind[i]];
        ++row.ops;
        // A run writes ECANCELED for what it did not perform.
        const bool performed = !(is_run_ && result == -ECANCELED);
        if (performed) {
            latencies_[block.kind[i]].add(block.duration[i]);
        }
        if (result < 0 && performed) {
            ++row.errors;
        }
        const FileId file = block.file[i] ? block.file[i] : file_of_handle(block.handle[i]);
        if (file) {
            ++role_of(file).ops;
        }
        if (const Way way = ways_[block.kind[i]]; way != Way::none && result > 0) {
            const auto bytes = static_cast<uint64_t>(result);
            row.bytes += bytes;
            if (way == Way::copy) {
                if (file) {
                    moved(Way::read, file, bytes);
                }
                if (const FileId to = file_of_handle(block.handle2[i])) {
                    moved(Way::write, to, bytes);
                }
            } else {
                moved(way, file, bytes);
            }
        }
        const std::span<const Edge> of_op = block.has_edges() ? block.edges_of(i) : std::span<const Edge>{};
        if (!of_op.empty()) {
            edges(of_op);
        }
        time(kind, block, i, of_op);
        spent(kind, block, i);
        special(kind, block, i);
    }

    void moved(Way way, FileId file, uint64_t bytes) {
        RoleSummary& role = role_of(file);
        (way == Way::read ? out_.bytes_read : out_.bytes_written) += bytes;
        (way == Way::read ? role.bytes_read : role.bytes_written) += bytes;
        way == Way::read ? passed_.read(file, bytes) : passed_.written(file);
        out_.storage_bytes_read += way == Way::read && spent_.on_storage(file) ? bytes : 0;
    }

    void edges(std::span<const Edge> edges) {
        out_.edges += edges.size();
        for (const Edge& edge : edges) {
            ++out_.edges_by_kind[std::min(static_cast<size_t>(edge.kind), out_.edges_by_kind.size() - 1)];
            if (edge.confidence < 100) {
                ++out_.inferred_edges;
            }
        }
    }

    void time(OpKind kind, const OpBlock& block, size_t i, std::span<const Edge> edges) {
        if (block.task >= times_.size()) {
            return;
        }
        TaskTime& task = times_[block.task];
        const int64_t begin = block.begin[i], duration = std::max<int64_t>(block.duration[i], 0);
        const bool first = task.task == 0;
        task.task = block.task;
        task.begin = first ? begin : std::min(task.begin, begin);
        task.end = first ? end_of(begin, duration) : std::max(task.end, end_of(begin, duration));
        const auto add = [&](int64_t& sum) { sum = end_of(sum, duration); };
        switch (kind) {
            case OpKind::compute: any_time_ = true; return add(task.compute);
            case OpKind::idle: any_time_ = true; return add(task.idle);
            case OpKind::wait:
                any_time_ = true;
                if (is_lock_wait(block.arg[i])) {
                    return add(task.locks);
                }
                if (block.arg[i] == kWaitWokeOthers) {
                    return;
                }
                break;
            case OpKind::join:
            case OpKind::receive:
            case OpKind::send:
            case OpKind::gpu_wait: break;
            default:
                if (info(kind).is(Trait::io)) {
                    add(task.io);
                }
                return;
        }
        if (!edges.empty()) {
            size_t strongest = task.waited.size() - 1;
            for (const Edge& edge : edges) {
                strongest = std::min(strongest, static_cast<size_t>(edge.kind));
            }
            return add(task.waited[strongest]);
        }
        if (kind == OpKind::send) {
            return;
        }
        add(kind == OpKind::wait && ended_by_time(block.arg[i], block.result[i]) ? task.slept : task.unexplained);
    }

    void spent(OpKind kind, const OpBlock& block, size_t i) {
        Op op;
        op.kind = kind;
        op.begin = block.begin[i];
        op.duration = block.duration[i];
        op.handle = block.handle[i];
        op.file = block.file[i];
        op.map = block.map[i];
        op.arg = block.arg[i];
        if (kind == OpKind::touch) {
            op.size = block.size[i];
            op.list = block.list_of(i);
        }
        spent_.add(block.task, op);
    }

    // Kinds that need more than the table says.
    void special(OpKind kind, const OpBlock& block, size_t i) {
        if (kind == OpKind::gpu_submit || kind == OpKind::marker) {
            accelerated_[std::min<size_t>(block.task, accelerated_.size() - 1)] = true;
            any_accelerator_ = any_accelerator_ || (kind == OpKind::gpu_submit && !no_time_);
        } else if (kind == OpKind::touch) {
            out_.bytes_touched += touched_bytes(block.size[i], block.list_of(i));
        } else if (info(kind).is(Trait::async) && !(is_run_ && block.result[i] == -ECANCELED)) {
            requests_.add(block.task, block.row(i));
        }
    }

    void done(const DoneRequest& request) {
        in_flight_.add(request);
        if (request.bytes() != 0) {
            const OpKind completes = request.kind == OpKind::aio_submit ? OpKind::aio_complete : OpKind::uring_complete;
            kinds_[static_cast<size_t>(completes)].bytes += request.bytes();
            moved(request.what.reads() ? Way::read : Way::write, request.file, request.bytes());
        }
    }

    void finish() {
        left_out_.finish();
        requests_.finish();
        out_.requests = in_flight_.finish(requests_);
        const bool any = begin_ <= end_;
        out_.begin = any ? begin_ : 0;
        out_.end = any ? end_ : 0;
        int64_t ignored;
        if (__builtin_sub_overflow(out_.end, out_.begin, &ignored)) {
            out_.end = end_of(out_.begin, std::numeric_limits<int64_t>::max());
        }
        for (size_t id = 1; id < kOpKindLimit; ++id) {
            KindSummary& row = kinds_[id];
            if (row.ops == 0) {
                continue;
            }
            row.kind = static_cast<OpKind>(id);
            row.latency = latency_of(latencies_[id]);
            row.time = latencies_[id].sum();
            out_.errors += row.errors;
            if (info(row.kind).is(Trait::io)) {
                out_.io_ops += row.ops;
            }
            out_.kinds.push_back(row);
        }
        out_.reads = latency_of_all(Trait::reads, latencies_);
        out_.writes = latency_of_all(Trait::writes, latencies_);
        out_.time = spent_.result();
        out_.storage_bytes_touched = spent_.bytes_touched();
        passed_.each([&](FileId file, uint64_t bytes) { *role_of(file).bytes_fetched += within(file, bytes); });
        for (size_t role = 0; role < kRoles; ++role) {
            RoleSummary& row = roles_[role];
            row.role = static_cast<Role>(role);
            if (row.files || row.absent || row.ops || row.bytes_read || row.bytes_written) {
                out_.roles.push_back(row);
            }
        }
        for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
            out_.tasks_with_ops += log_.op_count(task) > 0;
        }
        if (any_accelerator_) {
            accelerators();
        }
        if (any_time_) {
            for (const TaskTime& task : times_) {
                if (task.task) {
                    out_.task_times.push_back(task);
                }
            }
        }
    }

    void accelerators() {
        std::vector<TaskId> tasks;
        for (TaskId task = 1; task < accelerated_.size(); ++task) {
            if (accelerated_[task]) {
                tasks.push_back(task);
            }
        }
        AcceleratorTracker tracker(tables_, busy_);
        for_each_between(log_, {}, tasks, [&](TaskId task, const Op& op, uint64_t) { tracker.add(task, op); });
        out_.devices = tracker.finish(out_.begin, out_.end);
    }

    const LogReader& log_;
    const Tables& tables_;
    const OpSelector selector_;
    const bool is_run_ = log_.header().source == "replay";
    const bool no_time_ = is_run_ && read_fact(log_.header(), fact::pace) == "afap";  // accelerators took none
    const std::function<void(uint64_t)>& progress_;
    const SeeBusy& busy_;
    Summary out_;
    std::array<Way, kOpKindLimit> ways_{};
    std::array<KindSummary, kOpKindLimit> kinds_;
    std::array<Histogram, kOpKindLimit> latencies_;
    std::array<RoleSummary, kRoles> roles_;
    int64_t begin_ = std::numeric_limits<int64_t>::max(), end_ = std::numeric_limits<int64_t>::min();
    PassedReads passed_{tables_, {}, {}};
    RequestMatcher requests_, left_out_;
    InFlightCounter in_flight_;
    std::vector<bool> accelerated_;  // tasks with accelerator ops or markers
    bool any_accelerator_ = false;
    TimeSpentCounter spent_;
    std::vector<TaskTime> times_;  // by task
    bool any_time_ = false;        // some op is there only for its time
};

}  // namespace

Latency latency_of(const Histogram& histogram) {
    Latency out;
    out.count = histogram.count();
    out.min = histogram.min();
    out.p50 = histogram.percentile(0.5);
    out.p90 = histogram.percentile(0.9);
    out.p99 = histogram.percentile(0.99);
    out.p999 = histogram.percentile(0.999);
    out.max = histogram.max();
    out.mean = histogram.mean();
    return out;
}

Latency latency_of_all(Trait trait, std::span<const Histogram> latencies) {
    Histogram all;
    for (const OpInfo& row : all_ops()) {
        if (row.is(trait)) {
            all.merge(latencies[static_cast<size_t>(row.kind)]);
        }
    }
    return latency_of(all);
}

uint64_t touched_bytes(int64_t size, std::span<const int64_t> list) {
    const auto counted = [](int64_t bytes) { return bytes > 0 ? static_cast<uint64_t>(bytes) : 0; };
    uint64_t sum = list.empty() ? counted(size) : 0;
    for (size_t part = 1; part < list.size(); part += 2) {
        sum += counted(list[part]);
    }
    return sum;
}

const KindSummary* Summary::kind(OpKind wanted) const {
    for (const KindSummary& row : kinds) {
        if (row.kind == wanted) {
            return &row;
        }
    }
    return nullptr;
}

int64_t TaskTime::explained() const {
    int64_t sum = 0;
    for (const int64_t part : waited) {
        sum = end_of(sum, part);
    }
    return sum;
}

int64_t TaskTime::rest() const {
    // Calls that overlap, as requests and the call that waits for them, count twice.
    return std::max<int64_t>(span() - io - compute - idle - blocked(), 0);
}

Summary summarize(const LogReader& log, const OpFilter& filter, const std::function<void(uint64_t)>& progress,
                  const SeeBusy& busy) {
    return Collector(log, filter, progress, busy).run();
}

}  // namespace reprise
