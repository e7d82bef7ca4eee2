// SPDX-License-Identifier: MIT
#include "replay/run/collect.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/contents.h"
#include "formats/oplog/copy_tables.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"
#include "formats/oplog/side_log.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/open_loop.h"
#include "replay/plan/stored_queues.h"
#include "replay/plan/what_if.h"
#include "replay/run/critical_path.h"
#include "replay/run/request_bytes.h"
#include "replay/run/row_result.h"
#include "replay/run/run_edges.h"
#include "replay/run/trust.h"

namespace reprise {
namespace {

constexpr size_t kExamplesPerKind = 3;
/// Waking a thread takes some time in the recording, too.
constexpr int64_t kWakeUp = 1'000'000;  // ns

std::string_view pace_name(Pace pace) {
    return pace == Pace::timed ? "timed" : pace == Pace::causal ? "causal" : "afap";
}

Header run_header(const Plan& plan, const ReplayOptions& options, const std::string& what_if, int64_t start_unix_ns) {
    const Header& recorded = plan.log->header();
    Header header;
    header.time_unit_ns = 1;
    header.origin_unix_ns = start_unix_ns - plan.first_begin;
    write_fact(header, fact::run_begin, plan.first_begin);
    header.clock = "monotonic";
    header.source = "replay";
    header.tool = "reprise replay";
    header.command = recorded.command;
    write_fact(header, fact::filter, options.filter.to_string());
    write_fact(header, fact::pace, std::string(pace_name(options.pace)));
    write_fact(header, fact::engine, std::string(engine_name(options.engine)));
    put_factors(options.speeds, header.extra);
    if (!what_if.empty()) {
        write_fact(header, fact::what_if, what_if);
    }
    write_fact(header, fact::delay, std::string(policy_name(options.speeds.computing.policy)));
    write_fact(header, fact::root, options.root.string());
    write_fact(header, fact::recording, plan.log->path().filename().string());
    if (!options.fingerprint.empty()) {
        write_fact(header, fact::recording_fingerprint, options.fingerprint);
    }
    write_fact(header, fact::read_only, options.read_only);
    if (const auto ranks = read_fact(plan.log->header(), fact::ranks)) {
        write_fact(header, fact::ranks, *ranks);
    }
    return header;
}

/// What the run came to, for those who compare its log.
void write_verdict(Header& header, const ReplayResult& result) {
    write_fact(header, fact::ended, result.ended);
    if (result.cache) {
        write_fact(header, fact::cache_regime, std::string(cache_regime_name(result.cache->choice.regime)));
    }
    if (result.device_read_bytes && device_reads_known(result)) {
        write_fact(header, fact::device_read, static_cast<int64_t>(*result.device_read_bytes));
    }
    if (result.device_write_bytes) {
        write_fact(header, fact::device_written, static_cast<int64_t>(*result.device_write_bytes));
    }
    if (const std::optional<uint64_t> data = device_data(result)) {
        write_fact(header, fact::device_data, static_cast<int64_t>(std::min<uint64_t>(*data, INT64_MAX)));
    }
    write_fact(header, fact::no_data, reads_no_data(result));
    if (result.interval) {
        write_fact(header, fact::elapsed_low, result.interval->low_ns);
        write_fact(header, fact::elapsed_high, result.interval->high_ns);
    }
    if (!result.trust.reason.empty()) {
        write_fact(header, fact::trust, std::string(trust_name(result.trust.level)));
        write_fact(header, fact::trust_reason, result.trust.reason);
        const std::string failed = !result.not_same_job.empty()        ? result.not_same_job.front()
                                   : !result.fidelity.failures.empty() ? result.fidelity.failures.front()
                                                                       : not_measured(result);
        if (!failed.empty()) {
            write_fact(header, fact::failed, failed);
        }
    }
}

class Collector {
public:
    Collector(const Plan& plan, SharedRun& run, const ReplayOptions& options, const TickTimeline& clock, SideLog& log,
              std::vector<StringId> strings, ReplayResult& result)
        : plan_(plan),
          run_(run),
          options_(options),
          clock_(clock),
          log_(log),
          strings_(std::move(strings)),
          result_(result),
          start_(run.control().start_ns),
          helper_time_(plan, start_),
          serial_writers_(plan),
          slept_through_(plan),
          open_loops_(plan.log->tables()) {
        if (log_.open()) {
            edges_.emplace(plan, run);
        }
        result_.latency.resize(kOpKindLimit);
        examples_.resize(kOpKindLimit);
        for (const TaskPlan& task : plan.tasks) {
            mine_ += plan.performs(task.process) ? task.ops : 0;
        }
    }

    /// Of a process that another rank performs: nothing.
    void task(TaskId id) {
        const TaskPlan& task = plan_.tasks[id];
        if (!plan_.performs(task.process)) {
            return;
        }
        result_.tasks += task.ops != 0 ? 1 : 0;
        result_.edges += task.waits.size();
        waited_elsewhere_ = 0;
        waited_by_rank_.assign(waited_by_rank_.size(), 0);
        SpoolRow* const rows = run_.spool(task.spool_first);
        const uint64_t done = run_.task(id).done.load(std::memory_order_acquire);
        result_.edge_waits += run_.task(id).edge_waits;
        const uint64_t spawned = run_.task(id).spawned_tick.load(std::memory_order_relaxed);
        step_.emplace(plan_, id, options_.speeds, start_, spawned == 0 ? std::optional<int64_t>{} : clock_.ns(spawned));
        wait_ = 0;
        loop_begin_ = plan_.first_begin;
        last_left_ = spawned == 0 ? start_ : clock_.ns(spawned);
        for (const BlockInfo& where : task.blocks) {
            plan_.log->decode(where, block_);
            for (size_t i = 0; i < block_.count(); ++i) {
                const uint64_t op = block_.first + i;
                if (op < done) {
                    one(id, op, i, rows[op]);
                } else {
                    const bool kept = keeps(plan_, block_, i);
                    leave_out(kept ? LeftOut::stopped : LeftOut::filter, i);
                }
            }
            plan_.log->forget(where);
            seen_ += block_.count();
            report();
        }
        result_.names_cached_ns = std::max(result_.names_cached_ns, std::exchange(names_cached_ns_, 0));
        result_.fidelity.calls_longer_ns =
            std::max(result_.fidelity.calls_longer_ns, std::exchange(calls_longer_ns_, 0));
        if (waited_elsewhere_ > result_.rank_wait_ns) {
            result_.rank_wait_ns = waited_elsewhere_;
            result_.rank_waits = waited_by_rank_;
            result_.rank_waiter = id;
        }
    }

    /// What the run's log tells of the recorded job besides its ops, so that it can stand for the recording.
    void write_job(LogWriter& writer) const {
        if (!plan_.queues.empty() && plan_.elsewhere.empty()) {
            writer.keep(stored_queues(edges_->queues()));
        }
        copy_contents(*plan_.log, writer);
        if (const Holes holes = recorded_holes(*plan_.log); !holes.empty()) {
            writer.keep(encode_holes(holes));
        }
        if (const Holes before = holes_before(*plan_.log); !before.empty()) {
            writer.keep(encode_holes_before(before));
        }
    }

    void finish() {
        result_.elapsed_ns = last_end_ == INT64_MIN ? 0 : last_end_ - start_;
        result_.open_loops = open_loops_.finish();
        if (options_.pace == Pace::causal && last_task_ != 0) {
            const FinishedRun finished{start_, [&](uint64_t ticks) { return clock_.ns(ticks); },
                                       [&](const WaitFor& wait) { return ended(wait); },
                                       [&](TaskId task) { return plan_.queues.doubt(task); }};
            const CriticalPath path = critical_path(plan_, run_, last_task_, last_op_, finished);
            result_.fidelity.added_ns = static_cast<double>(path.added_ns);
            result_.fidelity.path_known = true;
            result_.path = path.times;
            result_.helpers = helper_time_.finish();
            result_.serial_writers = serial_writers_.finish();
            result_.slept_through = slept_through_.finish();
        }
        result_.recorded_ns = recorded_end_ == INT64_MIN ? 0 : recorded_end_ - plan_.first_begin;
        for (const Different& read : polled_.left()) {
            mismatch(read);
        }
        result_.missing_bytes -= std::min(result_.missing_bytes, static_cast<uint64_t>(polled_.late()));
        for (const auto& list : examples_) {
            result_.examples.insert(result_.examples.end(), list.begin(), list.end());
        }
    }

private:
    void report() {
        if (options_.progress) {
            options_.progress({ReplayProgress::Phase::collecting, seen_, mine_, monotonic_ns() - begun_, 0});
        }
    }

    void leave_out(LeftOut reason, size_t i) {
        const auto index = static_cast<size_t>(reason);
        if (index < kLeftOutReasons) {
            ++result_.left_out[index];
            result_.left_out_ns[index] += block_.duration[i];
            const OpInfo& row = info(static_cast<OpKind>(block_.kind[i]));
            result_.left_out_io[index] += row.is(Trait::io) ? 1 : 0;
        }
    }

    void one(TaskId id, uint64_t op, size_t i, SpoolRow& row) {
        const auto kind = static_cast<OpKind>(block_.kind[i]);
        const int64_t recorded = block_.result[i];
        const RowResult here(row, kind, recorded);
        const bool performed = here.performed;
        if (!performed) {
            leave_out(here.reason, i);
            if (here.reason == LeftOut::filter) {
                step_->left_out(block_, i);
                if (edges_) {
                    edges_->of(id, block_, i, false);
                }
                return;
            }
        }
        const int64_t begin = clock_.ns(row.begin & kSpoolTicks);
        // Of a request: when it was done, which may have been before the task got to its result.
        const int64_t done = performed ? clock_.ns(row.end) : begin;
        const int64_t end = std::max(done, begin);
        const int64_t actual = here.actual;
        if (performed) {
            if (end > last_end_) {
                last_task_ = id;
                last_op_ = op;
            }
            count(kind, i, begin, end, actual);
            if (options_.pace == Pace::timed && info(kind).is(Trait::io)) {
                calls_longer_ns_ += end - begin - block_.duration[i];
            }
        }
        if (options_.pace == Pace::causal) {
            const PathRow path = follow_causes(id, op, kind, i, performed, {begin, end, done}, row.begin);
            if (performed) {
                helper_time_.see(id, block_, i, begin, end);
                serial_writers_.see(id, block_, i, begin, end);
                slept_through_.see(id, block_, i, end);
                row.result = path.pack();
                row.end = with_part(row.end, part_of_op(kind, i, begin, end));
            }
        } else if (performed) {
            waited_without_causes(id, op, i, begin, end);
        }
        if (performed && options_.pace != Pace::afap) {
            arrived(id, kind, i, begin, done);
        }
        const OpInfo& info_of = info(kind);
        if (info_of.is(Trait::async)) {
            requested(kind, i, performed ? actual : 0, here.own_reason);
        }
        if (!here.own_reason && recorded > 0 && (info_of.is(Trait::reads) || info_of.is(Trait::writes))) {
            result_.recorded_bytes += static_cast<uint64_t>(recorded);
            result_.missing_bytes +=
                static_cast<uint64_t>(std::max<int64_t>(recorded - std::max<int64_t>(actual, 0), 0));
        }
        polled_.see(block_.handle[i], kind, block_.offset[i], recorded);
        if (!here.own_reason && result_differs(kind, block_, i, recorded, actual, listings_, plan_.tasks[id].looks)) {
            const FileId file = plan_.log->tables().file_of(block_.row(i));
            const Different read{id, op, kind, file, recorded, actual, here.reason};
            if (!polled_.keep(block_.handle[i], kind, block_.offset[i], recorded, actual, read)) {
                mismatch(read);
            }
        }
        if (log_.open() || options_.observe) {
            const Op was = block_.row(i);
            Op out = was;
            out.begin = begin - start_ + plan_.first_begin;
            // Of libaio the recording has when the job took the result, however long it was there.
            out.duration = kind == OpKind::uring_complete ? done - begin : end - begin;
            out.result = actual;
            out.edges = {};
            if (kind == OpKind::gpu_submit && options_.pace != Pace::afap) {
                out.size = options_.speeds.busy(out.size);
            }
            if (options_.observe) {
                options_.observe({id, was, out, performed, !plan_.streams.empty(), epoch_at(begin - start_), op});
            }
            if (log_.open()) {
                out.duration = end - begin;
                out.text = out.text < strings_.size() ? strings_[out.text] : 0;
                out.edges = edges_->of(id, block_, i, true);
                log_.write([&](LogWriter& writer) { writer.append(id, out); });
            }
        }
    }

    /// Requests of open loops: `done`, see one().
    void arrived(TaskId id, OpKind kind, size_t i, int64_t begin, int64_t done) {
        std::optional<int64_t> due = options_.pace == Pace::causal ? step_->arrival() : std::nullopt;
        if (options_.pace == Pace::timed && waits_until(kind, block_.arg[i])) {
            if (const int64_t since = until_ns(block_.arg[i]); since == 0) {
                loop_begin_ = block_.begin[i];
            } else {
                const int64_t recorded = OpRef::end_of(loop_begin_, since) - plan_.first_begin;
                due = start_ + static_cast<int64_t>(static_cast<double>(recorded) * options_.speeds.time_scale);
            }
        }
        open_loops_.see(id, block_, i, due, begin, std::max(begin, done));
        if (info(kind).is(Trait::submits)) {
            open_loops_.made(id, block_.request[i]);
        }
        if (info(kind).is(Trait::completes)) {
            open_loops_.done(block_.request[i], done);
        }
    }

    void requested(OpKind kind, size_t i, int64_t here, bool own_reason) {
        const std::optional<RequestMoved> request = request_bytes_.see(block_, i, here, own_reason);
        if (!request || (!request->reads && !request->writes)) {
            return;
        }
        (request->reads ? result_.bytes_read : result_.bytes_written) += static_cast<uint64_t>(request->here);
        const OpKind completes = kind == OpKind::aio_submit     ? OpKind::aio_complete
                                 : kind == OpKind::uring_submit ? OpKind::uring_complete
                                                                : kind;
        result_.bytes_by_kind[static_cast<size_t>(completes)] += static_cast<uint64_t>(request->here);
        if (!request->own_reason) {
            result_.recorded_bytes += static_cast<uint64_t>(request->recorded);
            result_.missing_bytes += static_cast<uint64_t>(std::max<int64_t>(request->recorded - request->here, 0));
        }
    }

    size_t epoch_at(int64_t ns) const {
        const auto later = [](int64_t time, const EpochProof& epoch) { return time < epoch.begin_ns; };
        return static_cast<size_t>(std::upper_bound(result_.epochs.begin(), result_.epochs.end(), ns, later) -
                                   result_.epochs.begin());
    }

    void count(OpKind kind, size_t i, int64_t begin, int64_t end, int64_t actual) {
        ++result_.ops;
        last_end_ = std::max(last_end_, end);
        recorded_end_ = std::max(recorded_end_, OpRef::end_of(block_.begin[i], block_.duration[i]));
        result_.latency[static_cast<size_t>(kind)].add(end - begin);
        if (waited_for_names(block_, i)) {
            const bool waits = end - begin >= kNameInMemory;
            ++result_.recorded_name_waits;
            result_.name_waits += waits ? 1 : 0;
            names_cached_ns_ += waits ? 0 : block_.duration[i];
        }
        const OpInfo& row = info(kind);
        if (row.is(Trait::io) && is_error(actual)) {
            ++result_.errors;
            const bool no_space = actual == -ENOSPC || actual == -EDQUOT;
            result_.no_space += no_space && actual != block_.result[i] ? 1 : 0;  // else as there
        }
        if (actual > 0 && (row.is(Trait::reads) || row.is(Trait::writes))) {
            const auto bytes = static_cast<uint64_t>(actual);
            result_.bytes_read += row.is(Trait::reads) ? bytes : 0;
            result_.bytes_written += row.is(Trait::writes) ? bytes : 0;
            result_.bytes_by_kind[static_cast<size_t>(kind)] += bytes;
        }
        if (options_.pace == Pace::timed) {
            const auto since = static_cast<double>(block_.begin[i] - plan_.first_begin) * options_.speeds.time_scale;
            result_.lateness.add(begin - start_ - static_cast<int64_t>(since));
            if (info(kind).is(Trait::passes_time)) {
                const int64_t recorded = OpRef::end_of(block_.begin[i], block_.duration[i]) - plan_.first_begin;
                const double over = static_cast<double>(recorded) * options_.speeds.time_scale;
                const double asked = static_cast<double>(block_.duration[i]) * options_.speeds.time_scale;
                delayed(static_cast<int64_t>(asked), std::max(start_ + static_cast<int64_t>(over), begin), end);
            }
        }
    }

    /// A delay of `asked` that was to be over at `over` and was at `end`.
    void delayed(int64_t asked, int64_t over, int64_t end) {
        result_.fidelity.delays_asked_ns += static_cast<double>(std::max<int64_t>(asked, 0));
        result_.fidelity.delay_error.add(end - over);
    }

    /// Of an op, ns. `done` is before `begin` where it was over before its task got there.
    struct Times {
        int64_t begin, end, done;
    };

    /// Lateness under `causal`, by the rules that the run followed.
    PathRow follow_causes(TaskId id, uint64_t op, OpKind kind, size_t i, bool performed, const Times& times,
                          uint64_t flags) {
        const int64_t begin = times.begin, end = times.end;
        Released by = released(id, op, i);
        if (by.elsewhere) {
            count_ranks(id, op, by, step_->due(block_, i, by.before), begin, end);
        }
        last_released_ = by;
        const bool locked = (flags & kWaitedForLock) != 0;
        const int64_t due = step_->due(block_, i, locked ? std::max(by.before, begin) : by.before);
        const int64_t run_queue = by.before == INT64_MIN ? step_->waited_for_cpu(block_, i) : 0;
        const CausalRole role = role_ = step_->issued(block_, i, begin, performed);
        // The task did not wait for the result of a request.
        const int64_t left = step_->beside() ? begin : end;
        const bool known = by.inside != INT64_MIN && by.ranks_inside == INT64_MIN;
        const bool in_row = role == CausalRole::drain || (known && step_->over_on_arrival());
        const int64_t arrived = in_row ? times.done : known ? by.inside : CausalStep::kNotKnown;
        step_->ended(left, arrived);
        last_left_ = left;
        if (performed) {
            result_.lateness.add(std::max<int64_t>(begin - due, 0));
        }
        if (kind == OpKind::compute) {
            result_.fidelity.after_waits_ns += static_cast<double>(step_->after_wait_ns());
        }
        if (role == CausalRole::compute) {
            result_.fidelity.computing_asked_ns += static_cast<double>(step_->compute_ns());
            result_.fidelity.computing_took_ns += static_cast<double>(end - begin);
        } else if (performed && (role == CausalRole::delay || role == CausalRole::submit)) {
            delayed(step_->until() - due, std::max(step_->until(), begin), end);
        }
        PathRow path = path_row(role, kind, i, begin, end, arrived);
        if (by.inside > begin) {
            path.added_ns = std::max<int64_t>(end - by.inside - kWakeUp, 0);
        } else {
            path.added_ns -= run_queue;
        }
        path.released = by.before != INT64_MIN || by.inside > begin;
        return path;
    }

    /// By how much the op moved its task's clock, and how far the task is behind that clock now.
    PathRow path_row(CausalRole role, OpKind kind, size_t i, int64_t begin, int64_t end, int64_t arrived) {
        const int64_t due = step_->due(), late = std::max<int64_t>(begin - due, 0);
        switch (role) {
            case CausalRole::call: {
                const bool starts_or_ends = kind == OpKind::spawn || kind == OpKind::exit;
                return {starts_or_ends ? end - begin - block_.duration[i] : 0, late, false};
            }
            case CausalRole::delay:
            case CausalRole::submit: return {0, std::max<int64_t>(end - step_->until(), 0), false};
            case CausalRole::compute: {
                const int64_t passed = compute_passed(step_->until(), end, TimingNoise{}.overshoot);
                return {passed - due - step_->compute_ns(), end - passed, false};
            }
            case CausalRole::wait: return {late - step_->carried(arrived), step_->carried(arrived), false};
            case CausalRole::drain: return {0, step_->carried(arrived), false};
        }
        return {};
    }

    /// When other tasks let a task go on, ns; INT64_MIN: they did not hold it up.
    struct Released {
        int64_t before = INT64_MIN;  // the op was issued
        int64_t inside = INT64_MIN;  // the op, which is a wait for them
        // The same by tasks that other ranks perform; INT64_MAX: nobody told this rank when.
        int64_t ranks_before = INT64_MIN, ranks_inside = INT64_MIN;
        const WaitFor *last_before = nullptr, *last_inside = nullptr;  // of these the one that came last
        bool elsewhere = false;                                        // there are such waits
        bool unknown_inside = false;
    };

    bool elsewhere(const WaitFor& wait) const { return !plan_.performs(plan_.tasks[wait.task].process); }
    uint32_t rank_of(const WaitFor& wait) const {
        const ProcessId process = plan_.tasks[wait.task].process;
        return process < plan_.rank_of.size() ? plan_.rank_of[process] : kNoRank;
    }
    void waited_for(TaskId id, uint64_t op, const WaitFor& wait, int64_t ns) {
        waited_elsewhere_ += ns;
        const uint32_t rank = rank_of(wait);
        if (rank == kNoRank || ns <= 0) {
            return;
        }
        waited_by_rank_.resize(std::max<size_t>(waited_by_rank_.size(), rank + 1));
        waited_by_rank_[rank] += ns;
        if (result_.rank_holds.size() < RankHold::kMost) {
            result_.rank_holds.push_back({id, op, ns, rank, wait.task, wait.source});
        }
    }

    /// Waits for other ranks: adds up how long the task stood still for them alone, and takes them among all waits.
    /// `due`: without them.
    void count_ranks(TaskId id, uint64_t op, Released& by, int64_t due, int64_t begin, int64_t end) {
        // Where this rank does not know when it was let go, all of the time that it stood still is that wait.
        const int64_t before = std::min(by.ranks_before, begin);
        if (before > due) {
            waited_for(id, op, *by.last_before, before - due);
            by.before = std::max(by.before, before);
        }
        const int64_t inside = std::min(by.ranks_inside, end);
        if (inside > begin) {
            waited_for(id, op, *by.last_inside, std::max<int64_t>(inside - std::max(begin, by.inside), 0));
            by.unknown_inside = by.ranks_inside == INT64_MAX;
            by.inside = std::max(by.inside, inside);
        }
    }

    PathPart part_of_op(OpKind kind, size_t i, int64_t begin, int64_t end) const {
        return last_released_.unknown_inside ? PathPart::ranks
                                             : path_part(kind, block_.arg[i], block_.result[i], role_, end - begin);
    }

    /// Under paces that follow no causes: the time before an op that waits for other ranks.
    void waited_without_causes(TaskId id, uint64_t op, size_t i, int64_t begin, int64_t end) {
        if (plan_.tasks[id].waits.empty() || plan_.elsewhere.empty()) {
            return;
        }
        Released by = released(id, op, i);
        if (by.elsewhere) {
            int64_t since = std::max(last_left_, by.before);
            if (options_.pace == Pace::timed) {
                const auto due = static_cast<double>(block_.begin[i] - plan_.first_begin) * options_.speeds.time_scale;
                since = std::max(since, start_ + static_cast<int64_t>(due));
            }
            count_ranks(id, op, by, since, begin, end);
        }
        last_left_ = end;
    }

    /// When the task was released, where it had to wait for other ops. In the order of the ops.
    Released released(TaskId id, uint64_t op, size_t i) {
        const std::vector<WaitFor>& waits = plan_.tasks[id].waits;
        const bool inside = step_->waits_inside(block_, i);
        Released last;
        for (; wait_ < waits.size() && waits[wait_].op <= op; ++wait_) {
            const bool within = inside && waits[wait_].op == op;
            const int64_t done = ended(waits[wait_]);
            if (elsewhere(waits[wait_])) {
                int64_t& at = within ? last.ranks_inside : last.ranks_before;
                const int64_t told = done == INT64_MIN ? INT64_MAX : done;
                if (told > at) {
                    at = told;
                    (within ? last.last_inside : last.last_before) = &waits[wait_];
                }
                last.elsewhere = true;
                continue;
            }
            int64_t& at = within ? last.inside : last.before;
            at = std::max(at, done);
        }
        // What was done before the task got there did not hold it up.
        last.before = last.before > last_left_ ? last.before : INT64_MIN;
        return last;
    }

    /// When the source of a wait let others go on; INT64_MIN: it was not performed.
    int64_t ended(const WaitFor& wait) {
        const SpoolRow& source = run_.spool(plan_.tasks[wait.task].spool_first)[wait.source];
        const bool done = run_.task(wait.task).done.load(std::memory_order_relaxed) > wait.source;
        const std::optional<uint64_t> tick = done ? let_go(source) : std::nullopt;
        return tick ? clock_.ns(*tick & kSpoolEndTicks) : INT64_MIN;
    }

    struct Different {
        TaskId task;
        uint64_t op;
        OpKind kind;
        FileId file;
        int64_t recorded, here;
        LeftOut reason;
    };

    void mismatch(const Different& op) {
        ++result_.mismatches;
        ++result_.mismatches_by_kind[static_cast<size_t>(op.kind)];
        result_.refused += op.here == -EACCES || op.here == -EPERM ? 1 : 0;
        auto& list = examples_[static_cast<size_t>(op.kind)];
        if (list.size() < kExamplesPerKind) {
            list.push_back({op.task, op.op, op.kind, std::string(plan_.log->tables().path(op.file)), op.recorded,
                            op.here, op.reason});
        }
    }

    const Plan& plan_;
    SharedRun& run_;
    const ReplayOptions& options_;
    const TickTimeline& clock_;
    SideLog& log_;
    std::vector<StringId> strings_;  // new id of each string
    ReplayResult& result_;
    const int64_t start_;
    HelperTime helper_time_;
    SerialWriters serial_writers_;
    SleptThrough slept_through_;
    OpenLoops open_loops_;
    int64_t loop_begin_ = 0;  // recorded, of the present task
    const int64_t begun_ = monotonic_ns();
    int64_t last_end_ = INT64_MIN, recorded_end_ = INT64_MIN;
    TaskId last_task_ = 0;  // of the op that ended last
    uint64_t last_op_ = 0;
    uint64_t seen_ = 0, mine_ = 0;        // ops, of those that this rank performs
    int64_t names_cached_ns_ = 0;         // of the present task
    int64_t calls_longer_ns_ = 0;         // likewise, of pace timed
    std::optional<CausalStep> step_;      // of the present task
    size_t wait_ = 0;                     // in the waits of the present task
    CausalRole role_ = CausalRole::call;  // of its last op
    int64_t last_left_ = 0;               // when its last op was over, or it began
    Released last_released_;              // its last op
    int64_t waited_elsewhere_ = 0;        // it waited for ops that other ranks perform
    std::vector<int64_t> waited_by_rank_;
    std::optional<RunEdges> edges_;  // where there is a log
    ListingResults listings_;        // by open instance
    PolledReads<Different> polled_;  // likewise
    RequestBytes request_bytes_;
    std::vector<std::vector<Mismatch>> examples_;
    OpBlock block_;
};

}  // namespace

void collect(const Plan& plan, SharedRun& run, const ReplayOptions& options, const TickTimeline& clock,
             int64_t start_unix_ns, ReplayResult& result, const std::function<void()>& judge) {
    const int64_t begun = monotonic_ns();
    SideLog log;  // what was measured is worth more
    std::vector<StringId> strings;
    if (!options.output.empty()) {
        log.open([&] {
            return std::make_unique<LogWriter>(options.output,
                                               run_header(plan, options, result.what_if, start_unix_ns));
        });
        log.write([&](LogWriter& writer) {
            strings = copy_tables(plan.log->tables(), writer);
            writer.header().host = result.machine.host;
            writer.header().kernel = result.machine.kernel;
        });
    }
    Collector collector(plan, run, options, clock, log, std::move(strings), result);
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        collector.task(task);
    }
    collector.finish();
    if (judge) {
        judge();
    }
    log.write([&](LogWriter& writer) {
        write_verdict(writer.header(), result);
        collector.write_job(writer);
        for (const Counter& counter : plan.counters) {
            writer.count(counter);
        }
        for (size_t i = 1; i < kLeftOutReasons; ++i) {
            const auto reason = static_cast<LeftOut>(i);
            writer.count(left_out_counter(reason), result.left_out[i]);
        }
        if (result.no_space != 0) {
            writer.count(Count::no_space, result.no_space);
        }
        writer.finish();
        result.output = options.output;
    });
    result.output_lost = log.lost();
    result.collect_ns = monotonic_ns() - begun;
}

}  // namespace reprise
