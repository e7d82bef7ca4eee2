// SPDX-License-Identifier: MIT
// A run whose ranks perform parts of it: what each counts, and that the parts together are the whole.
#include <doctest/doctest.h>

#include <random>

#include "formats/support/pack.h"
#include "replay/run/collect.h"
#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/run/rank_run.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kStart = 5'000 * kMs;
constexpr int kProcesses = 6, kOps = 200;

/// Six processes of two threads each that read, write and compute, and of which some wait for others; in a run in which
/// some calls fail and some are left out.
class Parts {
public:
    explicit Parts(const std::filesystem::path& folder, Pace pace) : folder_(folder), log_(record()), pace_(pace) {
        plan_ = make_plan(log_, OpFilter::all(), PathMap{});
        rows_ = plan_.tasks.back().spool_first + plan_.tasks.back().ops;
        run_ = std::make_unique<SharedRun>(plan_.tasks.size(), plan_.processes.size(), 1, 0, rows_, SIZE_MAX,
                                           std::filesystem::path{});
        run_->control().start_ns = kStart;
        perform();
        kept_.assign(run_->spool(0), run_->spool(0) + rows_);
    }

    const LogReader& log() const { return log_; }
    /// Of the processes that `mine` says; `output`: its log.
    ReplayResult collected(const std::function<bool(ProcessId)>& mine, const std::string& output = {}) {
        std::copy(kept_.begin(), kept_.end(), run_->spool(0));
        plan_.elsewhere.assign(plan_.processes.size(), 0);
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            plan_.elsewhere[process] = mine(process) ? 0 : 1;
        }
        // A rank knows nothing of what others did.
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            const TaskPlan& of = plan_.tasks[task];
            run_->task(task).done.store(plan_.performs(of.process) ? done_[task] : 0);
            if (!plan_.performs(of.process)) {
                std::fill_n(run_->spool(of.spool_first), of.ops, SpoolRow{});
            }
        }
        TickTimeline clock;  // a tick is a nanosecond
        clock.add({0, 0});
        clock.add({1'000'000'000'000, 1'000'000'000'000});
        ReplayOptions options;
        options.pace = pace_;
        options.filter = OpFilter::all();
        options.output = output.empty() ? std::filesystem::path{} : folder_ / output;
        ReplayResult result;
        result.timed = pace_ != Pace::afap;
        result.machine.host = "a";
        collect(plan_, *run_, options, clock, 1'000'000'000, result, [&] { result.trust = trust_in(result); });
        return result;
    }

private:
    LogReader record() {
        JobBuilder job(folder_ / "job.oplog");
        std::mt19937 random(7);
        std::vector<TaskId> tasks;
        for (int process = 0; process < kProcesses; ++process) {
            const ProcessId id = job.process();
            tasks.push_back(job.task(id));
            tasks.push_back(job.task(id));
        }
        std::vector<HandleId> open;
        for (const TaskId task : tasks) {
            open.push_back(job.open(task, job.file("/data/" + std::to_string(task)), O_RDWR));
        }
        for (int op = 0; op < kOps; ++op) {
            for (size_t i = 0; i < tasks.size(); ++i) {
                if (op % 50 == 25) {  // all wait for the first task of the next process
                    const Edge edge{tasks[(i / 2 * 2 + 2) % tasks.size()], EdgeKind::message, 100,
                                    static_cast<uint64_t>(op)};
                    job.add(tasks[i], {.kind = OpKind::pread,
                                       .result = 512,
                                       .handle = open[i],
                                       .fd = job.fd(open[i]),
                                       .size = 512,
                                       .edges = {&edge, 1}});
                } else if (random() % 5 == 0) {
                    job.add(tasks[i], {.kind = OpKind::compute, .duration = 3 * kUs});
                } else if (random() % 3 == 0) {
                    job.pwrite(tasks[i], open[i], op * 4096, 4096);
                } else {
                    job.pread(tasks[i], open[i], op * 4096, 1 << random() % 16);
                }
            }
        }
        return job.finish();
    }

    void perform() {
        std::mt19937 random(11);
        done_.resize(plan_.tasks.size());
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            const TaskPlan& of = plan_.tasks[task];
            done_[task] = task == 5 ? of.ops - 10 : of.ops;  // it was stopped
            int64_t now = kStart + 10 * kUs;
            log_.for_each(task, [&](const Op& op, uint64_t number) {
                if (number >= done_[task]) {
                    return;
                }
                now += static_cast<int64_t>(random() % 20) * kUs;
                const int64_t took = static_cast<int64_t>(1 + random() % 300) * kUs;
                SpoolRow row{static_cast<uint64_t>(now), static_cast<uint64_t>(now + took), op.result};
                if (random() % 40 == 0) {
                    row.result = op.kind == OpKind::compute ? 0 : -EIO;
                } else if (random() % 40 == 0) {
                    row = {static_cast<uint64_t>(now) | kNotPerformed, static_cast<uint64_t>(LeftOut::no_place), 0};
                }
                now += took;
                *run_->spool(of.spool_first + number) = row;
            });
        }
    }

    std::filesystem::path folder_;
    LogReader log_;
    Pace pace_;
    Plan plan_;
    uint64_t rows_ = 0;
    std::unique_ptr<SharedRun> run_;
    std::vector<SpoolRow> kept_;
    std::vector<uint64_t> done_;
};

Bytes packed(const Histogram& counts) {
    Bytes out;
    counts.pack(out);
    return out;
}

void check_whole(const ReplayResult& merged, const ReplayResult& whole) {
    CHECK(merged.ops == whole.ops);
    CHECK(merged.bytes_read == whole.bytes_read);
    CHECK(merged.bytes_written == whole.bytes_written);
    CHECK(merged.recorded_bytes == whole.recorded_bytes);
    CHECK(merged.missing_bytes == whole.missing_bytes);
    CHECK(merged.errors == whole.errors);
    CHECK(merged.mismatches == whole.mismatches);
    CHECK(merged.mismatches_by_kind == whole.mismatches_by_kind);
    CHECK(merged.bytes_by_kind == whole.bytes_by_kind);
    CHECK(merged.left_out == whole.left_out);
    CHECK(merged.left_out_ns == whole.left_out_ns);
    CHECK(merged.left_out_io == whole.left_out_io);
    CHECK(merged.elapsed_ns == whole.elapsed_ns);
    CHECK(merged.recorded_ns == whole.recorded_ns);
    CHECK(merged.tasks == whole.tasks);
    CHECK(merged.edges == whole.edges);
    CHECK(merged.names_cached_ns == whole.names_cached_ns);
    CHECK(merged.name_waits == whole.name_waits);
    REQUIRE(merged.latency.size() == whole.latency.size());
    for (size_t kind = 0; kind < merged.latency.size(); ++kind) {
        CHECK(packed(merged.latency[kind]) == packed(whole.latency[kind]));
    }
    REQUIRE(merged.examples.size() == whole.examples.size());
    for (size_t i = 0; i < merged.examples.size(); ++i) {
        CHECK(merged.examples[i].kind == whole.examples[i].kind);
        CHECK(merged.examples[i].task == whole.examples[i].task);
        CHECK(merged.examples[i].op == whole.examples[i].op);
    }
}

}  // namespace

TEST_CASE("ranks: the parts of a run are the whole, under every pace") {
    for (const Pace pace : {Pace::causal, Pace::timed, Pace::afap}) {
        CAPTURE(static_cast<int>(pace));
        const TempDir dir;
        Parts run(dir.path(), pace);
        const ReplayResult whole = run.collected([](ProcessId) { return true; });
        REQUIRE(whole.mismatches > 20);
        REQUIRE(whole.left_out[static_cast<size_t>(LeftOut::no_place)] > 20);
        REQUIRE(whole.left_out[static_cast<size_t>(LeftOut::stopped)] == 10);
        std::vector<RankRun> ranks;
        for (uint32_t number = 0; number < 3; ++number) {
            ranks.push_back(rank(number, run.collected([&](ProcessId process) { return process % 3 == number; })));
            CHECK(ranks.back().result.ops < whole.ops);
            CHECK(ranks.back().result.ops > 0);
        }
        const ReplayResult merged = merge_results(ranks);
        check_whole(merged, whole);
        // Who waits for another rank is late by what that took, and does not know it.
        CHECK(whole.rank_wait_ns == 0);
        CHECK(packed(whole.fidelity.delay_error) == packed(merged.fidelity.delay_error));
        if (pace == Pace::timed) {
            CHECK(packed(merged.lateness) == packed(whole.lateness));
        } else {
            CHECK(merged.lateness.count() == whole.lateness.count());
        }
    }
}

TEST_CASE("ranks: what one waits for of another is a part of its critical path, and no lateness") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId here = job.lone_task(), there = job.lone_task();
    job.add(there, {.kind = OpKind::idle, .begin = 1 * kMs, .duration = 10 * kMs});
    job.add(here, {.kind = OpKind::stat, .begin = 1 * kMs, .file = job.file("/a")});
    const Edge edge{there, EdgeKind::message, 100, 0};
    job.add(here,
            {.kind = OpKind::stat, .begin = 12 * kMs, .duration = kMs, .file = job.file("/a"), .edges = {&edge, 1}});
    const LogReader log = job.finish();
    Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    plan.elsewhere.assign(plan.processes.size(), 0);
    plan.elsewhere[plan.tasks[there].process] = 1;
    plan.rank_of = {0, 0, 0};
    plan.rank_of[plan.tasks[there].process] = 2;
    SharedRun run(plan.tasks.size(), plan.processes.size(), 1, 0, plan.tasks.back().spool_first + plan.tasks.back().ops,
                  SIZE_MAX, {});
    run.control().start_ns = kStart;
    const auto tick = [](int64_t ms) { return static_cast<uint64_t>(kStart + ms * kMs); };
    SpoolRow* const rows = run.spool(plan.tasks[here].spool_first);
    rows[0] = {tick(1), tick(2), 0};
    rows[1] = {tick(400), tick(405), 0};  // the other rank took its time
    run.task(here).done.store(2);
    TickTimeline clock;
    clock.add({0, 0});
    clock.add({1'000'000'000'000, 1'000'000'000'000});
    ReplayOptions options;
    options.pace = Pace::causal;
    options.filter = OpFilter::all();
    ReplayResult result;
    collect(plan, run, options, clock, 0, result);
    CHECK(result.tasks == 1);
    CHECK(result.path.of(PathPart::ranks) > 380 * kMs);
    CHECK(result.path.of(PathPart::device) == 6 * kMs);
    CHECK(result.path.sum() == result.elapsed_ns);
    CHECK(result.rank_wait_ns > 380 * kMs);
    CHECK(result.rank_waits == std::vector<int64_t>{0, 0, result.rank_wait_ns});
    CHECK(result.lateness.max() < 2 * kMs);
    CHECK(result.fidelity.added_ns < 2e6);
    // Told when the other rank was done, this one knows what it took itself.
    const uint64_t told = tick(390);
    *run.spool(plan.tasks[there].spool_first) = {told, told, 0};
    run.task(there).done.store(1);
    rows[0] = {tick(1), tick(2), 0};
    rows[1] = {tick(400), tick(405), 0};
    ReplayResult known;
    collect(plan, run, options, clock, 0, known);
    CHECK(known.tasks == 1);
    CHECK(known.lateness.max() == 10 * kMs);
    CHECK(known.rank_wait_ns == result.rank_wait_ns - 10 * kMs);
    CHECK(known.path.of(PathPart::ranks) == 388 * kMs);
    CHECK(known.path.of(PathPart::device) == 6 * kMs);
    CHECK(known.path.sum() == known.elapsed_ns);
}

TEST_CASE("ranks: a result is the same after it was packed, and bad bytes are refused") {
    const TempDir dir;
    Parts run(dir.path(), Pace::causal);
    ReplayResult whole = run.collected([](ProcessId) { return true; });
    whole.notes = {"one", "two"};
    whole.device_read_bytes = 17;
    whole.device_counter = {3, 4};
    whole.cache.emplace().stayed.push_back({"a", 1, "mapped"});
    whole.cache->choice.asked = CacheRegime::warm;
    whole.memory.emplace().limit = 5;
    whole.verified.emplace().unchecked["why"] = 3;
    whole.verified->tree.findings.push_back({.path = "x", .detail = "y"});
    whole.interval = TimeInterval{1, 2, {{error_source_name("CPU speed"), 1.5, 2.5}}};
    whole.queues.queues.emplace_back().readers = {1, 2};
    whole.queues.shared.emplace_back().tasks = {3};
    whole.epochs.emplace_back().resident_before = 0.5;
    whole.doubts.file_systems.emplace_back().type = "ext4";
    whole.cpu_speed.source = CpuSpeed::Source::no_profile;
    whole.fidelity.other_cpus = 0.25;
    const Bytes bytes = packed(whole);
    ByteReader in(bytes);
    const ReplayResult again = unpack_result(in);
    CHECK(in.left() == 0);
    CHECK(packed(again) == bytes);
    CHECK(again.doubts.file_systems.at(0).type == "ext4");
    CHECK(again.interval->parts.at(0).up_ns == 2.5);
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
        ByteReader cut(ByteView(bytes).first(size));
        CHECK_THROWS_AS(unpack_result(cut), Corrupt);
    }
    std::mt19937 random(3);
    for (int i = 0; i < 3'000; ++i) {  // an error, or another result: never a crash
        Bytes damaged = bytes;
        damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1 + random() % 255);
        ByteReader reader(damaged);
        try {
            packed(unpack_result(reader));
        } catch (const Corrupt&) {
        }
    }
}

TEST_CASE("ranks: the merge of one is that one") {
    const TempDir dir;
    Parts run(dir.path(), Pace::causal);
    const ReplayResult whole = run.collected([](ProcessId) { return true; });
    CHECK(packed(merge_results({rank(0, whole)})) == packed(whole));
}

TEST_CASE("ranks: devices and processors count once for each kernel, words once, the worst trust with its rank") {
    std::vector<RankRun> ranks;
    for (uint32_t number = 0; number < 4; ++number) {
        ReplayResult result;
        result.latency.resize(kOpKindLimit);
        result.ops = 10;
        result.elapsed_ns = 1'000 * kMs + number;
        result.path.of(PathPart::compute) = number;
        result.machine.cpus = 8;
        result.machine.memory_bytes = 100;
        result.fidelity.other_cpus = 3.0;  // of which the neighbour used 2.9
        result.fidelity.own_cpus = 2.9;
        result.fidelity.stolen_cpus = 0;
        result.device_counter = {1'000, 100};
        result.device_read_bytes = 400;
        result.dirtied_bytes = 40;
        result.device_write_bytes = 100;
        result.notes = {"all say this", "so many: " + std::to_string(number)};
        result.trust = {Trust::Level::good, "fine"};
        ranks.push_back(rank(number, result));
    }
    ranks[2].result.notes.emplace_back("only here");
    ranks[3].result.ended = "interrupted: worker 2 died";
    ranks[3].result.elapsed_ns -= 500 * kMs;
    ranks[3].result.not_same_job = {"7 ops differ"};
    const ReplayResult merged = merge_results(ranks);
    CHECK(merged.ops == 40);
    CHECK(merged.elapsed_ns == 1'000 * kMs + 2);
    CHECK(merged.path.of(PathPart::compute) == 2);
    CHECK(merged.machine.host == "a, b");
    CHECK(merged.machine.cpus == 16);
    CHECK(merged.machine.memory_bytes == 200);
    CHECK(merged.device_counter->read_bytes == 2'000);
    CHECK(merged.device_write_bytes == 200);
    CHECK(merged.device_read_bytes == 1'600);
    CHECK(merged.dirtied_bytes == 160);
    CHECK(merged.fidelity.other_cpus == doctest::Approx(0.2));
    CHECK(merged.notes == std::vector<std::string>{"all say this", "rank 0 on host a and 3 other ranks: so many: 0",
                                                   "rank 2 on host b: only here"});
    CHECK(merged.not_same_job == std::vector<std::string>{"rank 3 on host b: 7 ops differ"});
    CHECK(merged.ended == "interrupted: rank 3 on host b: worker 2 died");
    CHECK(merged.trust.level == Trust::Level::poor);
    CHECK(merged.trust.reason.starts_with("rank "));
}

TEST_CASE("ranks: results merge in any order and grouping, and a rank without ops adds nothing to the sums") {
    const TempDir dir;
    Parts run(dir.path(), Pace::causal);
    std::vector<RankRun> ranks;
    for (uint32_t number = 0; number < 4; ++number) {
        ranks.push_back(rank(number, run.collected([&](ProcessId process) { return process % 4 == number; })));
    }
    const ReplayResult merged = merge_results(ranks);
    const Bytes bytes = packed(merged);
    std::vector<RankRun> shuffled = ranks;
    std::reverse(shuffled.begin(), shuffled.end());
    CHECK(packed(merge_results(shuffled)) == bytes);
    std::swap(shuffled[0], shuffled[2]);
    CHECK(packed(merge_results(shuffled)) == bytes);
    // In groups: what counts ops and their times; the words and the trust name ranks.
    const ReplayResult left = merge_results({rank(0, merge_results({ranks[0], ranks[1]})), ranks[2], ranks[3]});
    const ReplayResult right = merge_results({ranks[0], rank(1, merge_results({ranks[1], ranks[2], ranks[3]}))});
    check_whole(left, merged);
    check_whole(right, merged);
    CHECK(packed(left.lateness) == packed(merged.lateness));
    CHECK(packed(right.fidelity.delay_error) == packed(merged.fidelity.delay_error));
    std::vector<RankRun> more = ranks;  // and two that have nothing to do
    more.push_back(rank(4, run.collected([](ProcessId) { return false; })));
    more.insert(more.begin(), rank(5, run.collected([](ProcessId) { return false; })));
    REQUIRE(more.back().result.ops == 0);
    const ReplayResult with_idle = merge_results(more);
    check_whole(with_idle, merged);
    CHECK(packed(with_idle.lateness) == packed(merged.lateness));
    CHECK(with_idle.path.sum() == merged.path.sum());
}
