// SPDX-License-Identifier: MIT
#include "transform/copies.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "transform/copies_steps.h"
#include "transform/shares.h"

namespace reprise {
namespace {

/// Tells processes of the copies apart where they are shown.
constexpr int32_t kPidsPerCopy = 10'000'000;

/// What the blocks of the variant are made from; not changed once made.
class Variant {
public:
    Variant(const LogReader& log, const VariantOptions& options)
        : log_(log),
          recorded_(log.tables()),
          options_(options),
          copies_(options.copies.count),
          steps_(log),
          shares_(log, copies_) {
        check();
        find_barriers();
        for (uint32_t copy = 0; copy < copies_; ++copy) {
            add_tables(copy);
            draw(copy);
        }
        cut();
        count();
    }

    Header header() const {
        Header out = log_.header();
        if (options_.model) {
            write_fact(out, fact::gpu_model, options_.model->spec);
        }
        if (copies_ != 1) {
            write_fact(out, fact::gpus,
                       std::to_string(copies_) + (options_.copies.in_step ? " in step" : " free of each other"));
            write_ranks(out, tables_, copied_ranks());
        }
        return out;
    }
    /// Recorded rank r of copy k of a job of n ranks is rank k * n + r.
    std::vector<uint32_t> copied_ranks() const {
        const RecordedRanks recorded = recorded_ranks(log_.header(), recorded_);
        std::vector<uint32_t> ranks(tables_.processes.size(), kNoRank);
        for (uint32_t copy = 0; copy < copies_; ++copy) {
            for (ProcessId id = 1; id < recorded_.processes.size(); ++id) {
                const uint32_t rank = recorded.of_process[id];
                ranks[process(copy, id)] = rank == kNoRank ? kNoRank : copy * recorded.count + rank;
            }
        }
        return ranks;
    }
    Tables take_tables() { return std::move(tables_); }

    std::vector<BlockInfo> blocks() const {
        std::vector<BlockInfo> all;
        for (uint32_t copy = 0; copy < copies_; ++copy) {
            for (size_t i = 0; i < pieces_.size(); ++i) {
                const Piece& piece = pieces_[i];
                BlockInfo block;
                block.task = moved(piece.block.task, recorded_.tasks.size(), copy);
                block.ops = piece.count + piece.barriers;
                block.first = number(piece.block.task, piece.block.first + piece.from);
                block.file_offset = i;
                block.start = copy;
                block.begin = piece.begin;
                block.end = piece.end;
                if (piece.barriers != 0) {
                    block.end = std::max(block.end, end_of(barrier(copy, piece.last_barrier)));
                }
                all.push_back(block);
            }
        }
        return all;
    }

    void decode(const BlockInfo& block, OpBlock& into) const {
        const Piece& piece = pieces_[block.file_offset];
        const uint32_t copy = block.start;
        const TaskId recorded = piece.block.task;
        OpBlock from;
        log_.decode(piece.block, from);
        const uint64_t first = piece.block.first + piece.from;
        const auto& waits = barriers_[recorded].ops;
        const auto& submissions = steps_.submission_ops(recorded);
        auto wait = std::lower_bound(waits.begin(), waits.end(), first);
        auto submission =
            static_cast<size_t>(std::lower_bound(submissions.begin(), submissions.end(), first) - submissions.begin());
        std::vector<Edge> edges;
        into.start_rows(block.task, block.first, block.ops);
        for (size_t i = piece.from; i < piece.from + piece.count; ++i) {
            Op op = from.row(i);
            if (op.kind == OpKind::gpu_submit) {
                submitted(copy, recorded, op, submission++);
            }
            change(copy, op);
            edges.assign(op.edges.begin(), op.edges.end());
            for (Edge& edge : edges) {
                edge.op = number(edge.task, edge.op);
                edge.task = edge.task < recorded_.tasks.size() ? task(copy, edge.task) : 0;
            }
            op.edges = edges;
            into.add_row(op);
            if (wait != waits.end() && *wait == from.first + i) {
                Op after = barrier(copy, end_of(from.row(i)));
                const bool last = i + 1 == piece.from + piece.count;  // what follows may be in another block
                stretch(after, recorded, static_cast<size_t>(wait - waits.begin()), last ? 0 : from.begin[i + 1]);
                barrier_edges(copy, recorded, static_cast<size_t>(wait - waits.begin()), edges);
                after.edges = edges;
                into.add_row(after);
                ++wait;
            }
        }
    }

    void forget(const BlockInfo& block) const { log_.forget(pieces_[block.file_offset].block); }

private:
    /// Ops of a recorded block that, with the waits put after them, are a block of each copy.
    struct Piece {
        BlockInfo block;
        uint32_t from = 0, count = 0, barriers = 0;
        int64_t begin = 0, end = 0;  // ns, of the recorded ops
        int64_t last_barrier = 0;    // ns, the latest end of a wait that one is put after
    };

    /// Ops of a task after which it waits for others, and when they ended.
    struct Barriers {
        std::vector<uint64_t> ops;
        std::vector<int64_t> ends;  // ns
    };

    void check() const {
        constexpr uint64_t kMostRows = UINT32_MAX / 2;
        const uint64_t most =
            std::max<uint64_t>({recorded_.files.size(), recorded_.handles.size(), recorded_.tasks.size(),
                                shares_.map_limit(), shares_.request_limit()});
        if (most * copies_ > kMostRows) {
            throw usage_error("--gpus: " + std::to_string(copies_) + " copies of this log do not fit in one log",
                              "ask for fewer");
        }
        if (options_.model && steps_.steps().empty()) {
            throw bad_input(log_.path().string(), "the log has no accelerator whose step times --gpu-model could set",
                            "record with marks of the accelerator, or graft a profile onto it");
        }
    }

    template <class Id>
    static Id moved(Id id, size_t rows, uint32_t copy) {
        return id == 0 ? 0 : id + copy * static_cast<Id>(rows - 1);
    }
    TaskId task(uint32_t copy, TaskId id) const { return moved(id, recorded_.tasks.size(), copy); }
    HandleId handle(uint32_t copy, HandleId id) const { return moved(id, recorded_.handles.size(), copy); }
    ProcessId process(uint32_t copy, ProcessId id) const { return moved(id, recorded_.processes.size(), copy); }
    FileId file(uint32_t copy, FileId id) const {
        if (copy == 0 || id >= recorded_.files.size()) {
            return id;
        }
        return shares_.own(id) ? own_files_[copy - 1][id] : shares_.rotated(id, copy);
    }
    StringId text(StringId id) const { return id < strings_.size() ? strings_[id] : StringId{0}; }

    void add_tables(uint32_t copy) {
        if (copy == 0) {
            strings_.resize(recorded_.strings.size());
            for (StringId id = 1; id < strings_.size(); ++id) {
                strings_[id] = tables_.strings.intern(recorded_.strings[id]);
            }
        } else {
            own_files_.emplace_back(recorded_.files.size());
        }
        for (FileId id = 1; id < recorded_.files.size(); ++id) {
            FileRow row = recorded_.files[id];
            row.target = text(row.target);
            if (copy == 0) {
                row.path = text(row.path);
                tables_.files.push_back(row);
            } else if (shares_.own(id)) {
                row.path = tables_.strings.intern(shares_.own_path(id, copy));
                row.inode = 0;
                own_files_.back()[id] = static_cast<FileId>(tables_.files.size());
                tables_.files.push_back(row);
            }
        }
        for (HandleId id = 1; id < recorded_.handles.size(); ++id) {
            HandleRow row = recorded_.handles[id];
            row.file = file(copy, row.file);
            row.process = process(copy, row.process);
            tables_.handles.push_back(row);
        }
        for (ProcessId id = 1; id < recorded_.processes.size(); ++id) {
            ProcessRow row = recorded_.processes[id];
            row.command = text(row.command);
            row.host = text(row.host);
            row.parent = process(copy, row.parent);
            row.pid = static_cast<int32_t>(static_cast<uint32_t>(row.pid) + copy * uint32_t{kPidsPerCopy});
            tables_.processes.push_back(row);
        }
        for (TaskId id = 1; id < recorded_.tasks.size(); ++id) {
            TaskRow row = recorded_.tasks[id];
            row.name = text(row.name);
            row.process = process(copy, row.process);
            tables_.tasks.push_back(row);
        }
    }

    /// Busy times of a copy's steps.
    void draw(uint32_t copy) {
        if (!options_.model) {
            return;
        }
        const auto& steps = steps_.steps();
        std::vector<int64_t> recorded;
        for (const AcceleratorSteps::Step& step : steps) {
            if (step.complete) {
                recorded.push_back(step.busy);
            }
        }
        std::map<std::pair<ProcessId, int64_t>, StepDraws> of_devices;
        std::vector<int64_t>& busy = busy_.emplace_back();
        for (const AcceleratorSteps::Step& step : steps) {
            const uint64_t number = (uint64_t{copy} << 32 | step.process) * 64 + static_cast<uint64_t>(step.device);
            auto& draw =
                of_devices.try_emplace({step.process, step.device}, *options_.model, number, recorded).first->second;
            busy.push_back(step.complete ? draw.next() : step.busy);
        }
        for (const auto& [device, draw] : of_devices) {
            negative_draws_ += draw.negative();
        }
    }

    int64_t device(uint32_t copy, int64_t id) const {
        if (copy == 0) {
            return id;
        }
        const auto& all = steps_.devices();
        const auto place = std::lower_bound(all.begin(), all.end(), id) - all.begin();
        const uint64_t first = static_cast<uint64_t>(all.back()) + 1 + uint64_t{copy - 1} * all.size();
        return static_cast<int64_t>(first + static_cast<uint64_t>(place));
    }

    /// Number of an op of the recording in the copies, which have more ops.
    uint64_t number(TaskId task, uint64_t op) const { return op + before(task, op); }
    uint64_t before(TaskId task, uint64_t op) const {
        if (task >= barriers_.size()) {
            return 0;
        }
        const auto& waits = barriers_[task].ops;
        return static_cast<uint64_t>(std::lower_bound(waits.begin(), waits.end(), op) - waits.begin());
    }

    /// After which ops of each task a wait for others is put.
    void find_barriers() {
        barriers_.resize(recorded_.tasks.size());
        if (copies_ > 1 && options_.copies.in_step) {
            for (TaskId task = 1; task < barriers_.size(); ++task) {
                barriers_[task] = {steps_.last_waits(task), steps_.last_wait_ends(task)};
            }
        }
        if (options_.sync_steps) {
            synchronise();
        }
    }

    /// Of each recorded rank the task with the most steps meets those of the others after each. They end with waits for
    /// the accelerator, or with marks where a rank has no accelerator.
    void synchronise() {
        const RecordedRanks ranks = recorded_ranks(log_.header(), recorded_);
        if (ranks.count < 2) {
            throw usage_error("--sync step: the log has one rank, which waits for no other",
                              "leave it out; copies of --gpus wait for each other by default");
        }
        std::vector<TaskId> trainers(ranks.count);
        const auto steps_of = [this](TaskId task) {
            return steps_.last_waits(task).empty() ? steps_.marks(task).size() : steps_.last_waits(task).size();
        };
        for (TaskId task = 1; task < recorded_.tasks.size(); ++task) {
            const ProcessId process = recorded_.tasks[task].process;
            const uint32_t rank = process < ranks.of_process.size() ? ranks.of_process[process] : kNoRank;
            if (rank < ranks.count && steps_of(task) > (trainers[rank] == 0 ? 0 : steps_of(trainers[rank]))) {
                trainers[rank] = task;
            }
        }
        met_ = SIZE_MAX;
        size_t most = 0;
        for (uint32_t rank = 0; rank < ranks.count; ++rank) {
            if (trainers[rank] == 0) {
                throw bad_input(log_.path().string(),
                                "--sync step: rank " + std::to_string(rank) + " has no steps that could be told",
                                "record with marks of its steps (docs/markers.md)");
            }
            met_ = std::min(met_, steps_of(trainers[rank]));
            most = std::max(most, steps_of(trainers[rank]));
        }
        not_met_ = most - met_;
        for (const TaskId task : trainers) {
            Barriers& of = barriers_[task];
            if (of.ops.empty()) {
                const bool marked = steps_.last_waits(task).empty();
                of = marked ? Barriers{steps_.marks(task), steps_.mark_times(task)}
                            : Barriers{steps_.last_waits(task), steps_.last_wait_ends(task)};
                if (copies_ == 1 || !options_.copies.in_step || marked) {
                    of.ops.resize(met_);
                    of.ends.resize(met_);
                }
            }
        }
        trainers_ = std::move(trainers);
    }
    bool meets_ranks(TaskId task, size_t barrier) const {
        return barrier < met_ && std::find(trainers_.begin(), trainers_.end(), task) != trainers_.end();
    }

    /// Cuts the recorded blocks where they would become too long.
    void cut() {
        OpBlock from;
        for (const BlockInfo& block : log_.blocks()) {
            const uint64_t more = before(block.task, block.first + block.ops) - before(block.task, block.first);
            barriers_made_ += more;
            if (block.ops + more <= kBlockOps) {
                pieces_.push_back(piece(block, 0, block.ops));
                continue;
            }
            // Each half with as many waits as it has ops, at most, fits.
            log_.decode(block, from);
            for (const auto& [begin, end] : {std::pair{0u, block.ops / 2}, std::pair{block.ops / 2, block.ops}}) {
                Piece part = piece(block, begin, end - begin);
                part.begin = from.begin[begin];
                part.end = INT64_MIN;
                for (size_t i = begin; i < end; ++i) {
                    part.end = std::max(part.end, end_of(from.row(i)));
                }
                pieces_.push_back(part);
            }
            log_.forget(block);
        }
    }

    Piece piece(const BlockInfo& block, uint32_t from, uint32_t count) const {
        Piece out{block, from, count, 0, block.begin, block.end, INT64_MIN};
        const uint64_t first = block.first + from;
        const uint64_t barrier = before(block.task, first), last = before(block.task, first + count);
        out.barriers = static_cast<uint32_t>(last - barrier);
        for (uint64_t i = barrier; i < last; ++i) {
            out.last_barrier = std::max(out.last_barrier, barriers_[block.task].ends[i]);
        }
        return out;
    }

    static int64_t end_of(const Op& op) {
        int64_t end = 0;
        return __builtin_add_overflow(op.begin, op.duration, &end) ? INT64_MAX - 1 : end;
    }

    /// The first copy waits for all others' devices, the others for it; ranks wait for all others'.
    Op barrier(uint32_t copy, int64_t end) const {
        Op op;
        op.kind = OpKind::wait;
        op.begin = end;
        op.duration = copy == 0 || log_.header().time_unit_ns != 1 ? 0 : 1;
        return op;
    }
    /// Where ranks meet, until all have come, as far as the task does nothing else before: what it waits for has ended
    /// by then in the recording, too.
    void stretch(Op& op, TaskId recorded, size_t barrier, int64_t next) const {
        if (!meets_ranks(recorded, barrier) || log_.header().time_unit_ns != 1) {
            return;
        }
        int64_t all = op.begin;
        for (const TaskId trainer : trainers_) {
            all = std::max(all, barriers_[trainer].ends[barrier]);
        }
        op.duration = std::max(op.duration, std::min(all + 1, next) - op.begin);
    }
    void barrier_edges(uint32_t copy, TaskId recorded, size_t barrier, std::vector<Edge>& edges) const {
        const uint64_t own = number(recorded, barriers_[recorded].ops[barrier]);
        edges.clear();
        if (meets_ranks(recorded, barrier)) {
            // What ended a little later there is waited for as far as it had come: all did so at about the same time.
            for (uint32_t other = 0; other < copies_; ++other) {
                for (const TaskId trainer : trainers_) {
                    if (other != copy || trainer != recorded) {
                        edges.push_back({task(other, trainer), EdgeKind::message, 100,
                                         number(trainer, barriers_[trainer].ops[barrier])});
                    }
                }
            }
            return;
        }
        if (copy != 0) {
            edges.push_back({recorded, EdgeKind::message, 100, own + 1});
            return;
        }
        for (uint32_t other = 1; other < copies_; ++other) {
            edges.push_back({task(other, recorded), EdgeKind::message, 100, own});
        }
    }

    void submitted(uint32_t copy, TaskId recorded, Op& op, size_t submission) const {
        op.size = std::max<int64_t>(op.size, 0);
        if (!options_.model) {
            return;
        }
        // A step's pieces keep their shares of it.
        const uint32_t step = steps_.of_submissions(recorded)[submission];
        const int64_t all = steps_.steps()[step].busy, now = busy_[copy][step];
        if (all > 0) {
            op.size = static_cast<int64_t>(static_cast<double>(op.size) / static_cast<double>(all) *
                                           static_cast<double>(now));
        } else if (steps_.steps()[step].complete) {
            op.size = now;
        }
    }

    void change(uint32_t copy, Op& op) const {
        op.text = text(op.text);
        if (op.kind == OpKind::gpu_submit || op.kind == OpKind::gpu_wait) {
            op.arg = device(copy, op.arg);
            return;
        }
        if (copy == 0) {
            return;
        }
        const FileId opened = op.handle < recorded_.handles.size() ? recorded_.handles[op.handle].file : 0;
        data(copy, op, opened);
        op.handle = op.handle < recorded_.handles.size() ? handle(copy, op.handle) : 0;
        op.handle2 = op.handle2 < recorded_.handles.size() ? handle(copy, op.handle2) : 0;
        op.file = file(copy, op.file);
        op.file2 = file(copy, op.file2);
        op.map = op.map == 0 ? 0 : op.map + copy * (shares_.map_limit() - 1);
        op.request = op.request == 0 ? 0 : op.request + copy * (shares_.request_limit() - 1);
        op.peer = op.peer < recorded_.tasks.size() ? task(copy, op.peer) : 0;
    }

    /// Reads of dataset files, for the file or the part of it that is this copy's. At explicit offsets, as the position
    /// would follow what the reads before got.
    void data(uint32_t copy, Op& op, FileId opened) const {
        const bool reads = op.kind == OpKind::read || op.kind == OpKind::pread || op.kind == OpKind::readv ||
                           op.kind == OpKind::preadv;
        if (op.kind == OpKind::touch) {
            op.offset = shares_.offset(shares_.file_of_map(op.map), copy, op.offset, op.size);
            return;
        }
        if (op.kind == OpKind::uring_complete || op.kind == OpKind::aio_complete) {
            const Shares::Request* const request = shares_.request(op.request);
            if (request != nullptr && shares_.moves(request->file) && op.result >= 0) {
                const int64_t at = shares_.offset(request->file, copy, request->offset, request->size);
                op.result = shares_.bytes(request->file, copy, at, request->size);
            }
            return;
        }
        if (!shares_.moves(opened)) {
            return;
        }
        switch (op.kind) {
            case OpKind::lseek:
                if (op.result >= 0) {
                    op.offset = op.result;
                    op.arg = SEEK_SET;
                }
                return;
            case OpKind::uring_submit:
            case OpKind::aio_submit:
            case OpKind::readahead:
            case OpKind::fadvise: op.offset = shares_.offset(opened, copy, op.offset, op.size); return;
            default: break;
        }
        if (!reads || op.result < 0) {
            return;
        }
        op.kind = op.kind == OpKind::read ? OpKind::pread : op.kind == OpKind::readv ? OpKind::preadv : op.kind;
        op.offset = shares_.offset(opened, copy, op.offset, op.size);
        op.result = shares_.bytes(opened, copy, op.offset, op.size);
    }

    void count() {
        for (const Counter& counter : recorded_.counters) {
            tables_.count(counter);
        }
        tables_.count(Count::gpu_model_below_zero, negative_draws_);
        tables_.count(Count::accelerator_work_negative, steps_.negative());
        if (options_.sync_steps) {
            tables_.count(Count::steps_of_ranks, met_);
            tables_.count(Count::steps_not_of_all, not_met_);
        }
        if (copies_ == 1) {
            return;
        }
        tables_.count(Count::dataset_files_rotated, shares_.files_rotated());
        tables_.count(Count::dataset_files_shifted, shares_.files_shifted());
        tables_.count(Count::dataset_files_shared, shares_.files_shared());
        tables_.count(Count::written_files_to_prepare, shares_.files_written());
        tables_.count(Count::steps_in_step, barriers_made_);
        if (options_.copies.in_step && barriers_made_ == 0) {
            tables_.count(Count::steps_unknown);
        }
    }

    const LogReader& log_;
    const Tables& recorded_;
    const VariantOptions options_;
    const uint32_t copies_;
    const AcceleratorSteps steps_;
    const Shares shares_;
    Tables tables_;
    std::vector<StringId> strings_;
    std::vector<std::vector<FileId>> own_files_;  // by copy - 1, by FileId
    std::vector<std::vector<int64_t>> busy_;      // ns, by copy, by step
    std::vector<Barriers> barriers_;              // by TaskId, recorded
    std::vector<TaskId> trainers_;                // by recorded rank, where these wait for each other
    std::vector<Piece> pieces_;
    size_t met_ = 0, not_met_ = 0;  // steps after which they do, and others
    uint64_t negative_draws_ = 0, barriers_made_ = 0;
};

}  // namespace

GpuCopies GpuCopies::parse(std::string_view text) {
    GpuCopies copies;
    std::string_view number = text;
    constexpr std::string_view kFree = ":free";
    if (number.ends_with(kFree)) {
        copies.in_step = false;
        number.remove_suffix(kFree.size());
    }
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), copies.count);
    if (error != std::errc() || rest != number.data() + number.size() || copies.count == 0 || copies.count > kMost) {
        throw usage_error("--gpus is '" + escape_line(text) + "'",
                          "expected how many copies of the recorded job to run, from 1 to " + std::to_string(kMost) +
                              ", e.g. 8, or 8:free for copies that do not wait for each other after each step");
    }
    return copies;
}

LogReader make_variant(const LogReader& log, const VariantOptions& options) {
    const auto variant = std::make_shared<Variant>(log, options);
    LogView view;
    view.path = log.path();
    view.header = variant->header();
    view.blocks = variant->blocks();
    view.tables = variant->take_tables();
    view.decode = [variant](const BlockInfo& block, OpBlock& into) { variant->decode(block, into); };
    view.forget = [variant](const BlockInfo& block) { variant->forget(block); };
    return LogReader(std::move(view));
}

}  // namespace reprise
