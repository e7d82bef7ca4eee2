// SPDX-License-Identifier: MIT
// What the plan keeps of a log's instances, mappings and spawns.
#include "replay/plan/plan.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>

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
    // Made writable later: by the task that mapped it, or by one that comes first; a private one; in vain; to be read.
    const TaskId other = job.lone_task();
    const auto protect = [&](TaskId who, int64_t mode, int64_t result = 0) {
        job.add(who, {.kind = OpKind::mprotect, .result = result, .size = 4096, .mode = mode, .map = ++map});
    };
    const auto shared = [&](TaskId who, uint32_t as, int64_t flags = MAP_SHARED) {
        job.add(who, {.kind = OpKind::mmap,
                      .handle = h,
                      .fd = job.fd(h),
                      .size = 4096,
                      .flags = flags,
                      .mode = PROT_READ,
                      .map = as});
    };
    shared(t, 5);
    protect(t, PROT_READ | PROT_WRITE);
    protect(t, PROT_WRITE);
    shared(other, 6);
    shared(t, 7, MAP_PRIVATE);
    protect(t, PROT_READ | PROT_WRITE);
    shared(t, 8);
    protect(t, PROT_WRITE, -EACCES);
    shared(t, 9);
    protect(t, PROT_READ);
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    CHECK(plan.map_limit == 10);
    std::string writes;
    for (uint32_t each = 1; each < plan.map_limit; ++each) {
        writes += each < plan.map_flags.size() && (plan.map_flags[each] & kMapWritesFile) ? "w" : "-";
    }
    CHECK(writes == "-w--ww---");
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

TEST_CASE("readers of a file that was there wait for writes beyond its end, and for those over what they read") {
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
    job.pwrite(a, w, 0, 50);                         // a 1: nothing that was not there
    job.pread(b, r, 50, 50);                         // b 1
    job.pwrite(a, w, 100, 50);                       // a 2
    job.pread(b, r, 100, 50);                        // b 2
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    REQUIRE(plan.tasks[b].waits.size() == 1);
    CHECK(plan.tasks[b].waits[0].op == 2);
    CHECK(plan.tasks[b].waits[0].task == a);
    CHECK(plan.tasks[b].waits[0].source == 2);
}

TEST_CASE("directories last where no name above them comes, goes or changes its meaning") {
    enum class Link : uint8_t { none, made, there };
    const auto lasting = [](const std::function<void(JobBuilder&, TaskId)>& ops, Link link = Link::none) {
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        for (const char* path : {"/a/b/c/f", "/a/g", "/x/h", "/top"}) {
            job.add(t, {.kind = OpKind::stat, .file = job.file(path)});
        }
        if (link == Link::there) {
            job.file("/link", Origin::existed, Role::dataset, FileType::symlink);
        }
        if (link == Link::made) {
            job.add(t, {.kind = OpKind::symlink, .file = job.file("/x/link", Origin::created), .text = job.text("h")});
        }
        ops(job, t);
        const LogReader log = job.finish();
        std::string out;
        for (const RootDirectory& each : make_plan(log, OpFilter::all(), PathMap{}).directories) {
            out += each.lasting ? each.relative + " " : "";
        }
        return out;
    };
    const auto one = [](OpKind kind, const char* path, const char* path2 = nullptr) {
        return [=](JobBuilder& job, TaskId t) {
            job.add(t, {.kind = kind, .file = job.file(path), .file2 = path2 ? job.file(path2) : FileId{0}});
        };
    };
    CHECK(lasting([](JobBuilder&, TaskId) {}) == ". a/b/c a x ");
    CHECK(lasting(one(OpKind::rename, "/a/b", "/x/b")) == ". a x ");
    CHECK(lasting(one(OpKind::rename, "/x", "/a")) == ". ");
    CHECK(lasting(one(OpKind::rmdir, "/a")) == ". a/b/c a x ");   // nothing is there afterwards
    CHECK(lasting(one(OpKind::unlink, "/a")) == ". a/b/c a x ");  // no directory
    CHECK(lasting(one(OpKind::link, "/a/g", "/x")) == ". a/b/c a ");
    CHECK(lasting(one(OpKind::mkdir, "/x")) == ". a/b/c a x ");  // nothing was there before
    CHECK(lasting([&](JobBuilder& job, TaskId t) {
              one(OpKind::mkdir, "/x")(job, t);
              one(OpKind::mkdir, "/x")(job, t);
          }) == ". a/b/c a ");
    const auto temporary = [&](JobBuilder& job, TaskId t) {  // made, and removed at the end
        const FileId made = job.file("/x", Origin::created, Role::dataset, FileType::directory);
        job.add(t, {.kind = OpKind::mkdir, .file = made});
        job.add(t, {.kind = OpKind::rmdir, .file = made});
    };
    CHECK(lasting(temporary) == ". a/b/c a x ");
    CHECK(lasting([&](JobBuilder& job, TaskId t) {
              temporary(job, t);
              one(OpKind::mkdir, "/x")(job, t);
          }) == ". a/b/c a ");
    for (const bool first : {false, true}) {  // tasks may be read in another order than they ran
        const auto again = [&](JobBuilder& job, TaskId t) {
            one(first ? OpKind::mkdir : OpKind::rmdir, "/x")(job, t);
            one(first ? OpKind::rmdir : OpKind::mkdir, "/x")(job, t);
        };
        CHECK(lasting(again) == ". a/b/c a ");
        CHECK(lasting(again, Link::there) == ". ");
    }
    // A link may lead anywhere, but what it leads to stays where nothing is moved.
    for (const Link link : {Link::made, Link::there}) {
        CHECK(lasting([](JobBuilder&, TaskId) {}, link) == ". a/b/c a x ");
        CHECK(lasting(one(OpKind::rename, "/x/h", "/x/i"), link) == ". a/b/c a x ");  // a file
        CHECK(lasting(
                  [](JobBuilder& job, TaskId t) {
                      job.add(t, {.kind = OpKind::rename,
                                  .file = job.file("/y", Origin::existed, Role::dataset, FileType::unknown),
                                  .file2 = job.file("/z", Origin::absent)});
                  },
                  link) == ". ");
        CHECK(lasting(
                  [](JobBuilder& job, TaskId t) {
                      job.add(t, {.kind = OpKind::unlink,
                                  .file = job.file("/l", Origin::existed, Role::dataset, FileType::symlink)});
                  },
                  link) == ". ");
        CHECK(lasting(one(OpKind::rmdir, "/x/h"), link) == ". a/b/c a x ");
        CHECK(lasting(one(OpKind::link, "/x/h", "/x/i"), link) == ". a/b/c a x ");
    }
}

TEST_CASE("buffers are as large as the largest read and write, and copies' no larger than a pipe") {
    const auto bytes = [](OpKind kind, int64_t size) {
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const FileId file = job.file("/d/f");
        const HandleId h = job.open(t, file, O_RDWR), h2 = job.open(t, job.file("/d/g"), O_RDWR);
        const bool by_path = info(kind).has(Field::file);
        job.add(
            t, {.kind = kind, .handle = h, .fd = 3, .handle2 = h2, .fd2 = 4, .file = by_path ? file : 0, .size = size});
        job.add(t,
                {.kind = kind, .handle = h, .fd = 3, .handle2 = h2, .fd2 = 4, .file = by_path ? file : 0, .size = 1});
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        return std::to_string(plan.tasks[t].read_bytes) + " " + std::to_string(plan.write_bytes);
    };
    for (const OpKind kind :
         {OpKind::read, OpKind::preadv, OpKind::getdents, OpKind::readlink, OpKind::getxattr, OpKind::listxattr}) {
        CHECK(bytes(kind, 100'000) == "100000 0");
    }
    for (const OpKind kind : {OpKind::write, OpKind::pwritev, OpKind::setxattr}) {
        CHECK(bytes(kind, 100'000) == "0 100000");
    }
    CHECK(bytes(OpKind::uring_submit, 100'000) == "100000 100000");
    CHECK(bytes(OpKind::splice, 100'000) == "100000 65536");
    CHECK(bytes(OpKind::splice, 60'000) == "60000 60000");
    CHECK(bytes(OpKind::fadvise, 100'000) == "0 0");
    CHECK(bytes(OpKind::read, -5) == "1 0");
}

TEST_CASE("what a plan says of the whole log: how long, how much of it waits, what changes files, streams") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId a = job.lone_task(), b = job.lone_task();
    const FileId file = job.file("/d/f");
    const HandleId h = job.handle(file, O_RDWR);
    const Edge edge[] = {{a, EdgeKind::message, 100, 0}};
    job.add(a, {.kind = OpKind::open, .begin = 50'000, .result = 3, .handle = h, .file = file, .flags = O_RDWR});
    job.add(a, {.kind = OpKind::pread, .begin = 60'000, .result = 1, .handle = h, .fd = 3, .size = 1});
    job.add(a, {.kind = OpKind::wait, .begin = 70'000, .duration = 100, .arg = kWaitFutex});
    job.add(a, {.kind = OpKind::wait, .begin = 80'000, .duration = 1'000, .arg = kWaitLock});
    job.add(a, {.kind = OpKind::gpu_submit, .begin = 90'000, .flags = 1, .arg = 0});
    job.add(a, {.kind = OpKind::gpu_submit, .begin = 91'000, .flags = 2, .arg = 0});
    job.add(a, {.kind = OpKind::gpu_wait, .begin = 92'000, .flags = 1, .arg = 0});
    job.add(a, {.kind = OpKind::gpu_submit, .begin = 93'000, .flags = 1, .arg = 1});
    job.add(b, {.kind = OpKind::receive, .begin = 60'000, .duration = 10'000, .result = 1, .edges = edge});
    job.add(
        b, {.kind = OpKind::pwrite, .begin = 80'000, .duration = 90'000, .result = 1, .handle = h, .fd = 3, .size = 1});
    job.add(b, {.kind = OpKind::ftruncate, .begin = 160'000, .duration = 1, .handle = h, .fd = 3});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    CHECK(plan.ops == 11);
    CHECK(plan.kept_ops == 11);
    CHECK(plan.first_begin == 50'000);
    CHECK(plan.last_end == 170'000);
    CHECK(plan.wait_ns == 10'100);
    CHECK(plan.explained_wait_ns == 10'000);
    CHECK(plan.changing_ops == 2);
    CHECK(plan.first_change == "pwrite /d/f");
    CHECK(plan.streams.size() == 3);
    CHECK(plan.tasks[a].spool_first == 0);
    CHECK(plan.tasks[b].spool_first == 512);
    CHECK(plan.counters.empty());
}

TEST_CASE("ops of a task that overlap by more than a coarse clock's rounding are counted") {
    const auto gaps = [](const std::vector<std::pair<int64_t, OpKind>>& ops) {
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task(), other = job.lone_task();
        job.add(t, {.kind = OpKind::compute, .begin = 1'000'000, .duration = 1'000'000});
        for (const auto& [begin, kind] : ops) {
            job.add(t, {.kind = kind, .begin = begin, .duration = 1});
        }
        job.add(other, {.kind = OpKind::compute, .begin = 1'000'000});
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        const std::string_view name = info(Count::gaps_negative).name;
        const auto at = std::find_if(plan.counters.begin(), plan.counters.end(),
                                     [&](const Counter& each) { return each.name == name; });
        return at == plan.counters.end() ? uint64_t{0} : at->value;
    };
    CHECK(gaps({{1'990'000, OpKind::compute}}) == 0);
    CHECK(gaps({{1'989'999, OpKind::compute}}) == 1);
    CHECK(gaps({{1'000'000, OpKind::compute}, {1'989'999, OpKind::compute}, {1'990'000, OpKind::compute}}) == 2);
    for (const OpKind kind : {OpKind::uring_submit, OpKind::uring_complete, OpKind::gpu_submit, OpKind::gpu_wait}) {
        CHECK(gaps({{1'000'001, kind}}) == 0);  // they go on beside the calls
    }
}

}  // namespace reprise::test
