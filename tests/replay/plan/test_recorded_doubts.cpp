// SPDX-License-Identifier: MIT
// What a recording itself says against the time of its replay.
#include "replay/plan/recorded_doubts.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "replay/plan/plan.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Recording {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const TaskId task = job.lone_task();

    FetchedPages fetched_;

    RecordedDoubts look(const OpFilter& filter = {}) {
        if (!fetched_.empty()) {
            job.writer().keep(encode_fetched(fetched_));
        }
        const LogReader log = job.finish();
        return recorded_doubts(make_plan(log, filter, PathMap{}));
    }
    /// A second of a machine whose devices served so many reads.
    void device_reads(int reads) {
        write_fact(job.writer().header(), fact::context,
                   R"({"interval_ms":1000,"series":{"block_reads":[)" + std::to_string(reads) + "]}}");
    }
    void look_at(TaskId who, OpKind kind, int64_t duration, int64_t flags = 0) {
        job.add(who, {.kind = kind, .duration = duration, .file = job.file("/data/in"), .flags = flags});
        job.skip(duration);
    }
    void map(HandleId handle, uint32_t map, int64_t protection) {
        job.add(task, {.kind = OpKind::mmap,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .size = 8 * kMiB,
                       .flags = MAP_PRIVATE,
                       .mode = protection,
                       .map = map});
    }
    /// A process that loads a library.
    void loads(std::string_view library) {
        const TaskId rank = job.lone_task();
        const HandleId handle = job.open(rank, job.file(library, Origin::existed, Role::program));
        job.add(rank, {.kind = OpKind::mmap,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .size = kMiB,
                       .flags = MAP_PRIVATE,
                       .mode = PROT_READ | PROT_EXEC,
                       .map = 1});
    }
    void touch(uint32_t map, int64_t bytes) { job.add(task, {.kind = OpKind::touch, .size = bytes, .map = map}); }
    HandleId program(std::string_view path) { return job.open(task, job.file(path, Origin::existed, Role::program)); }
};

}  // namespace

TEST_CASE_FIXTURE(Recording, "recorded doubts: data that the filter leaves out is summed up") {
    job.pread(task, job.open(task, job.file("/data/in")), 0, 3 * kMiB);
    job.pread(task, program("/opt/mine/a"), 0, 2 * kMiB);
    job.pread(task, program("/usr/lib/libc.so.6"), 0, 5 * kMiB);
    const RecordedDoubts doubts = look();
    CHECK(doubts.kept_bytes == 3 * kMiB);
    CHECK(doubts.left_out_bytes == 2 * kMiB);
    CHECK(left_out_data(doubts, kSomeShare) ==
          "2.00 MiB of the job's 5.00 MiB are left out as program or system files");
    CHECK(left_out_data(doubts, kMostShare).empty());
    CHECK(left_out_most(doubts) == left_out_data(doubts, kSomeShare) + "; select with --only PATH");
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: what asynchronous requests move counts") {
    const HandleId data = job.open(task, job.file("/data/in"));
    constexpr int64_t kRead = 22, kTimeout = 11;  // IORING_OP_*
    for (uint32_t request = 1; request <= 3; ++request) {
        job.add(task, {.kind = OpKind::uring_submit,
                       .handle = data,
                       .size = kMiB,
                       .arg = request == 3 ? kTimeout : kRead,
                       .request = request});
        job.add(task, {.kind = OpKind::uring_complete, .result = kMiB, .size = kMiB, .request = request});
    }
    job.pread(task, program("/opt/mine/a"), 0, kMiB);
    const RecordedDoubts doubts = look();
    CHECK(doubts.kept_bytes == 2 * kMiB);
    CHECK(doubts.left_out_bytes == kMiB);
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: mapped data counts, but not what is run") {
    const HandleId kept = job.open(task, job.file("/data/in")), data = program("/opt/mine/a"),
                   library = program("/opt/mine/plugin");
    map(kept, 1, PROT_READ);
    touch(2, 3 * kMiB);  // its mapping follows: another task made it
    map(data, 2, PROT_READ);
    map(library, 3, PROT_READ);
    map(library, 4, PROT_READ | PROT_EXEC);
    touch(1, kMiB);
    touch(3, 4 * kMiB);
    touch(4, 4 * kMiB);
    const FileId tool = job.file("/opt/mine/tool", Origin::existed, Role::program);
    job.add(task, {.kind = OpKind::exec, .file = tool});
    job.pread(task, job.open(task, tool), 0, 5 * kMiB);
    const RecordedDoubts doubts = look();
    CHECK(doubts.kept_bytes == kMiB);
    CHECK(doubts.left_out_bytes == 3 * kMiB);
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a source that knows no page faults, and mapped files") {
    const HandleId data = job.open(task, job.file("/data/in"));
    map(data, 1, PROT_READ);
    map(data, 2, PROT_READ);  // the same again
    map(program("/opt/mine/a"), 3, PROT_READ);
    map(job.open(task, job.file("/data/plugin")), 4, PROT_READ | PROT_EXEC);
    job.pread(task, data, 0, 12 * kMiB);
    SUBCASE("strace") {
        const RecordedDoubts doubts = look();
        CHECK(doubts.unseen_mapped_bytes == 8 * kMiB);
        CHECK(unseen_touches(doubts, kThirdShare)
                  .starts_with("the log does not say which pages of 8.00 MiB of mapped files were used: none of them "
                               "are read here"));
        CHECK(unseen_touches(doubts, kMostShare).empty());
    }
    SUBCASE("one that records faults") {
        touch(3, 4096);
        CHECK(look().unseen_mapped_bytes == 0);
    }
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a scaled log whose epochs are not as long as they should be") {
    CHECK(missed_by_scaling(RecordedDoubts(), 0.0).empty());
    write_fact(job.writer().header(), fact::scaled_missed, 750);
    job.pread(task, job.open(task, job.file("/data/in")), 0, kMiB);
    const RecordedDoubts doubts = look();
    CHECK(missed_by_scaling(doubts, kSomeShare)
              .starts_with("an epoch of the scaled set has 75 % too few or too many accesses: the recording has"));
    CHECK(missed_by_scaling(doubts, 0.8).empty());
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: small files among programs, and the programs, are told apart") {
    job.pread(task, job.open(task, job.file("/data/in")), 0, kMiB);
    job.pread(task, program("/home/me/lib/python3.11/site-packages/x/a.dat"), 0, 8000);
    job.pread(task, program("/home/me/lib/python3.11/site-packages/x/a.py"), 0, 4000);
    job.pread(task, program("/etc/hosts"), 0, 100);
    const RecordedDoubts doubts = look();
    CHECK(doubts.small.bytes == 8000);
    CHECK(doubts.programs.bytes == 12'000);
    CHECK(doubts.left_out_bytes == 0);
    CHECK(doubts.kept_ops == 2);
    CHECK(doubts.left_out_ops == 6);
    CHECK(nothing_left(doubts).empty());
    CHECK(look(OpFilter::all()).left_out_ops == 0);
}

TEST_CASE("reads among programs: by bytes, and only where they took time") {
    RecordedDoubts doubts;
    doubts.span_ns = 1'000'000'000;
    doubts.kept_bytes = 2 * kMiB;
    doubts.programs = doubts.small = {3 * kMiB, 20'000'000};
    CHECK(read_among_programs(doubts) ==
          "3.00 MiB of the job's 5.00 MiB are small files in program directories, left out: --only all keeps them");
    doubts.small.ns = 9'000'000;  // less than a hundredth
    CHECK(read_among_programs(doubts).empty());
    doubts.small = {kMiB, 20'000'000};
    CHECK(read_among_programs(doubts).empty());
    // Modules and the like: a job that has any data of its own is one of its data.
    doubts.programs = {400 * kMiB, 100'000'000};
    doubts.kept_ns = 1'000'000;
    CHECK(read_among_programs(doubts) ==
          "400 MiB of the job's 402 MiB are program files, left out: --only all keeps them");
    doubts.kept_ns = 10'000'000;
    CHECK(read_among_programs(doubts).empty());
    doubts.kept_ns = 0;
    doubts.kept_bytes = 8 * kMiB;
    CHECK(read_among_programs(doubts).empty());
    doubts.kept_bytes = 0;
    doubts.programs.ns = 40'000'000;  // less than a twentieth
    CHECK(read_among_programs(doubts).empty());
    doubts.programs.ns = 60'000'000;
    CHECK_FALSE(read_among_programs(doubts).empty());
    doubts.accept_filter();
    CHECK(read_among_programs(doubts).empty());
}

TEST_CASE("lost events are those of the counters, besides what a truncated log says") {
    Tables tables;
    count(tables.counters, Count::capture_ring_full, 3);
    count(tables.counters, Count::inputs_cut, 1);
    count(tables.counters, Count::recovered_log, 1);
    count(tables.counters, Count::calls_reordered, 5);
    PartOfJob part = part_of_job(tables);
    CHECK(part.lost_events == 4);
    CHECK(part.why() == "the log was truncated");
    part.truncated = false;
    CHECK(part.sentence() ==
          "the recording lost 4 events (3 capture_ring_full, 1 inputs_cut): what they did is missing here, too");
    CHECK(part_of_job({}).sentence().empty());
    Tables stopped;
    count(stopped.counters, Count::left_out_stopped, 7);
    CHECK(part_of_job(stopped).lost_events == 0);
    CHECK(part_of_job(stopped).sentence() ==
          "the log is of a run that stopped early: 7 ops that it did not come to are missing");
}

TEST_CASE("hidden touches: by the share of what is read") {
    CHECK(hidden_touches(0, 0, 0.0).empty());
    CHECK(hidden_touches(0, 100, 0.0).empty());
    CHECK(hidden_touches(10, 100, 0.1).empty());
    CHECK_FALSE(hidden_touches(11, 100, 0.1).empty());
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: sizes of a hostile log do not overflow") {
    const HandleId data = program("/opt/mine/a"), kept = job.open(task, job.file("/data/in"));
    for (int i = 0; i < 3; ++i) {
        job.pread(task, data, 0, INT64_MAX);
        job.pread(task, kept, 0, INT64_MAX);
    }
    const RecordedDoubts doubts = look();
    CHECK(doubts.left_out_bytes == UINT64_MAX);
    CHECK(left_out_data(doubts, kMostShare) ==
          "16.0 EiB of the job's 16.0 EiB are left out as program or system files");
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: files whose paths have no place below the root") {
    std::string deep;
    while (deep.size() <= 4'096) {
        deep += "/a folder of a long name";
    }
    job.pread(task, job.open(task, job.file(deep)), 0, 8 * kMiB);
    job.pread(task, job.open(task, job.file("relative/in")), 0, kMiB);
    job.pread(task, job.open(task, job.file("/data/in")), 0, kMiB);
    const RecordedDoubts doubts = look();
    CHECK(doubts.kept_bytes == 10 * kMiB);
    CHECK(doubts.unplaced_bytes == 9 * kMiB);
    CHECK(unplaced_data(doubts, kMostShare) ==
          "9.00 MiB of the job's 10.0 MiB have no place below the root (paths longer than 4,095 bytes, relative or "
          "empty), and are left out");
    CHECK(unplaced_data(doubts, 0.9).empty());
    CHECK(left_out_data(doubts, 0).empty());
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: nothing is left out where all is replayed") {
    job.pread(task, program("/opt/mine/a"), 0, 2 * kMiB);
    const RecordedDoubts doubts = look(OpFilter::all());
    CHECK(doubts.kept_bytes == 2 * kMiB);
    CHECK(doubts.left_out_bytes == 0);
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: names that a device served, of the task that waited longest") {
    constexpr int64_t kMs = 1'000'000;
    const TaskId other = job.lone_task();
    look_at(task, OpKind::stat, 30 * kMs);
    look_at(task, OpKind::stat, kNameInMemory - 1);
    look_at(task, OpKind::access, 20 * kMs);
    look_at(task, OpKind::open, 100 * kMs, O_CREAT | O_WRONLY);  // makes one
    look_at(task, OpKind::unlink, 100 * kMs);
    look_at(other, OpKind::stat, 15 * kMs);
    SUBCASE("its device was read") {
        device_reads(1);
        const RecordedDoubts doubts = look();
        CHECK(doubts.names_ns == 50 * kMs);
        CHECK(doubts.span_ns > 260 * kMs);
        CHECK(cached_names("were cached here", doubts.names_ns, 100 * kMs, kSomeShare) ==
              "names were cached here, and not when recorded (50.0 ms of the 100 ms)");
        CHECK(cached_names("", doubts.names_ns, 100 * kMs, kMostShare).empty());
        CHECK(cached_names("", 9 * kMs, 10 * kMs, kSomeShare).empty());  // hardly anything
    }
    SUBCASE("no device was read") {
        device_reads(0);
        CHECK(look().names_ns == 0);
    }
    SUBCASE("the recording does not say") { CHECK(look().names_ns == 0); }
    SUBCASE("of files that are left out") {
        device_reads(100);
        CHECK(look(OpFilter::from_words({}, {"dataset"})).names_ns == 0);
    }
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: requests whose results the log does not have") {
    const HandleId file = job.handle(job.file("/data/in"));
    for (uint32_t request = 1; request <= 10; ++request) {
        job.add(task, {.kind = OpKind::aio_submit, .handle = file, .fd = 3, .size = 4'096, .request = request});
    }
    job.add(task, {.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = 3});
    const RecordedDoubts doubts = look();
    CHECK(doubts.requests == 10);
    CHECK(doubts.unreported_requests == 9);
    CHECK(!unreported_requests(doubts, 0.5).empty());
    CHECK(unreported_requests(doubts, 0.95).empty());
    RecordedDoubts few = doubts;
    few.unreported_requests = 7;
    CHECK(unreported_requests(few, 0.5).empty());
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: locks that were asked for again and again") {
    const HandleId file = job.open(task, job.file("/data/db"));
    const auto ask = [&](OpKind kind, int64_t how, int64_t result) {
        job.add(task, {.kind = kind, .result = result, .handle = file, .fd = job.fd(file), .arg = how});
    };
    const auto pause = [&] { job.add(task, {.kind = OpKind::wait, .duration = kMiB, .arg = kWaitSleep}); };
    uint64_t polls = 3;
    SUBCASE("three times") {
        ask(OpKind::fcntl, F_SETLK, -EAGAIN), pause();
        ask(OpKind::fcntl, F_OFD_SETLK, -EACCES), pause();
        ask(OpKind::flock, LOCK_EX | LOCK_NB, -EAGAIN), pause(), pause();
    }
    SUBCASE("a directory that is a lock") {
        const FileId lock = job.file("/data/lock", Origin::created);
        for (const int64_t result : {-EEXIST, -EEXIST, -EEXIST, 0}) {
            job.add(task, {.kind = OpKind::mkdir, .result = result, .file = lock});
            if (result != 0) {
                pause();
            }
        }
    }
    SUBCASE("a directory that is there already") {
        const FileId made = job.file("/data/made");
        job.add(task, {.kind = OpKind::mkdir, .result = -EEXIST, .file = made}), pause();
        polls = 0;
    }
    SUBCASE("twice is little") {
        ask(OpKind::fcntl, F_SETLK, -EAGAIN), pause();
        ask(OpKind::fcntl, F_SETLK, -EAGAIN), pause();
        polls = 2;
    }
    SUBCASE("given up, had, or asked for something else") {
        ask(OpKind::fcntl, F_SETLK, -EAGAIN), ask(OpKind::fcntl, F_SETLK, 0), pause();
        ask(OpKind::fcntl, F_GETFL, -EAGAIN), pause();
        ask(OpKind::fcntl, F_SETLK, -EBADF), pause();
        polls = 0;
    }
    const RecordedDoubts doubts = look();
    CHECK(doubts.lock_polls == polls);
    CHECK(lock_polls(doubts) ==
          (polls < 3 ? ""
                     : "3 times a task slept as another held a file lock or a lock file, and asked again: how "
                       "often depends on how long locks are held here"));
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a name that is looked for until another task has made it") {
    FileRow row;
    row.path = job.writer().intern("/d/stop");
    row.origin = Origin::absent;
    const FileId none = job.writer().add_file(row);
    row.origin = Origin::created;
    row.type = FileType::regular;
    row.generation = 1;
    const FileId stop = job.writer().add_file(row);
    const auto look_for = [&](FileId file, OpKind kind, int64_t result) {
        job.add(task, {.kind = kind, .result = result, .file = file});
        job.skip(100);
    };
    const TaskId other = job.lone_task();
    bool said = true, made_before = false, at_work = true;
    int64_t vain = -ENOENT;
    SUBCASE("by a task that was at work meanwhile") {}
    SUBCASE("by one that came later: waited for otherwise") { said = at_work = false; }
    SUBCASE("that is there") {
        said = false;
        vain = 0;
    }
    SUBCASE("twice") {
        said = false;
        made_before = true;
    }
    if (at_work) {
        job.add(other, {.kind = OpKind::compute, .duration = 10});
    }
    if (!made_before) {
        look_for(none, OpKind::access, vain);
    }
    look_for(none, OpKind::stat, vain);
    look_for(none, OpKind::open, vain);
    job.add(other, {.kind = OpKind::open, .result = 3, .file = stop, .flags = O_CREAT});
    look_for(stop, OpKind::stat, 0);
    const RecordedDoubts doubts = look();
    CHECK(doubts.awaited.looks == (said ? 3 : 0));
    CHECK(awaited_name(doubts) == (said ? "task " + std::to_string(task) +
                                              " looked 3 times for /d/stop until another task had made it: here it "
                                              "looks as often, and does as much meanwhile"
                                        : ""));
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a lock waited for once, while another used files") {
    constexpr int64_t kMs = 1'000'000;
    const HandleId file = job.open(task, job.file("/data/a"), O_WRONLY | O_CREAT);
    const TaskId other = job.lone_task();
    int64_t from = 10 * kMs, duration = 70 * kMs, in_calls = 20 * kMs, end = 2'000 * kMs, arg = kWaitLock;
    bool said = true;
    SUBCASE("a tenth of it, and more") {}
    SUBCASE("less of it") {
        in_calls = 6 * kMs;
        said = false;
    }
    SUBCASE("before it") {
        from = 40 * kMs;
        said = false;
    }
    SUBCASE("too little of the whole") {
        end = 4'000 * kMs;
        said = false;
    }
    SUBCASE("for something else") {
        arg = kWaitFutex;
        said = false;
    }
    job.add(task, {.kind = OpKind::write,
                   .begin = 15 * kMs,
                   .duration = in_calls,
                   .result = 10,
                   .handle = file,
                   .fd = job.fd(file),
                   .size = 10});
    job.add(other, {.kind = OpKind::wait, .begin = from, .duration = duration, .arg = arg});
    job.add(other, {.kind = OpKind::compute, .begin = from + duration, .duration = end - from - duration});
    const RecordedDoubts doubts = look();
    CHECK((doubts.held_locks_ns == duration) == said);
    CHECK(held_locks(doubts).starts_with("a task waited 70.0 ms of 2.00 s for locks while another used files") == said);
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a server that syncs what several connections ask for") {
    const HandleId file = job.open(task, job.file("/data/log"), O_WRONLY);
    const HandleId sockets[] = {job.handle(0, 0, HandleKind::socket), job.handle(0, 0, HandleKind::socket)};
    const HandleId pipe = job.handle(0, 0, HandleKind::pipe);
    const auto hear = [&](HandleId from, int64_t bytes = 40) {
        job.add(task, {.kind = OpKind::receive, .result = bytes, .handle = from, .fd = 9, .size = 40});
    };
    const auto sync = [&] { job.add(task, {.kind = OpKind::fdatasync, .handle = file, .fd = job.fd(file)}); };
    uint64_t times = 20;
    int connections = 2;
    SUBCASE("two") {}
    SUBCASE("one: it asks again when it was answered") {
        connections = 1;
        times = 0;
    }
    for (int i = 0; i < 21; ++i) {
        hear(sockets[i % connections]);
        sync();
        sync();                           // nobody asked
        hear(pipe), hear(sockets[0], 0);  // no request
    }
    const RecordedDoubts doubts = look();
    CHECK(doubts.asked_syncs == times);
    CHECK(batched_syncs(doubts) == (times == 0 ? ""
                                               : "task 1 syncs what several connections ask for (20 times): how many "
                                                 "requests share a sync depends on how long one takes"));
    RecordedDoubts few = doubts;
    few.asked_syncs = 19;
    CHECK(batched_syncs(few).empty());
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: a logger syncs what others hand it") {
    const TaskId producer = job.lone_task();
    const HandleId file = job.open(task, job.file("/data/log"), O_WRONLY);
    int64_t each = 64 << 10, how = kWaitFutex;
    bool found = true;
    SUBCASE("a little each time") {}
    SUBCASE("a saver of checkpoints") {
        each += 4096;
        found = false;
    }
    SUBCASE("a lock is no order") {
        how = kWaitLock;
        found = false;
    }
    for (int i = 0; i < 20; ++i) {
        const uint64_t put = job.add(producer, {.kind = OpKind::compute});
        const Edge edge{producer, EdgeKind::wake, 100, put};
        job.add(task, {.kind = OpKind::wait, .arg = how, .edges = {&edge, 1}});
        job.write(task, file, i * each, each);
        job.add(task, {.kind = OpKind::fdatasync, .handle = file, .fd = job.fd(file)});
        job.add(task, {.kind = OpKind::fdatasync, .handle = file, .fd = job.fd(file)});  // nobody asked
    }
    const RecordedDoubts doubts = look();
    CHECK(doubts.logger_syncs == (found ? 20 : 0));
    CHECK(batched_syncs(doubts) ==
          (found ? "task 1 syncs what others hand it (20 times): how much shares a sync depends on "
                   "how long one takes"
                 : ""));
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: threads that sync one file and wait for each other") {
    const ProcessId process = job.process();
    int threads = 3, syncs = 8, waits = 8;
    bool processes = false;
    SUBCASE("three") {}
    SUBCASE("two are no group") { threads = 2; }
    SUBCASE("each for itself") { waits = 0; }
    SUBCASE("processes do not wait for each other in memory") { processes = true; }
    SUBCASE("seldom") { syncs = 6; }
    const FileId log = job.file("/data/wal");
    std::vector<TaskId> group;
    group.reserve(3);
    for (int i = 0; i < threads; ++i) {
        group.push_back(job.task(processes ? job.process() : process));
    }
    std::vector<HandleId> out;
    out.reserve(group.size());
    for (const TaskId one : group) {
        out.push_back(job.open(one, log, O_WRONLY));
    }
    Edge before;
    for (int turn = 0; turn < syncs; ++turn) {
        for (size_t i = 0; i < group.size(); ++i) {
            if (turn < waits && before.task != 0) {
                job.add(group[i], {.kind = OpKind::wait, .arg = kWaitFutex, .edges = {&before, 1}});
            }
            const uint64_t op = job.add(group[i], {.kind = OpKind::fdatasync, .handle = out[i], .fd = job.fd(out[i])});
            before = {group[i], EdgeKind::wake, 100, op};
        }
    }
    const RecordedDoubts doubts = look();
    const bool found = threads == 3 && waits != 0 && !processes && syncs == 8;
    CHECK(doubts.thread_syncs == (found ? 24 : 0));
    CHECK(batched_syncs(doubts) == (found && syncs == 8
                                        ? "3 threads sync one file (24 times) and wait for each other: how "
                                          "many writes share a sync depends on how long one takes"
                                        : ""));
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: program files among the data") {
    const auto read = [&](std::string_view path, Role role, int64_t bytes) {
        const HandleId file = job.open(task, job.file(path, Origin::existed, role));
        job.read(task, file, 0, bytes);
    };
    read("/home/me/project/data/images", Role::dataset, 6 * kMiB);
    read("/home/me/project/out", Role::unknown, 0);
    uint64_t beside = 4 * kMiB;
    SUBCASE("a project's modules") { read("/home/me/project/node_modules/x/index.js", Role::program, 4 * kMiB); }
    SUBCASE("elsewhere") {
        read("/home/me/other/node_modules/x/index.js", Role::program, 4 * kMiB);
        beside = 0;
    }
    SUBCASE("a Python environment is run") {
        read("/home/me/project/data/venv/lib/python3.11/x.py", Role::program, 4 * kMiB);
        read("/home/me/project/data/venv/bin/activate", Role::program, 4 * kMiB);
        beside = 0;
    }
    SUBCASE("data near the top says nothing") {
        read("/srv", Role::dataset, kMiB);
        read("/home/me/project/node_modules/x/index.js", Role::program, 4 * kMiB);
        beside = 0;
    }
    const bool all_data_there = beside != 0;
    read(all_data_there ? "/home/me/project/labels" : "/home/me/project/data/labels", Role::dataset, kMiB);
    const RecordedDoubts doubts = look();
    CHECK(doubts.beside_bytes == beside);
    CHECK(programs_among_data(doubts, kThirdShare) ==
          (beside == 0
               ? ""
               : "4.00 MiB of program files among the data are left out, and take their recorded time: --only all "
                 "keeps them"));
    CHECK(programs_among_data(doubts, 0.37).empty());  // 4 of 11 MiB
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: directories on the way to files") {
    const TaskId other = job.lone_task();
    const FileId file = job.file("/data/a/b/f");
    for (int i = 0; i < 3; ++i) {
        job.add(task, {.kind = OpKind::stat, .file = file});
    }
    job.add(other, {.kind = OpKind::stat, .file = file});
    job.add(task, {.kind = OpKind::stat, .result = -ENOENT, .file = job.file("/data/a/none", Origin::absent)});
    job.add(task, {.kind = OpKind::stat, .file = job.file("/usr/lib/x/y", Origin::existed, Role::program)});
    const RecordedDoubts doubts = look();
    CHECK(doubts.kept_directories == 3 * 3 + 2);  // of the task that has most
    CHECK(doubts.deep_file == file);
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: files of several file systems") {
    write_fact(job.writer().header(), fact::file_systems, R"({"8:1":"ext4","0:30":"tmpfs","8:2":"xfs","1:1":3})");
    const auto on = [&](std::string_view path, unsigned major, unsigned minor, FileType type = FileType::regular) {
        const FileId file = job.file(path, Origin::existed, Role::dataset, type);
        FileRow row = job.writer().tables().files[file];
        row.device = gnu_dev_makedev(major, minor);
        job.writer().update_file(file, row);
        return file;
    };
    const HandleId data = job.open(task, on("/data/in", 8, 1));
    for (int i = 0; i < 96; ++i) {
        job.pread(task, data, 0, kMiB);
    }
    const auto words = [&] { return several_file_systems(look().file_systems, true); };
    SUBCASE("memory beside a device: a few calls") {
        const HandleId out = job.open(task, on("/tmp/out", 0, 30), O_RDWR);
        job.pwrite(task, out, 0, 4'096);
        const std::string expected =
            "the recorded files lay on 2 file systems, one of them a tmpfs (1 file, 4.00 KiB written: /tmp/out)";
        SUBCASE("two of 99, which take 2 % of the time") {
            const RecordedDoubts doubts = look();
            REQUIRE(doubts.file_systems.size() == 2);
            CHECK(doubts.file_systems[0].type == "ext4");
            CHECK(doubts.file_systems[0].calls == 97);
            CHECK(doubts.file_systems[1].in_memory());
            CHECK(several_file_systems(doubts.file_systems, true) == expected);
            CHECK(memory_among(doubts.file_systems, 0.0).empty());  // little
            FileSystemUse disk = doubts.file_systems[0], memory = doubts.file_systems[1];
            disk.bytes = 6 << 20;
            memory.bytes = 2 << 20;
            CHECK(memory_among({disk, memory}, 0.1) ==
                  "2.00 MiB of the 8.00 MiB read and written were of files in memory (tmpfs), such as /tmp/out");
            CHECK(memory_among({disk, memory}, 0.3).empty());
            CHECK(memory_among({memory}, 0.1).empty());
        }
        SUBCASE("that take no time") {
            job.add(task, {.kind = OpKind::fstat, .duration = 10'000'000, .handle = data, .fd = job.fd(data)});
            SUBCASE("and move no data to speak of") { CHECK(words().empty()); }
            SUBCASE("but have to reach the device") {
                job.add(task, {.kind = OpKind::fsync, .handle = out, .fd = job.fd(out)});
                CHECK(words() == expected);
            }
            SUBCASE("of many files") {
                for (int i = 0; i < 16; ++i) {
                    job.open(task, on("/tmp/" + std::to_string(i), 0, 30));
                }
                CHECK(words() ==
                      "the recorded files lay on 2 file systems, one of them a tmpfs (17 files, 4.00 KiB written, such "
                      "as /tmp/out)");
            }
        }
    }
    SUBCASE("another device: a tenth") {
        const HandleId other = job.open(task, on("/more/in", 8, 2));
        job.pread(task, other, 0, 4'096);
        SUBCASE("less") { CHECK(words().empty()); }
        SUBCASE("more") {
            for (int i = 0; i < 20; ++i) {
                job.pread(task, other, 0, 4'096);
            }
            CHECK(words() ==
                  "the recorded files lay on 2 file systems, one of them an xfs (1 file, 0 B written: /more/in)");
        }
    }
    SUBCASE("what does not count") {
        job.open(task, on("/dev/shm/x", 0, 30));
        job.open(task, on("/dev/null", 0, 6, FileType::character));
        job.open(task, job.file("/data/unknown"));
        CHECK(look().file_systems.size() == 1);
    }
    SUBCASE("of a type that the recording does not say") {
        for (int i = 0; i < 20; ++i) {
            job.open(task, on("/more/in", 1, 1));
        }
        CHECK(words() == "the recorded files lay on 2 file systems, one of them with 1 file, 0 B written: /more/in");
    }
}

TEST_CASE_FIXTURE(Recording, "recorded doubts: programs that the recording loaded from its device") {
    constexpr int64_t kMs = 1'000'000;
    const FileId data = job.file("/data/in"), library = job.file("/usr/lib/x.so", Origin::existed, Role::program);
    look_at(task, OpKind::stat, 1'000 * kMs);
    const auto fetched = [&](FileId file, uint64_t bytes) { fetched_[file].add(0, bytes); };
    // 100 reads of 4 ms in a second
    write_fact(job.writer().header(), fact::context,
               R"({"interval_ms":1000,"series":{"block_reads":[100],"block_read_us":[400000]}})");
    SUBCASE("most of what was read") {
        fetched(data, 10 * kMiB);
        fetched(library, 30 * kMiB);
        const RecordedDoubts doubts = look();
        CHECK(doubts.program_bytes == 30 * kMiB);
        CHECK(doubts.program_ns / kMs == 300);
        CHECK(loaded_programs(doubts, kSomeShare)
                  .starts_with("the recording loaded 30.0 MiB of programs from its device, about 300 ms of its 1.00 s, "
                               "which stay"));
        CHECK(loaded_programs(doubts, kMostShare).empty());
    }
    SUBCASE("what only its name makes a program") {
        const FileId script = job.file("/data/tree/a.py", Origin::existed, Role::program);
        job.pread(task, job.open(task, script), 0, 8 * kMiB);
        fetched(data, 10 * kMiB);
        fetched(script, 8 * kMiB);
        const RecordedDoubts doubts = look();
        CHECK(doubts.program_bytes == 0);
        CHECK(doubts.left_out_bytes == 8 * kMiB);
    }
    SUBCASE("little of it") {
        fetched(data, 90 * kMiB);
        fetched(library, 10 * kMiB);
        CHECK(loaded_programs(look(), kSomeShare).empty());
    }
    SUBCASE("they are replayed") {
        fetched(library, 30 * kMiB);
        CHECK(look(OpFilter::all()).program_bytes == 0);
    }
    SUBCASE("the recording does not say") { CHECK(look().program_bytes == 0); }
}

TEST_CASE("ranks of MPI wait for each other by computing") {
    Recording log;
    log.loads("/usr/lib/libmpi.so.40");
    SUBCASE("two or more") {
        log.loads("/opt/mpich/lib/libmpich.so.12");
        log.loads("/usr/lib/libc.so.6");
        const RecordedDoubts doubts = log.look();
        CHECK(doubts.mpi_processes == 2);
        CHECK(mpi_waits(doubts, 1'500, 1'000) ==
              "2 processes use MPI, whose ranks wait for each other by computing: here they compute as long as "
              "recorded, and do not wait");
        CHECK(!mpi_waits(doubts, 900, 1'000).empty());
        CHECK(mpi_waits(doubts, 1'040, 1'000).empty());
    }
    SUBCASE("one waits for nobody") {
        log.loads("/usr/lib/libmpiwrapper.so");
        const RecordedDoubts doubts = log.look();
        CHECK(doubts.mpi_processes == 1);
        CHECK(mpi_waits(doubts, 1'500, 1'000).empty());
    }
}

TEST_CASE("recorded doubts: a job may look in memory for what a polling thread has done for it") {
    RecordedDoubts doubts;
    CHECK(looks_for_results(doubts).empty());
    doubts.polled_requests = 2'000;
    CHECK(
        looks_for_results(doubts) ==
        "a polling thread of the kernel took 2,000 requests (IORING_SETUP_SQPOLL): where the job looks for results in "
        "memory, it computes as long as when recorded");
}

TEST_CASE("recorded doubts: how many requests are in flight where they take longer is not known where none waited") {
    RecordedDoubts doubts;
    doubts.requests = 400;
    doubts.at_once_requests = 40;  // a tenth
    CHECK(hidden_depth(doubts, 1'600, 1'000, kSomeLonger).empty());
    doubts.at_once_requests = 41;
    CHECK(hidden_depth(doubts, 1'060, 1'000, kSomeLonger) ==
          "41 asynchronous requests were each done before the job made the next: how many it keeps in flight where "
          "they take longer is not in the log; record on slower storage, or with cold caches");
    CHECK(hidden_depth(doubts, 1'040, 1'000, kSomeLonger).empty());
    CHECK(hidden_depth(doubts, 1'490, 1'000, kMuchLonger).empty());
    CHECK_FALSE(hidden_depth(doubts, 1'510, 1'000, kMuchLonger).empty());
    doubts.requests = doubts.at_once_requests = 31;
    CHECK(hidden_depth(doubts, 1'600, 1'000, kSomeLonger).empty());
}

TEST_CASE("recorded doubts: strace's own time is that of the task with most calls, however blocks interleave") {
    constexpr int64_t kCall = 40'000;  // of strace, at least
    const auto traced = [](int64_t span_in_calls, const char* source = "strace") {
        TempDir dir;
        JobBuilder job(dir / "job.oplog", {.block_ops = 16, .sync = false});
        job.writer().header().source = source;
        const TaskId most = job.lone_task(), other = job.lone_task();
        const HandleId in = job.open(most, job.file("/data/in")), in_other = job.open(other, job.file("/data/in"));
        for (int i = 1; i < 200; ++i) {
            job.pread(most, in, 0, 100);
            if (i % 2 == 0) {
                job.pread(other, in_other, 0, 100);
            }
        }
        const int64_t span = 200 * kCall * span_in_calls / 10;
        job.add(most, {.kind = OpKind::compute, .begin = span - 1000, .duration = 1000});
        const LogReader log = job.finish();
        REQUIRE(log.blocks().size() > 10);
        return recorded_doubts(make_plan(log, {}, PathMap{}));
    };
    CHECK(traced(100).traced_ns == 200 * kCall);
    CHECK(stopped_at_calls(traced(110), kSomeShare).empty());
    CHECK(stopped_at_calls(traced(90), kSomeShare)
              .starts_with("strace stopped the job at each call, about 8.00 ms of the"));
    CHECK(stopped_at_calls(traced(22), kMostShare).empty());
    CHECK_FALSE(stopped_at_calls(traced(18), kMostShare).empty());
    CHECK(traced(18, "capture").traced_ns == 0);
    CHECK(stopped_at_calls(traced(18, "capture"), kSomeShare).empty());
}
