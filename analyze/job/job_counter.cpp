// SPDX-License-Identifier: MIT
#include "analyze/job/job_counter.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "formats/oplog/async_request.h"
#include "formats/oplog/loader_marks.h"
#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"

namespace reprise {
namespace {

constexpr size_t kCellsPerInterval = 200;
constexpr size_t kRoles = static_cast<size_t>(Role::system) + 1;

size_t size_class(int64_t bytes) {
    return bytes <= 1 ? 0 : std::min<size_t>(std::bit_width(static_cast<uint64_t>(bytes - 1)), kSizeClasses - 1);
}

/// Of calls, not of requests: what each of them does.
struct Moves {
    bool reads = false, writes = false;
};

Moves moves(const OpInfo& info) { return {info.is(Trait::reads), info.is(Trait::writes)}; }

}  // namespace

JobCounter::JobCounter(const LogReader& log, const AnalyzeOptions& options, std::pair<int64_t, int64_t> whole)
    : log_(log),
      tables_(log.tables()),
      options_(options),
      selector_(log, options.filter),
      is_run_(log.header().source == "replay"),
      cells_(whole.first, whole.second, kIntervals * kCellsPerInterval),
      lanes_grid_(whole.first, whole.second, kLaneIntervals),
      of_cell_(cells_.count()),
      spent_(tables_,
             [this](TaskId task, TimePart part, int64_t begin, int64_t end) { time_of(task, part, begin, end); }),
      streams_(tables_.handles.size()),
      files_(tables_.files.size()),
      kinds_(kOpKindLimit * kRoles),
      process_bytes_(tables_.processes.size()),
      lane_of_task_(tables_.tasks.size()) {
    JobOverTime& time = counted_.time;
    time.grid = TimeGrid(whole.first, whole.second, kIntervals);
    for (OverTime* one :
         {&time.read_bytes, &time.written_bytes, &time.touched_bytes, &time.reads, &time.writes, &time.metadata,
          &time.syncs, &time.waits, &time.compute_ns, &time.in_flight_ns, &time.busy_ns}) {
        one->assign(kIntervals, 0);
    }
    for (StringId id = 1; id < tables_.strings.size(); ++id) {
        if (const auto mark = loader_mark(tables_.strings[id]); mark && mark->what == "epoch") {
            loaders_[id] = mark->loader;
        }
    }
    choose_lanes();
}

/// The tasks with most ops have a row of their own, in the order of their numbers.
void JobCounter::choose_lanes() {
    std::vector<std::pair<uint64_t, TaskId>> by_ops;
    for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
        if (log_.op_count(task) > 0) {
            by_ops.emplace_back(log_.op_count(task), task);
        }
    }
    std::sort(by_ops.begin(), by_ops.end(), std::greater<>());
    const size_t own = by_ops.size() <= kLanes ? by_ops.size() : kLanes - 1;
    std::vector<TaskId> chosen;
    for (size_t i = 0; i < own; ++i) {
        chosen.push_back(by_ops[i].second);
    }
    std::sort(chosen.begin(), chosen.end());
    std::fill(lane_of_task_.begin(), lane_of_task_.end(), static_cast<uint32_t>(own));
    for (const TaskId task : chosen) {
        lane_of_task_[task] = static_cast<uint32_t>(counted_.lanes.size());
        const TaskRow& row = tables_.tasks[task];
        JobLane lane;
        lane.task = task;
        lane.name = std::string(tables_.strings[row.name]);
        lane.name +=
            (lane.name.empty() ? "task " : " ") + std::to_string(row.tid != 0 ? row.tid : static_cast<int>(task));
        lane.parts.resize(kLaneIntervals);
        counted_.lanes.push_back(std::move(lane));
    }
    if (by_ops.size() > own) {
        JobLane rest;
        rest.of = static_cast<uint32_t>(by_ops.size() - own);
        rest.name = std::to_string(rest.of) + " other tasks";
        rest.parts.resize(kLaneIntervals);
        counted_.lanes.push_back(std::move(rest));
    }
}

void JobCounter::add(const OpBlock& block) {
    if (block.task >= tables_.tasks.size()) {
        return;
    }
    const bool everything = selector_.keeps_everything();
    for (size_t i = 0; i < block.count(); ++i) {
        if (everything || selector_.keeps(block.row(i))) {
            op(block, i);
        }
    }
}

FileId JobCounter::file_at(const OpBlock& block, size_t i) const {
    FileId file = block.file[i];
    if (file == 0 && block.handle[i] < tables_.handles.size()) {
        file = tables_.handles[block.handle[i]].file;
    }
    if (file == 0 && block.map[i] != 0) {
        const auto found = maps_.find(block.map[i]);
        file = found == maps_.end() ? 0 : found->second;
    }
    return file < tables_.files.size() ? file : 0;
}

bool JobCounter::is_direct(HandleId handle) const {
    return handle < tables_.handles.size() && (tables_.handles[handle].flags & kOpenDirect) != 0;
}

void JobCounter::op(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& info = reprise::info(kind);
    if (is_run_ && block.result[i] == -ECANCELED) {
        return;  // the run left it out
    }
    if (kind == OpKind::mmap && block.map[i] != 0 && block.handle[i] < tables_.handles.size()) {
        maps_[block.map[i]] = tables_.handles[block.handle[i]].file;
    }
    const FileId file = file_at(block, i);
    const Role role = file != 0 ? tables_.files[file].role : Role::unknown;
    const int64_t begin = block.begin[i];
    const Seen seen{kind,
                    info,
                    block.task,
                    begin,
                    end_of(begin, std::max<int64_t>(block.duration[i], 0)),
                    block.result[i],
                    file,
                    std::min(role, Role::system),
                    on_storage(file),
                    is_direct(block.handle[i])};
    Op timed;
    timed.kind = kind;
    timed.begin = begin;
    timed.duration = block.duration[i];
    timed.handle = block.handle[i];
    timed.file = block.file[i];
    timed.map = block.map[i];
    timed.arg = block.arg[i];
    spent_.add(block.task, timed);
    if (kind == OpKind::marker) {
        marker(block, i);
    } else if (info.is(Trait::waits)) {
        if (!(kind == OpKind::wait && block.arg[i] == kWaitWokeOthers) && block.duration[i] > 0) {
            ++counted_.blocking_waits;
            counted_.time.waits[counted_.time.grid.at(begin)] += 1;
        }
    } else if (info.is(Trait::submits) || info.is(Trait::completes)) {
        request(block, i, seen);
    } else if (info.is(Trait::io)) {
        call(block, i, seen);
    }
}

bool JobCounter::on_storage(FileId file) const {
    if (file == 0) {
        return true;  // not known
    }
    const FileRow& row = tables_.files[file];
    const bool device = row.type == FileType::character || (row.type == FileType::unknown && row.role == Role::system &&
                                                            tables_.path(file).starts_with("/dev/"));
    return row.role != Role::ipc && !device;
}

KindOfRole& JobCounter::kind_of(OpKind kind, Role role) {
    std::unique_ptr<KindOfRole>& at = kinds_[static_cast<size_t>(kind) * kRoles + static_cast<size_t>(role)];
    if (!at) {
        at = std::make_unique<KindOfRole>();
        at->kind = kind;
        at->role = role;
    }
    return *at;
}

void JobCounter::call(const OpBlock& block, size_t i, const Seen& seen) {
    KindOfRole& row = kind_of(seen.kind, seen.role);
    ++row.calls;
    row.errors += seen.result < 0 ? 1 : 0;
    row.latency.add(seen.end - seen.begin);
    if (seen.file != 0) {
        UsedFile& use = files_[seen.file];
        ++use.ops;
        use.time = end_of(use.time, seen.end - seen.begin);
        use.opens += seen.kind == OpKind::open && seen.result >= 0 ? 1 : 0;
    }
    const bool memory_only = seen.info.is(Trait::memory) && seen.file == 0;
    // Calls that submit requests or wait for them: what is in flight are the requests.
    if (seen.storage && !memory_only && !seen.info.is(Trait::async)) {
        in_flight(seen.begin, seen.end);
    }
    const Moves moves = reprise::moves(seen.info);
    if (moves.reads || moves.writes) {
        row.bytes += static_cast<uint64_t>(std::max<int64_t>(seen.result, 0));
        row.sizes.add(block.size[i]);
        data(block, i, seen);
    } else if (seen.kind == OpKind::touch) {
        touch(block, i, seen);
    } else if (seen.storage && seen.info.is(Trait::syncs)) {
        ++counted_.sync_calls;
        counted_.sync_ns = end_of(counted_.sync_ns, seen.end - seen.begin);
        counted_.time.syncs[counted_.time.grid.at(seen.begin)] += 1;
    } else if (seen.storage &&
               (seen.info.is(Trait::metadata) || seen.info.is(Trait::path) || seen.info.is(Trait::changes))) {
        ++counted_.metadata_calls;
        counted_.metadata_ns = end_of(counted_.metadata_ns, seen.end - seen.begin);
        counted_.time.metadata[counted_.time.grid.at(seen.begin)] += 1;
    }
}

void JobCounter::data(const OpBlock& block, size_t i, const Seen& seen) {
    const Moves moves = reprise::moves(seen.info);
    if (seen.storage) {
        counted_.data_ns = end_of(counted_.data_ns, seen.end - seen.begin);
    }
    if (moves.reads && moves.writes) {  // a copy: one end may be a pipe or a socket
        if (seen.file != 0) {
            moved(Way::read, seen, block.offset[i], block.size[i], seen.result, false);
        }
        if (block.handle2[i] < tables_.handles.size() && tables_.handles[block.handle2[i]].file != 0) {
            Seen other = seen;
            other.file = tables_.handles[block.handle2[i]].file;
            other.role = std::min(tables_.files[other.file].role, Role::system);
            other.storage = on_storage(other.file);
            moved(Way::write, other, block.offset2[i], block.size[i], seen.result, false);
        }
        return;
    }
    moved(moves.reads ? Way::read : Way::write, seen, block.offset[i], block.size[i], seen.result, false);
    if (seen.result > 0 && seen.file != 0) {
        Stream& stream = stream_of(block.handle[i], seen.task);
        AccessOrders& orders = files_[seen.file].orders;
        const AccessOrders before = orders;
        stream.order.see(block.offset[i], seen.result, orders);
        AccessOrders& of_role = orders_[static_cast<size_t>(seen.role)];
        of_role.sequential += orders.sequential - before.sequential;
        of_role.strided += orders.strided - before.strided;
        of_role.random += orders.random - before.random;
        if (moves.reads) {
            access(stream, seen.file, seen.task, seen.begin, block.offset[i], seen.result);
        }
    }
}

void JobCounter::moved(Way way, const Seen& seen, int64_t, int64_t asked, int64_t bytes, bool asynchronous) {
    BySize& by_size = (way == Way::read ? counted_.reads_by_size : counted_.writes_by_size)[size_class(asked)];
    const TimeGrid& grid = counted_.time.grid;
    if (seen.storage) {
        ++by_size.calls;
        by_size.bytes += static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
        (asynchronous ? by_size.request_latency : by_size.latency).add(seen.end - seen.begin);
        by_size.request_bytes += asynchronous ? static_cast<uint64_t>(std::max<int64_t>(bytes, 0)) : 0;
        (way == Way::read ? counted_.time.reads : counted_.time.writes)[grid.at(seen.begin)] += 1;
    }
    Cell& at = of_cell_[cells_.at(seen.begin)];
    if (way == Way::read && seen.storage) {
        at.reads += 1;
        at.read_ns += static_cast<float>(seen.end - seen.begin);
    }
    if (bytes <= 0) {
        return;
    }
    if (seen.file != 0) {
        UsedFile& use = files_[seen.file];
        use.reads += way == Way::read ? 1 : 0;
        (way == Way::read ? use.read : use.written) += static_cast<uint64_t>(bytes);
    }
    if (!seen.storage) {
        return;
    }
    counted_.direct_read += way == Way::read && seen.direct ? static_cast<uint64_t>(bytes) : 0;
    if (const ProcessId process = tables_.tasks[seen.task].process; process < process_bytes_.size()) {
        process_bytes_[process] += static_cast<uint64_t>(bytes);
    }
    const auto whole = static_cast<double>(std::max<int64_t>(seen.end - seen.begin, 1));
    const double per_ns = static_cast<double>(bytes) / whole;
    const bool saves = way == Way::write && seen.role == Role::checkpoint;
    cells_.spread(seen.begin, std::max(seen.end, end_of(seen.begin, 1)), [&](size_t cell, double ns) {
        const auto part = static_cast<float>(per_ns * ns);
        (way == Way::read ? of_cell_[cell].read : of_cell_[cell].written) += part;
        of_cell_[cell].saved += saves ? part : 0;
    });
}

JobCounter::Stream& JobCounter::stream_of(HandleId handle, TaskId task) {
    if (handle >= streams_.size()) {
        return shared_[uint64_t{handle} << 32 | task];
    }
    Stream& own = streams_[handle];
    if (own.task == 0) {
        own.task = task;
    }
    return own.task == task ? own : shared_[uint64_t{handle} << 32 | task];
}

/// What lies in the page in which the read before ended came with that: small reads one after the other are one access.
void JobCounter::access(Stream& stream, FileId file, TaskId task, int64_t begin, int64_t offset, int64_t bytes) {
    if (tables_.files[file].role == Role::ipc) {
        return;
    }
    constexpr int kPageBits = 12;
    const int64_t last = end_of(offset, std::max<int64_t>(bytes, 1) - 1) >> kPageBits;
    int64_t first = offset >> kPageBits;
    if (stream.any && first == stream.page) {
        if (last <= first) {
            return;
        }
        ++first;
    }
    accesses_.add(begin, file, first << kPageBits, bytes, task, !stream.any);
    stream.any = true;
    stream.page = last;
}

void JobCounter::touch(const OpBlock& block, size_t i, const Seen& seen) {
    const auto list = block.list_of(i);
    const uint64_t bytes = touched_bytes(block.size[i], list);
    counted_.time.touched_bytes[counted_.time.grid.at(seen.begin)] += seen.storage ? static_cast<double>(bytes) : 0;
    if (seen.file == 0) {
        return;
    }
    UsedFile& use = files_[seen.file];
    use.read += bytes;
    Stream& stream = map_streams_[block.map[i]];
    each_touched(block.offset[i], block.size[i], list, [&](int64_t offset, int64_t size) {
        const AccessOrders before = use.orders;
        stream.order.see(offset, size, use.orders);
        AccessOrders& of_role = orders_[static_cast<size_t>(seen.role)];
        of_role.sequential += use.orders.sequential - before.sequential;
        of_role.strided += use.orders.strided - before.strided;
        of_role.random += use.orders.random - before.random;
    });
}

void JobCounter::request(const OpBlock& block, size_t i, const Seen& seen) {
    const uint32_t id = block.request[i];
    if (id == 0) {
        return;
    }
    Request& request = requests_[id];
    if (seen.info.is(Trait::completes)) {
        if (!request.known) {  // submitted in another task, whose ops come later
            request.end = seen.end;
            request.bytes = seen.result;
            return;
        }
        completed(request, seen.end, seen.result, seen.task);
        requests_.erase(id);
        return;
    }
    const AsyncRequest asked = async_request(block, i);
    const Request known{asked.reads()    ? Way::read
                        : asked.writes() ? Way::write
                                         : Way::none,
                        seen.begin,
                        asked.size,
                        seen.file,
                        true,
                        asked.on_storage(),
                        seen.direct,
                        request.end,
                        request.bytes};
    if (seen.file != 0) {
        ++files_[seen.file].ops;
    }
    if (known.way == Way::read && seen.file != 0) {
        Stream& stream = stream_of(block.handle[i], seen.task);
        stream.order.see(asked.offset, asked.size, files_[seen.file].orders);
        access(stream, seen.file, seen.task, seen.begin, asked.offset, asked.size);
    }
    if (known.end != 0) {
        completed(known, known.end, known.bytes, seen.task);
        requests_.erase(id);
    } else {
        request = known;
    }
}

void JobCounter::completed(const Request& request, int64_t end, int64_t bytes, TaskId task) {
    const Role role = request.file != 0 ? std::min(tables_.files[request.file].role, Role::system) : Role::unknown;
    const bool storage = on_storage(request.file);
    if (storage && request.on_storage) {
        in_flight(request.begin, std::max(end, request.begin));
    }
    if (request.way != Way::none) {
        const OpKind kind = request.way == Way::read ? OpKind::pread : OpKind::pwrite;
        moved(request.way,
              {kind, info(kind), task, request.begin, std::max(end, request.begin), bytes, request.file, role, storage,
               request.direct},
              0, request.size, bytes, true);
    }
}

void JobCounter::in_flight(int64_t begin, int64_t end) {
    cells_.spread(begin, end, [&](size_t cell, double ns) { of_cell_[cell].in_flight += static_cast<float>(ns); });
}

void JobCounter::busy(ProcessId process, int64_t device, int64_t begin, int64_t end) {
    cells_.spread(begin, end, [&](size_t cell, double ns) { of_cell_[cell].busy += static_cast<float>(ns); });
    JobLane& lane = device_lanes_[{process, device}];
    if (lane.parts.empty()) {
        lane.parts.resize(kLaneIntervals);
        lane.accelerator = true;
        lane.name = "accelerator " + std::to_string(device);
    }
    lanes_grid_.spread(begin, end, [&](size_t at, double ns) { lane.parts[at][0] += static_cast<float>(ns); });
}

void JobCounter::time_of(TaskId task, TimePart part, int64_t begin, int64_t end) {
    if (part == TimePart::compute) {
        OverTime& compute = counted_.time.compute_ns;
        counted_.time.grid.spread(begin, end, [&](size_t at, double ns) { compute[at] += ns; });
    }
    JobLane& lane = counted_.lanes[std::min<size_t>(lane_of_task_[task], counted_.lanes.size() - 1)];
    const auto which = static_cast<size_t>(part);
    lanes_grid_.spread(begin, end, [&](size_t at, double ns) { lane.parts[at][which] += static_cast<float>(ns); });
}

void JobCounter::marker(const OpBlock& block, size_t i) {
    const auto loader = loaders_.find(block.text[i]);
    if (loader == loaders_.end()) {
        return;
    }
    const ProcessId process = tables_.tasks[block.task].process;
    const std::tuple key{process, loader->second, block.arg[i]};
    if (block.flags[i] == static_cast<int64_t>(MarkerPhase::begin)) {
        open_epochs_[key] = block.begin[i];
        return;
    }
    const auto open = open_epochs_.find(key);
    if (block.flags[i] != static_cast<int64_t>(MarkerPhase::end) || open == open_epochs_.end()) {
        return;
    }
    // Ranks mark the same epochs, each for itself.
    const auto [at, fresh] = marked_.try_emplace(
        {loader->second, block.arg[i]}, MarkedEpoch{block.arg[i], open->second, block.begin[i], loader->second});
    at->second.begin = std::min(at->second.begin, open->second);
    at->second.end = std::max(at->second.end, block.begin[i]);
    open_epochs_.erase(open);
}

}  // namespace reprise
