// SPDX-License-Identifier: MIT
// Accelerator work of a profile grafted onto a recording: by clock, by step, and profiles of another job.
#include "transform/graft.h"

#include "formats/oplog/cached_pages.h"
#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

// A log made by hand; times in ms.
class Builder {
public:
    Builder(const std::filesystem::path& path, std::string source, int64_t origin)
        : writer_(path, header(std::move(source), origin)), path_(path) {}
    TaskId thread(int32_t pid, int32_t tid) {
        ProcessRow process;
        process.pid = pid;
        TaskRow task;
        task.process = writer_.add_process(process);
        task.tid = tid;
        return writer_.add_task(task);
    }
    uint64_t add(TaskId task, OpKind kind, int64_t begin, int64_t duration, Op op = {}) {
        op.kind = kind;
        op.begin = begin * kMs;
        op.duration = duration * kMs;
        return writer_.append(task, op);
    }
    void mark(TaskId task, std::string_view name, int64_t number, int64_t at, MarkerPhase phase) {
        Op op;
        op.text = writer_.intern(name);
        op.arg = number;
        op.flags = static_cast<int64_t>(phase);
        add(task, OpKind::marker, at, 0, op);
    }
    void work(TaskId task, int64_t at, int64_t busy) {
        Op op;
        op.size = busy * kMs;
        op.flags = 7;
        add(task, OpKind::gpu_submit, at, 0, op);
    }
    void wait(TaskId task, int64_t at, int64_t duration) {
        Op op;
        op.flags = 7;
        add(task, OpKind::gpu_wait, at, duration, op);
    }
    void keep(Derived known) { writer_.keep(std::move(known)); }
    LogReader finish() {
        writer_.finish();
        return LogReader(path_);
    }

private:
    static Header header(std::string source, int64_t origin) {
        Header header;
        header.source = std::move(source);
        header.origin_unix_ns = origin;
        return header;
    }
    LogWriter writer_;
    std::filesystem::path path_;
};

std::string text(const LogReader& log, TaskId task) {
    std::string out;
    log.for_each(task, [&](const Op& op, uint64_t) {
        out += std::string(info(op.kind).name) + " " + std::to_string(op.begin / kMs) + "+" +
               std::to_string(op.duration / kMs);
        if (op.kind == OpKind::gpu_submit) {
            out += " #" + std::to_string(op.size / kMs);
        }
        for (const Edge& edge : op.edges) {
            out += " <" + std::to_string(edge.task) + ":" + std::to_string(edge.op);
        }
        out += "\n";
    });
    return out;
}

constexpr int64_t kOrigin = 1'700'000'000'000'000'000;

// A loop of 3 steps of 100 ms each: batch n, computing, a wait that another thread ends.
LogReader recorded(const TempDir& dir, int64_t origin = kOrigin, std::string_view mark = "step") {
    Builder job(dir / "job.oplog", "capture", origin);
    const TaskId main = job.thread(50, 50), reader = job.thread(51, 51);
    for (int64_t step = 0; step < 3; ++step) {
        const int64_t at = 1000 + step * 100;
        if (!mark.empty()) {
            job.mark(main, mark, step + 10, at, MarkerPhase::begin);
        }
        const uint64_t read = job.add(reader, OpKind::pread, at + 1, 5);
        const std::vector<Edge> edges{{reader, EdgeKind::wake, 100, read}};
        Op wait;
        wait.edges = edges;
        job.add(main, OpKind::wait, at + 2, 6, wait);
        const uint64_t computed = job.add(main, OpKind::compute, at + 10, 80);
        const std::vector<Edge> back{{main, EdgeKind::wake, 100, computed}};
        Op woken;
        woken.edges = back;
        job.add(reader, OpKind::wait, at + 50, 45, woken);
        if (!mark.empty()) {
            job.mark(main, mark, step + 10, at + 95, MarkerPhase::end);
        }
    }
    job.keep(encode_fetched({}));
    return job.finish();
}

// Work of 60 ms submitted 15 ms after each step began, waited for from 20 to 75 ms.
LogReader profiled(const TempDir& dir, int64_t origin, int64_t begin, int32_t pid = 50, int64_t first = 10,
                   int64_t steps = 3, int64_t length = 100) {
    Builder profile(dir / "profile.oplog", "kineto", origin);
    const TaskId main = profile.thread(pid, pid);
    for (int64_t step = 0; step < steps; ++step) {
        const int64_t at = begin + step * length;
        profile.mark(main, "step", step + first, at, MarkerPhase::begin);
        profile.work(main, at + 15, 60);
        profile.wait(main, at + 20, 55);
        profile.mark(main, "step", step + first, at + length - 5, MarkerPhase::end);
    }
    return profile.finish();
}

}  // namespace

TEST_CASE("by clock: computing is split where work is submitted, and gives way where the host waited") {
    TempDir dir;
    const LogReader job = recorded(dir);
    // The profile's clock says 3 ms more.
    const LogReader profile = profiled(dir, kOrigin + 1003 * kMs, 0);
    const GraftResult result = graft(job, profile, GraftBy::automatic, dir / "out.oplog");
    CHECK(result.by == GraftBy::clock);
    CHECK(fetched_pages(LogReader(dir / "out.oplog")));  // what the recording fetched is still known
    CHECK(result.offset_ns == 1003 * kMs);
    CHECK(result.residual_ns == 3 * kMs);
    CHECK(result.submissions == 3);
    CHECK(result.waits == 3);
    const LogReader log(dir / "out.oplog");
    std::string main;
    for (int64_t step = 0; step < 3; ++step) {
        const int64_t at = 1000 + step * 100;
        const auto line = [&](const char* kind, int64_t begin, int64_t duration, const std::string& more = "") {
            main += std::string(kind) + " " + std::to_string(at + begin) + "+" + std::to_string(duration) + more + "\n";
        };
        line("marker", 0, 0);
        line("wait", 2, 6, " <2:" + std::to_string(step * 2));
        line("compute", 10, 8);
        line("gpu_submit", 18, 0, " #60");
        line("compute", 18, 5);
        line("gpu_wait", 23, 55);
        line("compute", 78, 12);
        line("marker", 95, 0);
    }
    CHECK(text(log, 1) == main);
    // Edges follow the ops they came from: the last piece of what was computed.
    CHECK(text(log, 2).find("wait 1050+45 <1:6\n") != std::string::npos);
    CHECK(text(log, 2).find("wait 1150+45 <1:14\n") != std::string::npos);
    CHECK(log.header().extra.at("accelerator.source") == "kineto");
    CHECK(log.header().extra.at("accelerator.by") == "clock");
    CHECK(log.header().extra.at("accelerator.residual_ns") == "3000000");
}

TEST_CASE("by step: a profile of another run, whose steps lie where they are in the recording") {
    TempDir dir;
    const LogReader job = recorded(dir);
    const LogReader profile = profiled(dir, kOrigin + 3'600'000 * kMs, 5000, 900, 11, 2, 110);
    CHECK_THROWS_WITH_AS(graft(job, profile, GraftBy::clock, dir / "no.oplog"), doctest::Contains("of the recording"),
                         Error);
    CHECK_FALSE(std::filesystem::exists(dir / "no.oplog"));
    const GraftResult result = graft(job, profile, GraftBy::automatic, dir / "out.oplog");
    CHECK(result.by == GraftBy::step);
    CHECK(result.steps == 2);
    CHECK(result.residual_ns == 10 * kMs);
    const LogReader log(dir / "out.oplog");
    CHECK(text(log, 1).find("gpu_submit 1115+0 #60\n") != std::string::npos);
    CHECK(text(log, 1).find("gpu_wait 1220+55\n") != std::string::npos);
    CHECK(counter(log, "steps_without_profile") == 1);
    CHECK(log.header().extra.at("accelerator.by") == "step");
}

TEST_CASE("by clock without marks in the recording: the profile's steps come along") {
    TempDir dir;
    const LogReader job = recorded(dir, kOrigin, "");
    const GraftResult result = graft(job, profiled(dir, kOrigin, 1000, 50), GraftBy::automatic, dir / "out.oplog");
    CHECK(result.by == GraftBy::clock);
    CHECK_FALSE(result.residual_ns);
    const LogReader log(dir / "out.oplog");
    CHECK(text(log, 1).starts_with("marker 1000+0\nwait 1002"));
    CHECK(log.header().extra.at("accelerator.residual_ns").starts_with("unknown"));
}

TEST_CASE("a recorded wait for the device is the device's; edges from it lead to what came before") {
    TempDir dir;
    Builder job(dir / "job.oplog", "capture", kOrigin);
    const TaskId main = job.thread(50, 50), other = job.thread(51, 51);
    job.add(main, OpKind::compute, 1, 9);
    const uint64_t waited = job.add(main, OpKind::wait, 10, 50);
    job.add(main, OpKind::compute, 60, 10);
    const std::vector<Edge> edges{{main, EdgeKind::wake, 100, waited}};
    Op op;
    op.edges = edges;
    job.add(other, OpKind::wait, 20, 50, op);
    const LogReader reader = job.finish();
    Builder profile(dir / "profile.oplog", "nsys", kOrigin);
    const TaskId thread = profile.thread(50, 50), unknown = profile.thread(50, 99);
    profile.work(thread, 5, 50);
    profile.work(unknown, 7, 50);
    profile.wait(thread, 10, 48);
    const LogReader from = profile.finish();
    graft(reader, from, GraftBy::automatic, dir / "out.oplog");
    const LogReader log(dir / "out.oplog");
    CHECK(text(log, 1) ==
          "compute 1+4\ngpu_submit 5+0 #50\ncompute 5+2\ngpu_submit 7+0 #50\ncompute 7+3\ngpu_wait 10+48\n"
          "compute 60+10\n");
    CHECK(text(log, 2) == "wait 20+50 <1:5\n");
    CHECK(counter(log, "waits_of_accelerators") == 1);
    CHECK(counter(log, "profile_threads_joined") == 1);
}

TEST_CASE("profiles of another job are refused with numbers") {
    TempDir dir;
    const LogReader job = recorded(dir);
    {
        // Other steps, at another time.
        TempDir other;
        const LogReader profile = profiled(other, kOrigin + 3'600'000 * kMs, 0, 900, 500, 7);
        CHECK_THROWS_WITH_AS(graft(job, profile, GraftBy::automatic, dir / "out.oplog"),
                             doctest::Contains("the profile has 7 steps (numbers 500 to 506)"), Error);
    }
    {
        // As many steps, but fifty times as long.
        TempDir other;
        const LogReader profile = profiled(other, kOrigin + 3'600'000 * kMs, 0, 900, 10, 3, 5000);
        CHECK_THROWS_WITH_AS(graft(job, profile, GraftBy::step, dir / "out.oplog"), doctest::Contains("14.985 s and"),
                             Error);
    }
    {
        // The right time, but the steps lie elsewhere.
        TempDir other;
        const LogReader profile = profiled(other, kOrigin, 1900);
        CHECK_THROWS_WITH_AS(graft(job, profile, GraftBy::clock, dir / "out.oplog"), doctest::Contains("0.900 s off"),
                             Error);
    }
    {
        TempDir other;
        Builder profile(other / "p.oplog", "kineto", kOrigin);
        profile.mark(profile.thread(1, 1), "step", 1, 5, MarkerPhase::begin);
        const LogReader empty = profile.finish();
        CHECK_THROWS_WITH_AS(graft(job, empty, GraftBy::automatic, dir / "out.oplog"),
                             doctest::Contains("no accelerator work"), Error);
        CHECK_THROWS_WITH_AS(graft(profiled(other, kOrigin, 0), job, GraftBy::automatic, dir / "out.oplog"),
                             doctest::Contains("already"), Error);
    }
    CHECK_FALSE(std::filesystem::exists(dir / "out.oplog"));
}
