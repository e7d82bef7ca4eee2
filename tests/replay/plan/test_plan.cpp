// SPDX-License-Identifier: MIT
// What the plan keeps of a log's instances, mappings and spawns.
#include "replay/plan/plan.h"

#include <sys/mman.h>

#include "tests/replay/job_builder.h"

namespace reprise::test {

TEST_CASE("instances: several descriptors, left out, no file") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId plain = job.open(t, job.file("/d/plain")), twice = job.open(t, job.file("/d/twice"));
    const HandleId program = job.open(t, job.file("/bin/x", Origin::existed, Role::program));
    const HandleId pipe = job.handle(0, O_RDONLY, HandleKind::pipe);
    for (const HandleId handle : {twice, program, pipe}) {
        job.add(t, {.kind = OpKind::dup, .result = 20, .handle = handle, .fd = 3, .arg = 1});
        job.add(t, {.kind = OpKind::dup, .result = 21, .handle = handle, .fd = 3, .arg = 1});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter{}, PathMap{});
    CHECK(plan.handle_flags.at(plain) == 0);
    CHECK(plan.handle_flags.at(twice) == kHandleDuplicated);
    CHECK((plan.handle_flags.at(program) & kHandleLeftOut) != 0);
    CHECK((plan.handle_flags.at(pipe) & kHandleNotFile) != 0);
}

TEST_CASE("mappings that write their file are the shared ones that may be written") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/f"), O_RDWR);
    uint32_t map = 0;
    for (const int64_t flags : {MAP_SHARED, MAP_PRIVATE}) {
        for (const int64_t mode : {PROT_READ, PROT_READ | PROT_WRITE}) {
            job.add(t, {.kind = OpKind::mmap,
                        .handle = h,
                        .fd = job.fd(h),
                        .size = 4096,
                        .flags = flags,
                        .mode = mode,
                        .map = ++map});
        }
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    CHECK(plan.map_limit == 5);
    std::string writes;
    for (uint32_t each = 1; each < plan.map_limit; ++each) {
        writes += each < plan.map_flags.size() && (plan.map_flags[each] & kMapWritesFile) ? "w" : "-";
    }
    CHECK(writes == "-w--");
}

TEST_CASE("what a spawner did before the spawn need not be waited for again") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId parent = job.process(), other = job.process(parent);
    const TaskId a = job.task(parent), child = job.task(other);
    job.add(a, {.kind = OpKind::send, .result = 1});  // a 0
    job.spawn(a, child);                              // a 1
    job.add(a, {.kind = OpKind::send, .result = 1});  // a 2
    const std::vector<Edge> before{{a, EdgeKind::message, 100, 0}}, after{{a, EdgeKind::message, 100, 2}};
    job.add(child, {.kind = OpKind::receive, .result = 1, .edges = before});
    job.add(child, {.kind = OpKind::receive, .result = 1, .edges = after});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    REQUIRE(plan.tasks[child].waits.size() == 1);
    CHECK(plan.tasks[child].waits[0].op == 1);
    CHECK(plan.tasks[child].waits[0].source == 2);
}

TEST_CASE("readers of a file that was there wait only for writes beyond its end") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId a = job.lone_task(), b = job.lone_task();
    FileRow row;
    row.path = job.text("/d/f");
    row.origin = Origin::existed;
    row.type = FileType::regular;
    row.role = Role::dataset;
    row.size = 100;
    const FileId file = job.writer().add_file(row);
    const HandleId w = job.open(a, file, O_WRONLY);  // a 0
    const HandleId r = job.open(b, file);            // b 0
    job.pwrite(a, w, 0, 100);                        // a 1: nothing that was not there
    job.pread(b, r, 0, 100);                         // b 1
    job.pwrite(a, w, 100, 50);                       // a 2
    job.pread(b, r, 100, 50);                        // b 2
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    REQUIRE(plan.tasks[b].waits.size() == 1);
    CHECK(plan.tasks[b].waits[0].op == 2);
    CHECK(plan.tasks[b].waits[0].task == a);
    CHECK(plan.tasks[b].waits[0].source == 2);
}

}  // namespace reprise::test
