// SPDX-License-Identifier: MIT
// Resource edges: what the plan finds, and that runs keep the order it asks for.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "replay/plan/plan.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : PreparedRoot {
    Fixture() { fs::create_directories(root / "d"); }
    fs::path log() const { return dir / "job.oplog"; }
};

bool waits_for(const Plan& plan, TaskId task, uint64_t op, TaskId source, uint64_t source_op) {
    return std::any_of(plan.tasks[task].waits.begin(), plan.tasks[task].waits.end(), [&](const WaitFor& wait) {
        return wait.op == op && wait.task == source && wait.source == source_op;
    });
}

size_t edges(const Plan& plan) {
    size_t sum = 0;
    for (const TaskPlan& task : plan.tasks) {
        sum += task.waits.size();
    }
    return sum;
}

/// All that every task waits for, a line each: "task.op < source.op kind".
std::string waits(const Plan& plan) {
    std::string out;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        for (const WaitFor& wait : plan.tasks[task].waits) {
            out += std::to_string(task) + "." + std::to_string(wait.op) + " < " + std::to_string(wait.task) + "." +
                   std::to_string(wait.source) + " " + std::string(edge_name(wait.kind)) + "\n";
        }
    }
    return out;
}

/// Who receives which file, a line each.
std::string passed(const Plan& plan) {
    std::string out;
    for (const PassedFile& each : plan.passed) {
        out += std::string(plan.log->tables().path(each.file)) + ":";
        for (const ProcessId process : each.receivers) {
            out += " " + std::to_string(process);
        }
        out += "\n";
    }
    return out;
}

Plan plan_of(const LogReader& log) { return make_plan(log, OpFilter::all(), PathMap{}); }

}  // namespace

TEST_CASE_FIXTURE(Fixture, "edges that follow from others are left out, those that do not are kept") {
    const auto build = [&](bool b_goes_on) {
        JobBuilder job(log());
        const ProcessId process = job.process();
        const TaskId a = job.task(process), b = job.task(process), c = job.task(process);
        const Edge from_a[] = {{a, EdgeKind::message, 100, 0}}, later[] = {{a, EdgeKind::message, 100, 1}};
        const Edge both[] = {{b, EdgeKind::message, 100, 0}, {a, EdgeKind::message, 100, 0}};
        job.add(a, {.kind = OpKind::compute, .begin = 10'000});
        job.add(b, {.kind = OpKind::receive, .begin = 20'000, .edges = from_a});
        if (b_goes_on) {
            job.add(a, {.kind = OpKind::compute, .begin = 30'000});
            job.add(b, {.kind = OpKind::receive, .begin = 40'000, .edges = later});
        }
        job.add(c, {.kind = OpKind::receive, .begin = 60'000, .edges = both});
        const LogReader reader = job.finish();
        const Plan plan = plan_of(reader);
        CHECK(waits_for(plan, b, 0, a, 0));
        CHECK(waits_for(plan, c, 0, b, 0));
        CHECK(waits_for(plan, c, 0, a, 0) == b_goes_on);  // what b knew at op 0 is not remembered beyond it
        CHECK(plan.tasks[c].explained == std::vector<uint64_t>{0});
        return edges(plan);
    };
    CHECK(build(false) == 2);
    CHECK(build(true) == 4);
}

TEST_CASE_FIXTURE(Fixture, "a source that began just after its wait had ended stands for what came before it") {
    const auto build = [&](int64_t late) {
        JobBuilder job(log());
        const ProcessId process = job.process();
        const TaskId a = job.task(process), b = job.task(process);
        const Edge edge[] = {{a, EdgeKind::wake, 100, 1}};
        const Edge other[] = {{a, EdgeKind::wake, 100, 0}};
        job.add(a, {.kind = OpKind::compute, .begin = 10'000});
        job.add(b, {.kind = OpKind::wait, .begin = 20'000, .duration = 80'000, .arg = kWaitFutex, .edges = edge});
        job.add(a, {.kind = OpKind::wait, .begin = 100'000 + late, .arg = kWaitWokeOthers});
        job.add(b, {.kind = OpKind::wait, .begin = 20'000'000, .arg = kWaitFutex, .edges = other});
        const LogReader reader = job.finish();
        const Plan plan = plan_of(reader);
        const auto counted = [&](std::string_view name) {
            return std::any_of(plan.counters.begin(), plan.counters.end(),
                               [&](const Counter& counter) { return counter.name == name; });
        };
        CHECK(counted("edges_moved") == (late <= 2'000'000));
        CHECK(counted("edges_against_time") == (late > 2'000'000));
        CHECK(waits_for(plan, b, 0, a, 0) == (late <= 2'000'000));
    };
    build(1'000'000);
    build(5'000'000);
}

TEST_CASE_FIXTURE(Fixture, "a thread that waited when its process ended waits for that end") {
    constexpr int64_t kMs = 1'000'000;
    enum class Then : uint8_t { exits, dies_slowly, works };
    const auto build = [&](int64_t leader_ends, Then then, int64_t wait_class = kWaitUnknown) {
        JobBuilder job(log());
        const ProcessId process = job.process();
        const TaskId leader = job.task(process), thread = job.task(process);
        TaskRow row = job.writer().tables().tasks[leader];
        row.tid = job.writer().tables().processes[process].pid;
        job.writer().update_task(leader, row);
        job.add(leader, {.kind = OpKind::compute, .begin = 10'000});
        job.add(thread, {.kind = OpKind::wait, .begin = 20'000, .duration = 50 * kMs, .arg = wait_class});
        job.add(leader, {.kind = OpKind::exit, .begin = leader_ends});
        if (then != Then::exits) {
            job.add(thread, {.kind = OpKind::compute, .begin = 50'030'000, .duration = 180'000});
        }
        if (then == Then::works) {
            job.add(thread, {.kind = OpKind::marker, .begin = 50'300'000});
        }
        job.add(thread, {.kind = OpKind::exit, .begin = 50'400'000});
        if (then != Then::exits) {
            // Its memory is freed by the last one to go.
            job.add(thread, {.kind = OpKind::compute, .begin = 50'500'000, .duration = 12 * kMs});
            job.add(thread, {.kind = OpKind::wait, .begin = 63 * kMs, .duration = 200'000});
        }
        const LogReader reader = job.finish();
        const Plan plan = plan_of(reader);
        const bool cut = waits_for(plan, thread, 0, leader, 1);
        CHECK(plan.tasks[thread].explained == (cut ? std::vector<uint64_t>{0} : std::vector<uint64_t>{}));
        CHECK(plan.explained_wait_ns == (cut ? 50 * kMs : 0));
        return cut;
    };
    CHECK(build(50 * kMs, Then::exits));
    CHECK(build(50 * kMs, Then::dies_slowly));
    CHECK(build(50 * kMs, Then::dies_slowly, kWaitFutex));
    CHECK_FALSE(build(50 * kMs, Then::works));
    CHECK_FALSE(build(20 * kMs, Then::exits));  // ended long before: the thread waited for something else
}

TEST_CASE_FIXTURE(Fixture, "an instance is used only after it is open and closed only after its last use") {
    JobBuilder job(log());
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const FileId file = job.file("/d/f");
    const HandleId h = job.open(a, file);  // a 0
    job.pread(b, h, 0, 1);                 // b 0
    job.pread(b, h, 0, 1);                 // b 1
    job.pread(a, h, 0, 1);                 // a 1
    job.close(a, h);                       // a 2
    const HandleId again = job.open(a, file);
    job.close(a, again);
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));
    CHECK(waits_for(plan, a, 2, b, 1));
    CHECK(edges(plan) == 2);  // b 1 has waited already; what one task does alone needs none
    CHECK(plan.tasks[a].sources == std::vector<uint64_t>{0});
    CHECK(plan.tasks[b].sources == std::vector<uint64_t>{1});
}

TEST_CASE_FIXTURE(Fixture, "calls that overlapped stay free") {
    JobBuilder job(log());
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const HandleId h = job.handle(job.file("/d/f"));
    job.add(a, {.kind = OpKind::open, .begin = 100, .duration = 50, .result = 3, .handle = h, .fd = -1, .file = 1});
    job.add(b, {.kind = OpKind::pread, .begin = 200, .duration = 50, .result = 1, .handle = h, .fd = 3, .size = 1});
    job.add(b, {.kind = OpKind::pread, .begin = 300, .duration = 500, .result = 1, .handle = h, .fd = 3, .size = 1});
    job.add(a, {.kind = OpKind::close, .begin = 400, .duration = 50, .handle = h, .fd = 3});
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));
    CHECK(waits_for(plan, a, 1, b, 0));  // the last read had not ended when close began; the one before had
    CHECK_FALSE(waits_for(plan, a, 1, b, 1));
    CHECK(edges(plan) == 2);
}

TEST_CASE_FIXTURE(Fixture, "calls at one position that overlapped keep the order in which they had it") {
    JobBuilder job(log());
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process), c = job.task(process);
    const HandleId handle = job.open(a, job.file("/d/in"));
    const auto read = [&](TaskId task, int64_t begin, int64_t end, int64_t offset, int64_t result = 100) {
        job.add(task, {.kind = OpKind::read,
                       .begin = begin,
                       .duration = end - begin,
                       .result = result,
                       .handle = handle,
                       .fd = 3,
                       .offset = offset,
                       .size = 100});
    };
    read(a, 100'000, 200'000, 100);  // a.1 begins first, and comes second
    read(b, 110'000, 150'000, 0);
    read(b, 160'000, 250'000, 300);
    read(c, 170'000, 260'000, 200);
    read(a, 300'000, 310'000, 400, 0);  // the end: both find it there
    read(b, 305'000, 315'000, 400, 0);
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    INFO(waits(plan));
    CHECK(waits_for(plan, a, 1, b, 0));
    CHECK(waits_for(plan, b, 1, a, 1));  // though a.1 had not ended when b.1 began
    CHECK(waits_for(plan, b, 1, c, 0));
    CHECK(waits_for(plan, c, 0, a, 1));
    CHECK(waits_for(plan, b, 2, a, 2));
    CHECK_FALSE(waits_for(plan, b, 0, a, 1));
    CHECK_FALSE(waits_for(plan, a, 2, b, 2));
}

TEST_CASE_FIXTURE(Fixture, "a lock is had after the release that came before it, also where the call began earlier") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task(), c = job.lone_task(), d = job.lone_task();
    const FileId file = job.file("/d/lock");
    const HandleId ha = job.open(a, file), hb = job.open(b, file), hc = job.open(c, file), hd = job.open(d, file);
    const auto lock = [&](TaskId task, HandleId handle, int64_t how, int64_t begin, int64_t end, int64_t result = 0) {
        return job.add(task, {.kind = OpKind::flock,
                              .begin = begin,
                              .duration = end - begin,
                              .result = result,
                              .handle = handle,
                              .fd = job.fd(handle),
                              .arg = how});
    };
    lock(a, ha, LOCK_EX, 100'000, 110'000);                                                 // a 1
    lock(b, hb, LOCK_SH, 120'000, 320'000);                                                 // b 1
    lock(c, hc, LOCK_SH, 130'000, 330'000);                                                 // c 1
    lock(d, hd, LOCK_EX | LOCK_NB, 200'000, 205'000, -EWOULDBLOCK);                         // d 1
    lock(a, ha, LOCK_UN, 300'000, 340'000);                                                 // a 2
    lock(d, hd, LOCK_EX, 350'000, 500'000);                                                 // d 2
    job.add(b, {.kind = OpKind::close, .begin = 400'000, .handle = hb, .fd = job.fd(hb)});  // b 2
    job.add(c, {.kind = OpKind::exit, .begin = 450'000});                                   // c 2
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits(plan) ==
          "1.2 < 4.1 resource\n"  // the refused one had asked
          "2.1 < 1.2 resource\n"
          "3.1 < 1.2 resource\n"
          "4.1 < 1.1 resource\n"
          "4.2 < 1.2 resource\n"
          "4.2 < 2.2 resource\n"
          "4.2 < 3.2 resource\n");
}

TEST_CASE_FIXTURE(Fixture, "a lock that a child inherits ends with the last descriptor of it") {
    const auto build = [&](int64_t at_exec) {
        JobBuilder job(log());
        const ProcessId process = job.process();
        const TaskId a = job.task(process), child = job.task(job.process(process)), b = job.lone_task();
        const FileId file = job.file("/d/lock");
        const HandleId ha = job.open(a, file, O_RDONLY | at_exec), hb = job.open(b, file);
        job.add(a, {.kind = OpKind::flock, .handle = ha, .fd = job.fd(ha), .arg = LOCK_EX});  // a 1
        job.spawn(a, child);                                                                  // a 2
        job.add(b, {.kind = OpKind::flock,
                    .begin = 100'000,
                    .duration = 900'000,
                    .handle = hb,
                    .fd = job.fd(hb),
                    .arg = LOCK_EX});                                            // b 1
        job.add(child, {.kind = OpKind::exec, .begin = 200'000, .file = file});  // child 0
        job.add(a, {.kind = OpKind::exit, .begin = 300'000});                    // a 3
        job.add(child, {.kind = OpKind::exit, .begin = 400'000});                // child 1
        const LogReader reader = job.finish();
        const Plan plan = plan_of(reader);
        CHECK(waits_for(plan, b, 1, child, 1) == (at_exec == 0));
        CHECK(waits_for(plan, b, 1, a, 3) == (at_exec != 0));
    };
    build(0);
    build(O_CLOEXEC);
}

TEST_CASE_FIXTURE(Fixture, "locks change hands as in the recording") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task();
    const FileId file = job.file("/d/lock"), made = job.file("/d/made", Origin::created);
    std::ofstream(root / "d/lock") << "x";
    const HandleId ha = job.open(a, file), hb = job.open(b, file);
    for (int i = 0; i < 3'000; ++i) {
        job.add(a, {.kind = OpKind::stat, .file = file});  // so that b asks first
    }
    job.add(a, {.kind = OpKind::flock, .handle = ha, .fd = job.fd(ha), .arg = LOCK_EX});
    const HandleId writes = job.open(a, made, O_WRONLY | O_CREAT);
    job.close(a, writes);
    job.add(a, {.kind = OpKind::flock, .handle = ha, .fd = job.fd(ha), .arg = LOCK_UN});
    const int64_t unlocked = job.now();
    job.add(b, {.kind = OpKind::flock,
                .begin = unlocked - 5'000,
                .duration = 20'000,
                .handle = hb,
                .fd = job.fd(hb),
                .arg = LOCK_EX});
    job.close(b, job.open(b, made));
    job.close(b, hb);
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    CAPTURE(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.elapsed_ns < 1'000'000'000);  // b does not hold the lock while it waits for what a makes
}

TEST_CASE_FIXTURE(Fixture, "a lock that does not come is given up after a second, and said") {
    JobBuilder job(log());
    const TaskId a = job.lone_task();
    const FileId file = job.file("/d/lock");
    std::ofstream(root / "d/lock") << "x";
    const HandleId h = job.open(a, file);
    job.add(a, {.kind = OpKind::flock, .handle = h, .fd = job.fd(h), .arg = LOCK_EX});
    const LogReader reader = job.finish();
    const int other = ::open((root / "d/lock").c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(other, LOCK_EX) == 0);
    const ReplayResult result = replay(reader, afap(root));
    ::close(other);
    CAPTURE(describe(result));
    CHECK(result.mismatches == 1);
    CHECK(result.elapsed_ns >= 1'000'000'000);
    CHECK(result.elapsed_ns < 5'000'000'000);
    REQUIRE(!result.notes.empty());
    CHECK(result.notes.front().starts_with("1 flock call ended otherwise than recorded"));
}

TEST_CASE_FIXTURE(Fixture, "names are used only between their making and their end, directories included") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task(), c = job.lone_task();
    const FileId folder = job.file("/d/new", Origin::created, Role::dataset, FileType::directory);
    const FileId file = job.file("/d/new/f", Origin::created);
    const FileId other = job.file("/d/other");
    job.add(a, {.kind = OpKind::stat, .result = -2, .file = folder});   // a 0
    job.add(b, {.kind = OpKind::mkdir, .file = folder, .mode = 0755});  // b 0
    const HandleId h = job.open(a, file, O_WRONLY | O_CREAT);           // a 1
    job.close(a, h);                                                    // a 2
    job.add(c, {.kind = OpKind::stat, .file = file});                   // c 0
    job.add(c, {.kind = OpKind::stat, .file = other});                  // c 1
    job.add(b, {.kind = OpKind::unlink, .file = file});                 // b 1
    job.add(a, {.kind = OpKind::rmdir, .file = folder});                // a 3
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));  // looked for in vain before it was made
    CHECK(waits_for(plan, a, 1, b, 0));
    CHECK(waits_for(plan, c, 0, a, 1));
    CHECK(waits_for(plan, b, 1, c, 0));
    CHECK(waits_for(plan, b, 1, a, 1));
    CHECK(waits_for(plan, a, 3, b, 1));
    CHECK_FALSE(waits_for(plan, c, 1, b, 0));
}

TEST_CASE_FIXTURE(Fixture, "readers wait for what others wrote first, and only for that") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task();
    const FileId file = job.file("/d/f", Origin::created);
    const HandleId w = job.open(a, file, O_WRONLY | O_CREAT);  // a 0
    job.pwrite(a, w, 0, 100);                                  // a 1
    const HandleId r = job.open(b, file);                      // b 0
    job.pread(b, r, 0, 100);                                   // b 1
    job.pwrite(a, w, 0, 50);                                   // a 2: adds nothing
    job.pread(b, r, 50, 50);                                   // b 2
    job.pread(b, r, 49, 10);                                   // b 3
    job.pread(b, r, 0, 100);                                   // b 4
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));
    CHECK(waits_for(plan, b, 1, a, 1));
    CHECK(waits_for(plan, b, 3, a, 2));  // a byte of it was written over
    CHECK(edges(plan) == 3);
}

TEST_CASE_FIXTURE(Fixture, "a look at attributes waits for who altered the file") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task();
    const FileId file = job.file("/d/f"), other = job.file("/d/other");
    job.add(a, {.kind = OpKind::utimens, .fd = -1, .file = file});                  // a 0
    job.add(b, {.kind = OpKind::stat, .file = file});                               // b 0
    job.add(b, {.kind = OpKind::stat, .file = other});                              // b 1
    const HandleId w = job.open(a, file, O_RDWR);                                   // a 1
    job.pwrite(a, w, 0, 10);                                                        // a 2
    job.add(b, {.kind = OpKind::statx, .fd = -1, .file = file});                    // b 2
    job.add(a, {.kind = OpKind::stat, .file = file});                               // a 3: nobody else altered it
    job.add(a, {.kind = OpKind::chmod, .result = -EPERM, .fd = -1, .file = file});  // a 4
    job.add(b, {.kind = OpKind::stat, .file = file});                               // b 3
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits(plan) == "2.0 < 1.0 resource\n2.2 < 1.2 resource\n");
}

TEST_CASE_FIXTURE(Fixture, "a listing waits for the names that others made and ended in the directory") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task(), c = job.lone_task();
    const FileId folder = job.file("/d/in", Origin::existed, Role::dataset, FileType::directory);
    const HandleId in = job.open(b, folder, O_RDONLY | O_DIRECTORY);                              // b 0
    const HandleId made = job.open(a, job.file("/d/in/1", Origin::created), O_WRONLY | O_CREAT);  // a 0
    job.open(c, job.file("/d/out/1", Origin::created), O_WRONLY | O_CREAT);                       // c 0: elsewhere
    job.add(b, {.kind = OpKind::getdents, .result = 48, .handle = in, .fd = 3});                  // b 1
    job.close(a, made);                                                                           // a 1
    job.add(c, {.kind = OpKind::unlink, .file = job.file("/d/in/0")});                            // c 1
    job.add(b, {.kind = OpKind::getdents, .result = 48, .handle = in, .fd = 3});                  // b 2
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 1, a, 0));
    CHECK(waits_for(plan, b, 2, c, 1));
    CHECK(edges(plan) == 2);
}

TEST_CASE_FIXTURE(Fixture, "a fork comes after what the child inherits and before its end") {
    JobBuilder job(log());
    const ProcessId parent = job.process(), other = job.process(parent);
    const TaskId a = job.task(parent), b = job.task(parent), child = job.task(other);
    const HandleId h = job.open(a, job.file("/d/f"));  // a 0
    job.spawn(b, child);                               // b 0
    job.close(a, h);                                   // a 1
    job.pread(child, h, 0, 1);                         // child 0
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));
    CHECK(waits_for(plan, a, 1, b, 0));
    CHECK(plan.tasks[child].waits.empty());
    CHECK(plan.processes[other].spawner == b);
    CHECK(plan.processes[other].first_task == child);
    CHECK(plan.processes[parent].tasks_at_start == std::vector<TaskId>{a, b});
}

TEST_CASE_FIXTURE(Fixture,
                  "those who meet wait for the one that waited for all of them, though all go on at the same time") {
    JobBuilder job(log());
    const TaskId first = job.lone_task(), a = job.lone_task(), b = job.lone_task();
    const Edge all[] = {{a, EdgeKind::message, 100, 0}, {b, EdgeKind::message, 100, 0}};
    const Edge met[] = {{first, EdgeKind::message, 100, 1}}, again[] = {{first, EdgeKind::message, 100, 0}};
    job.add(first, {.kind = OpKind::compute, .begin = 10'000, .duration = 50'000});
    job.add(first, {.kind = OpKind::wait, .begin = 60'000, .duration = 40'000, .arg = kWaitFutex, .edges = all});
    for (const TaskId task : {a, b}) {
        job.add(task, {.kind = OpKind::compute, .begin = 10'000, .duration = 80'000});
        job.add(task, {.kind = OpKind::wait, .begin = 95'000, .duration = 5'000, .arg = kWaitFutex, .edges = met});
        job.add(task, {.kind = OpKind::wait, .begin = 100'000, .arg = kWaitFutex, .edges = again});
    }
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, a, 1, first, 1));
    CHECK(waits_for(plan, b, 1, first, 1));
    CHECK(std::none_of(plan.counters.begin(), plan.counters.end(),
                       [](const Counter& counter) { return counter.name == "edges_against_time"; }));
    // Two that wait for each other at the same time: one of them is wrong, and no more.
    JobBuilder circle(dir / "circle.oplog");
    const TaskId c = circle.lone_task(), d = circle.lone_task();
    const Edge of_c[] = {{c, EdgeKind::message, 100, 0}}, of_d[] = {{d, EdgeKind::message, 100, 0}};
    circle.add(c, {.kind = OpKind::wait, .begin = 10'000, .duration = 90'000, .arg = kWaitFutex, .edges = of_d});
    circle.add(d, {.kind = OpKind::wait, .begin = 10'000, .duration = 90'000, .arg = kWaitFutex, .edges = of_c});
    const LogReader turning = circle.finish();
    CHECK(edges(plan_of(turning)) == 1);
}

TEST_CASE_FIXTURE(Fixture, "edges of the log are kept where their source ends first, else dropped and counted") {
    JobBuilder job(log());
    const TaskId a = job.lone_task(), b = job.lone_task();
    job.add(a, {.kind = OpKind::send, .begin = 100, .duration = 10, .result = 1});
    const std::vector<Edge> good{{a, EdgeKind::message, 100, 0}};
    const std::vector<Edge> during{{a, EdgeKind::wake, 100, 1}};
    const std::vector<Edge> later{
        {a, EdgeKind::wake, 100, 2}, {a, EdgeKind::wake, 100, 3}, {a, EdgeKind::wake, 100, 99}};
    job.add(b, {.kind = OpKind::receive, .begin = 150, .duration = 10, .result = 1, .edges = good});
    job.add(b, {.kind = OpKind::wait, .begin = 200, .duration = 200, .edges = during});
    job.add(b, {.kind = OpKind::wait, .begin = 420, .duration = 10, .edges = later});
    job.add(a, {.kind = OpKind::send, .begin = 300, .duration = 10, .result = 1});
    job.add(a, {.kind = OpKind::send, .begin = 5'000'000, .duration = 10, .result = 1});
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(waits_for(plan, b, 0, a, 0));
    CHECK(waits_for(plan, b, 1, a, 1));  // woken while it waited
    CHECK(edges(plan) == 2);
    const auto count = [&](std::string_view name) {
        for (const Counter& counter : plan.counters) {
            if (counter.name == name) {
                return counter.value;
            }
        }
        return uint64_t{0};
    };
    CHECK(count("edges_against_time") == 1);
    CHECK(count("edges_without_source") == 2);
    CHECK(plan.wait_ns == 220);
    const ReplayResult result = replay(reader, afap(root));
    CHECK(result.ended == "complete");
    CHECK(result.ops == 6);
}

TEST_CASE_FIXTURE(Fixture, "a wait whose edges are all wrong is a wait without a known cause") {
    constexpr int64_t kMs = 1'000'000;
    JobBuilder job(log());
    const TaskId a = job.lone_task();
    std::vector<Edge> wrong;
    const char* counter = "edges_to_themselves";
    SUBCASE("from itself") { wrong = {{a, EdgeKind::wake, 100, 1}}; }
    SUBCASE("from what its own task did before") { wrong = {{a, EdgeKind::message, 100, 0}}; }
    SUBCASE("from what its own task does later") { wrong = {{a, EdgeKind::wake, 100, 2}}; }
    SUBCASE("from nowhere, in a log of one task") {
        wrong = {{a, EdgeKind::wake, 100, 99}};
        counter = "edges_without_source";
    }
    SUBCASE("from what comes too late") {
        const TaskId b = job.lone_task();
        job.add(b, {.kind = OpKind::compute, .begin = 90 * kMs});
        wrong = {{b, EdgeKind::wake, 100, 0}};
        counter = "edges_against_time";
    }
    job.add(a, {.kind = OpKind::marker, .begin = 1'000});
    job.add(a, {.kind = OpKind::wait, .begin = 10'000, .duration = 60 * kMs, .arg = kWaitFutex, .edges = wrong});
    job.add(a, {.kind = OpKind::marker, .begin = 61 * kMs});
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(plan.tasks[a].explained.empty());
    CHECK(plan.wait_ns == 60 * kMs);
    CHECK(plan.explained_wait_ns == 0);
    const auto at = std::find_if(plan.counters.begin(), plan.counters.end(),
                                 [&](const Counter& each) { return each.name == counter; });
    REQUIRE(at != plan.counters.end());
    CHECK(at->value == 1);
    ReplayOptions options = afap(root);
    options.pace = Pace::causal;
    const ReplayResult result = replay(reader, options);
    CHECK(result.ended == "complete");
    CHECK(result.elapsed_ns >= 60 * kMs);
    CHECK(result.unexplained_wait_share == 1.0);
}

TEST_CASE_FIXTURE(Fixture, "what a spawner waited for its child need not wait for again") {
    JobBuilder job(log());
    const ProcessId parent = job.process(), other = job.process(parent);
    const TaskId a = job.task(parent), x = job.lone_task(), child = job.task(other);
    const Edge first[] = {{x, EdgeKind::message, 100, 0}}, second[] = {{x, EdgeKind::message, 100, 1}};
    job.add(x, {.kind = OpKind::send, .result = 1});
    job.add(a, {.kind = OpKind::receive, .result = 1, .edges = first});
    job.spawn(a, child);
    job.add(x, {.kind = OpKind::send, .result = 1});
    job.add(child, {.kind = OpKind::receive, .result = 1, .edges = first});
    job.add(child, {.kind = OpKind::receive, .result = 1, .edges = second});
    job.add(child, {.kind = OpKind::receive, .result = 1, .edges = second});
    const LogReader reader = job.finish();
    CHECK(waits(plan_of(reader)) ==
          "1.0 < 2.0 message\n"
          "3.1 < 2.1 message\n");
}

TEST_CASE_FIXTURE(Fixture, "an instance is passed on to whoever was not forked after its open") {
    JobBuilder job(log());
    const ProcessId parent = job.process();
    const TaskId user = job.task(parent), opener = job.task(parent);  // the user is looked at first
    const auto forked = [&](TaskId by, int64_t at) {
        const TaskId made = job.lone_task();
        job.add(by, {.kind = OpKind::spawn, .begin = at, .result = 1, .peer = made});
        return made;
    };
    std::map<std::string, HandleId> handles;
    for (const char* name : {"/d/threads", "/d/forked", "/d/at_once", "/d/before", "/d/grandchild", "/d/late_line",
                             "/d/stranger", "/d/circle"}) {
        handles[name] = job.handle(job.file(name));
    }
    const auto opens = [&](const char* name, int64_t at) {
        job.add(opener,
                {.kind = OpKind::open, .begin = at, .result = 3, .handle = handles[name], .file = job.file(name)});
    };
    const auto uses = [&](const char* name, TaskId task) {
        job.add(task, {.kind = OpKind::pread, .begin = 5'000'000, .result = 1, .handle = handles[name], .size = 1});
    };
    const TaskId early = forked(user, 1'000'000);
    for (const auto& [name, handle] : handles) {
        opens(name.c_str(), 2'000'000);
    }
    const TaskId at_once = forked(user, 2'000'000), late = forked(user, 3'000'000);
    const TaskId of_early = forked(early, 4'000'000), of_late = forked(late, 4'000'000);
    const TaskId stranger = job.lone_task(), one = job.lone_task(), two = forked(one, 1'000'000);
    job.add(two, {.kind = OpKind::spawn, .begin = 2'000'000, .result = 1, .peer = one});  // cannot be
    uses("/d/threads", user);
    uses("/d/forked", late);
    uses("/d/at_once", at_once);
    uses("/d/before", early);
    uses("/d/grandchild", of_late);
    uses("/d/late_line", of_early);
    uses("/d/stranger", stranger);
    uses("/d/circle", one);
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(passed(plan) ==
          "/d/before: 2\n"
          "/d/late_line: 5\n"
          "/d/stranger: 7\n"
          "/d/circle: 8\n");
}

TEST_CASE_FIXTURE(Fixture, "an inherited instance of a file that another process makes is passed on by it") {
    JobBuilder job(log());
    const ProcessId maker = job.process(), taker = job.process();
    const TaskId a = job.task(maker), b = job.task(taker);
    const FileId made = job.file("/d/made", Origin::created), own = job.file("/d/own", Origin::created);
    const FileId there = job.file("/d/there"), failed = job.file("/d/failed", Origin::created);
    const auto opens = [&](TaskId task, FileId file, int64_t result) {
        job.add(task, {.kind = OpKind::open, .result = result, .handle = job.handle(file), .file = file});
    };
    opens(a, made, 3);     // a 0
    opens(a, made, -2);    // a 1: makes nothing
    opens(a, there, 4);    // a 2
    opens(b, own, 3);      // b 0
    opens(a, failed, -2);  // a 3
    const HandleId received = job.inherited(made, taker, 7);
    job.inherited(made, maker, 8);
    job.inherited(own, taker, 9);
    job.inherited(there, taker, 10);
    job.inherited(failed, taker, 11);
    job.add(b, {.kind = OpKind::fstat, .handle = received, .fd = 7});  // b 1
    const LogReader reader = job.finish();
    const Plan plan = plan_of(reader);
    CHECK(passed(plan) == "/d/made: 2\n");
    CHECK(waits(plan) == "2.1 < 1.0 resource\n");
}

TEST_CASE_FIXTURE(Fixture, "shared positions, mappings and contents: all that is waited for") {
    JobBuilder job(log());
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process), c = job.task(process);
    SUBCASE("a position is one after the other, an explicit offset is not") {
        const HandleId h = job.open(a, job.file("/d/f"));                                             // a 0
        job.pread(b, h, 0, 1);                                                                        // b 0
        job.read(b, h, 0, 1);                                                                         // b 1
        job.read(c, h, 1, 1);                                                                         // c 0
        job.add(a, {.kind = OpKind::lseek, .result = 9, .handle = h, .fd = job.fd(h), .offset = 9});  // a 1
        job.pread(c, h, 0, 1);                                                                        // c 1
        const LogReader reader = job.finish();
        CHECK(waits(plan_of(reader)) ==
              "1.1 < 3.0 resource\n"
              "2.0 < 1.0 resource\n"
              "3.0 < 1.0 resource\n"
              "3.0 < 2.1 resource\n");
    }
    SUBCASE("a mapping is touched while it is there") {
        const HandleId h = job.open(a, job.file("/d/f"));
        job.add(a, {.kind = OpKind::mmap, .handle = h, .fd = job.fd(h), .size = 8192, .map = 1});  // a 1
        job.add(b, {.kind = OpKind::touch, .size = 4096, .map = 1});                               // b 0
        job.add(c, {.kind = OpKind::madvise, .size = 4096, .map = 1});                             // c 0
        job.add(b, {.kind = OpKind::mremap, .size = 4096, .arg = 8192, .map = 1});                 // b 1
        job.add(c, {.kind = OpKind::munmap, .size = 4096, .map = 1});                              // c 1
        job.add(a, {.kind = OpKind::mmap, .size = 8192, .map = 2});
        const LogReader reader = job.finish();
        CHECK(waits(plan_of(reader)) ==
              "2.0 < 1.1 resource\n"
              "2.1 < 3.0 resource\n"
              "3.0 < 1.1 resource\n"
              "3.1 < 2.1 resource\n");
    }
    SUBCASE("the content goes by all names of a file, and a cut comes after what was read of it") {
        const FileId file = job.file("/d/f", Origin::created), moved = job.file("/d/g", Origin::created);
        const HandleId w = job.open(a, file, O_WRONLY | O_CREAT);            // a 0
        job.pwrite(a, w, 0, 100);                                            // a 1
        job.add(a, {.kind = OpKind::rename, .file = file, .file2 = moved});  // a 2
        const HandleId r = job.open(b, moved);                               // b 0
        job.pread(b, r, 0, 100);                                             // b 1
        job.add(c, {.kind = OpKind::truncate, .file = moved, .size = 0});    // c 0
        job.pwrite(a, w, 0, 10);                                             // a 3: longer than nothing
        job.pread(b, r, 0, 10);                                              // b 2
        const LogReader reader = job.finish();
        CHECK(waits(plan_of(reader)) ==
              "1.3 < 3.0 resource\n"
              "2.0 < 1.2 resource\n"
              "2.2 < 3.0 resource\n"
              "2.2 < 1.3 resource\n"
              "3.0 < 1.2 resource\n"
              "3.0 < 2.1 resource\n");
    }
    SUBCASE("a copy reads one file and makes the other longer") {
        const FileId from = job.file("/d/from", Origin::created), to = job.file("/d/to", Origin::created);
        const HandleId w = job.open(a, from, O_WRONLY | O_CREAT);  // a 0
        job.pwrite(a, w, 0, 100);                                  // a 1
        const HandleId in = job.open(b, from);                     // b 0
        const HandleId out = job.open(b, to, O_WRONLY | O_CREAT);  // b 1
        job.add(b, {.kind = OpKind::copy_file_range,
                    .result = 100,
                    .handle = in,
                    .fd = 3,
                    .handle2 = out,
                    .fd2 = 4,
                    .size = 100});           // b 2
        const HandleId r = job.open(c, to);  // c 0
        job.pread(c, r, 0, 100);             // c 1
        const LogReader reader = job.finish();
        CHECK(waits(plan_of(reader)) ==
              "2.0 < 1.0 resource\n"
              "2.2 < 1.1 resource\n"
              "3.0 < 2.1 resource\n"
              "3.1 < 2.2 resource\n");
    }
}

TEST_CASE_FIXTURE(Fixture, "every task starts, also where spawns contradict each other") {
    JobBuilder job(log());
    const ProcessId p = job.process(), q = job.process(), r = job.process();
    const TaskId a = job.task(p), b = job.task(q), c = job.task(r), thread = job.task(r);
    job.spawn(a, b);  // a circle: a starts b's process, b starts a's
    job.spawn(b, a);
    job.add(thread, {.kind = OpKind::compute});
    job.spawn(c, thread);  // too late: it has begun
    job.spawn(c, c);       // nonsense
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.ops == 5);
    CHECK(result.processes == 3);
}

TEST_CASE_FIXTURE(Fixture, "order across processes holds under stress") {
    // Three processes hand a file on: made, renamed, read and removed by turns. Any step out of order fails.
    JobBuilder job(log());
    const TaskId tasks[3] = {job.lone_task(), job.lone_task(), job.lone_task()};
    constexpr int kSteps = 60;
    for (int i = 0; i < kSteps; ++i) {
        const std::string name = "/d/f" + std::to_string(i % 2);
        const TaskId maker = tasks[i % 3], mover = tasks[(i + 1) % 3], reader = tasks[(i + 2) % 3];
        const FileId file = job.file(name, Origin::created), moved = job.file(name + ".moved", Origin::created);
        const HandleId w = job.open(maker, file, O_WRONLY | O_CREAT | O_EXCL);
        job.write(maker, w, 0, 10 + i);
        job.close(maker, w);
        job.add(mover, {.kind = OpKind::rename, .file = file, .file2 = moved});
        job.add(reader, {.kind = OpKind::stat, .result = -ENOENT, .file = file});
        const HandleId r = job.open(reader, moved);
        job.add(reader, {.kind = OpKind::pread, .result = 10 + i, .handle = r, .fd = job.fd(r), .size = 1'000});
        job.close(reader, r);
        job.add(mover, {.kind = OpKind::unlink, .file = moved});
    }
    const LogReader reader = job.finish();
    const int repetitions = 1'000 / kSteps + 4;
    for (int turn = 0; turn < repetitions; ++turn) {
        const ReplayResult result = replay(reader, afap(root));
        INFO(describe(result));
        REQUIRE(result.mismatches == 0);
        REQUIRE(result.ops == kSteps * 9);
    }
}

TEST_CASE_FIXTURE(Fixture, "threads that share a position read every byte once") {
    write_file(root / "d/f", std::string(100'000, 'x'));
    JobBuilder job(log());
    const ProcessId process = job.process();
    const TaskId tasks[3] = {job.task(process), job.task(process), job.task(process)};
    const HandleId h = job.open(tasks[0], job.file("/d/f"));
    job.spawn(tasks[0], tasks[1]);
    job.spawn(tasks[1], tasks[2]);
    for (int i = 0; i < 1'000; ++i) {
        job.read(tasks[i % 3], h, i * 100, 100);
        if (i % 100 == 50) {
            job.add(tasks[(i + 1) % 3],
                    {.kind = OpKind::lseek, .result = (i + 1) * 100, .handle = h, .fd = job.fd(h), .arg = SEEK_CUR});
        }
    }
    job.close(tasks[0], h);
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.bytes_read == 100'000);
    CHECK(result.edges > 900);
}

TEST_CASE_FIXTURE(Fixture, "processes that share an instance from before the recording share its position") {
    write_file(root / "d/f", std::string(500, 'x'));
    JobBuilder job(log());
    const ProcessId first = job.process(), second = job.process(), child = job.process(second);
    const TaskId tasks[3] = {job.task(first), job.task(second), job.task(child)};
    const HandleId h = job.inherited(job.file("/d/f"), first, 3, O_RDWR);
    job.spawn(tasks[1], tasks[2]);
    for (int i = 0; i < 30; ++i) {
        job.add(tasks[i % 3],
                {.kind = OpKind::write, .result = 10, .handle = h, .fd = 3, .offset = 500 + 10 * i, .size = 10});
    }
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/f") == 800);
}

}  // namespace reprise::test
