// SPDX-License-Identifier: MIT
// The replay without I/O: in virtual time, against a described storage.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "calibrate/other_io.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "replay/predict/predict.h"
#include "replay/predict/virtual_storage.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/virtual_steps.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

/// Takes no time, unless a test says otherwise.
StorageModel nothing() {
    StorageModel m;
    m.read = {{4096, 0}};
    m.read_bytes_per_s = m.write_bytes_per_s = m.cached_bytes_per_s = 1e15;
    return m;
}

struct PredictJob {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};

    Prediction run(StorageModel model = nothing(), Speeds speeds = {}, int cpus = 0) {
        if (!reader) {
            reader = std::make_unique<LogReader>(job.finish());
        }
        PredictOptions options;
        options.storage = std::move(model);
        options.speeds = speeds;
        options.cpus = cpus;
        options.filter = OpFilter::all();
        options.output = dir / "run.oplog";
        return predict(*reader, options);
    }
    /// A loader that reads 1 MB a step, and a trainer that waits for it and computes on an accelerator.
    void training(int64_t read_ns, int64_t step_ns, int steps) {
        const TaskId loader = job.lone_task(), trainer = job.lone_task();
        const HandleId h = job.handle(job.file("/data/in"), O_RDONLY | O_DIRECT);  // so that nothing is read ahead
        job.add(loader, {.kind = OpKind::open,
                         .begin = 1'000,
                         .duration = 1'000,
                         .result = 3,
                         .handle = h,
                         .file = job.file("/data/in")});
        for (int64_t step = 0; step < steps; ++step) {
            const int64_t from = 10'000 + step * (read_ns + step_ns);
            const uint64_t read = job.add(loader, {.kind = OpKind::pread,
                                                   .begin = from,
                                                   .duration = read_ns,
                                                   .result = 1'000'000,
                                                   .handle = h,
                                                   .fd = 3,
                                                   .offset = step * 1'000'000,
                                                   .size = 1'000'000});
            const std::vector<Edge> edges{{loader, EdgeKind::message, 100, read}};
            job.add(trainer, {.kind = OpKind::wait, .begin = from, .duration = read_ns, .arg = 1, .edges = edges});
            job.add(trainer, {.kind = OpKind::gpu_submit, .begin = from + read_ns, .duration = 1'000, .size = step_ns});
            job.add(trainer, {.kind = OpKind::gpu_wait, .begin = from + read_ns + 1'000, .duration = step_ns - 1'000});
        }
    }
    std::unique_ptr<LogReader> reader;
};

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

TEST_CASE("the storage of a prediction: latency, a limited rate, some reads at once, and a cache") {
    StorageModel m = nothing();
    m.read = {{100'000, kMs}, {200'000, 2 * kMs}};
    CHECK(m.read_ns(1) == kMs);
    CHECK(m.read_ns(150'000) == 1'500'000);
    CHECK(m.read_ns(400'000) == 4 * kMs);  // the last slope goes on
    m.read = {{4096, kMs}};
    m.parallelism = 2;
    VirtualStorage storage(m, false);
    CHECK(read(storage, 1, 0, 4096, 4096, 0) == kMs);
    CHECK(read(storage, 2, 0, 4096, 4096, 0) == kMs);      // beside it
    CHECK(read(storage, 3, 0, 4096, 4096, 0) == 2 * kMs);  // after one of them
    CHECK(read(storage, 1, 0, 4096, 4096, 5 * kMs) == 5 * kMs);
    CHECK(storage.reads == 3);
    CHECK(storage.bytes_read == 3 * 4096);
    m.read_bytes_per_s = 1e6;  // 4096 bytes in 4.096 ms
    VirtualStorage slow(m, false);
    CHECK(read(slow, 1, 0, 4096, 4096, 0) == 4'096'000);
    CHECK(read(slow, 2, 0, 4096, 4096, 0) == 8'192'000);
    VirtualStorage warm(m, true);
    CHECK(read(warm, 1, 0, 4096, 4096, 7) == 7);
    m.fsync_ns = 3;
    m.write_bytes_per_s = 1e9;
    VirtualStorage written(m, false);
    CHECK(written.write(1, 0, 1'000, 10) == 10);
    CHECK(written.sync(1, 20) == 1'020 + 3);             // it begins with the sync
    CHECK(read(written, 1, 0, 1'000, 1'000, 30) == 30);  // what was written is cached
}

TEST_CASE("the storage of a prediction: memory without a queue has its reader do what is read ahead") {
    StorageModel m = nothing();
    m.read = {{4'096, 10 * kUs}, {131'072, 320 * kUs}};
    constexpr int64_t kSize = int64_t{1} << 20, kPieces = kSize / 4'096, kComputes = 40 * kUs, kReads = 2'560 * kUs;
    const auto reading = [&](bool inline_reads) {
        m.inline_reads = inline_reads;
        VirtualStorage storage(m, false);
        int64_t now = 0;
        for (int64_t piece = 0; piece < kPieces; ++piece) {
            now = read(storage, 1, piece * 4'096, 4'096, kSize, now) + kComputes;
        }
        CHECK(storage.bytes_read == static_cast<uint64_t>(kSize));
        return now - kPieces * kComputes;
    };
    CHECK(reading(false) < kReads / 5);  // beside computing
    CHECK(reading(true) == doctest::Approx(kReads).epsilon(0.02));
    // Asking for it takes as long, and then it is there.
    m.inline_reads = true;
    VirtualStorage storage(m, false);
    constexpr int64_t kWindow = 131'072;  // of readahead(2), too
    CHECK(storage.prefetch(2, 2, 0, kSize, kSize, 0) == 320 * kUs);
    CHECK(read(storage, 2, 0, kWindow, kSize, 320 * kUs) == 320 * kUs);
    // What a limit holds up does not hold up who asks.
    m.read_bytes_per_s = 1e6;
    VirtualStorage limited(m, false);
    CHECK(limited.prefetch(3, 3, 0, kSize, kSize, 0) == 320 * kUs);
}

TEST_CASE("the device of a prediction: a limit of requests, and what it lets through after a pause") {
    StorageModel m = nothing();
    m.parallelism = 4;
    m.reads_per_s = 1'000;  // a millisecond each
    VirtualDevice device(m);
    CHECK(device.read(4'096, 0) == kMs);
    CHECK(device.read(4'096, 0) == 2 * kMs);
    CHECK(device.read(1 << 20, 0) == 3 * kMs);  // whatever its size
    CHECK(device.read(4'096, 100 * kMs) == 101 * kMs);
    m.read_burst_ns = 10 * kMs;
    m.read = {{4096, 100'000}};
    VirtualDevice bursts(m);
    int64_t end = 0;
    for (int i = 0; i < 10; ++i) {
        end = bursts.read(4'096, 100 * kMs);
    }
    CHECK(end < 101 * kMs);  // ten at once
    for (int i = 0; i < 10; ++i) {
        end = bursts.read(4'096, 100 * kMs);
    }
    CHECK(end == 110 * kMs);
    CHECK(bursts.read(4'096, 110 * kMs) == 111 * kMs);
    CHECK(bursts.read(4'096, 200 * kMs) == 200 * kMs + 100'000);  // rested
}

TEST_CASE("the device of a prediction: a limit that lets through so much every tenth of a second") {
    StorageModel m = nothing();
    m.parallelism = 4;
    m.read_bytes_per_s = 10e6;
    m.read_burst_ns = m.read_step_ns = 100 * kMs;
    m.read = {{4096, 1'000}};
    constexpr int64_t kPart = 250'000;  // 25 ms of it
    VirtualDevice device(m);
    int64_t end = kMs;
    const auto reads = [&](int count, int64_t bytes) {
        for (int i = 0; i < count; ++i) {
            end = device.read(bytes, end);
        }
        return end;
    };
    CHECK(reads(4, kPart) < 2 * kMs);     // all of the first step
    CHECK(reads(1, kPart) == 126 * kMs);  // what does not fit waits for the step and its own time
    CHECK(reads(3, kPart) < 127 * kMs);   // and the rest of that one comes with it
    CHECK(reads(1, kPart) == 226 * kMs);
    CHECK(reads(1, 2'000'000) == 426 * kMs);                   // longer than a step
    CHECK(device.read(kPart, 500 * kMs) < 501 * kMs);          // 75 ms are left, of the step from 401 on
    CHECK(device.read(3 * kPart, 600 * kMs - 1) > 600 * kMs);  // those of the step before are lost
    // A reader that never needs more than a step waits for nothing.
    for (int64_t at = 2'000 * kMs; at < 3'000 * kMs; at += 101 * kMs) {
        end = at;
        CHECK(reads(4, kPart) < at + kMs);
    }
    // A pause counts until the kernel ends the slice: a step after the last request, rounded up to whole steps.
    for (const auto& [at, most] : {std::pair{195 * kMs, 7}, {205 * kMs, 4}}) {
        VirtualDevice saved(m);
        CHECK(saved.read(kPart, 10 * kMs) < 11 * kMs);
        int at_once = 0;
        for (int i = 0; i < 10; ++i) {
            at_once += saved.read(kPart, at) < at + kMs ? 1 : 0;
        }
        CHECK(at_once == most);
    }
    // One after the other, whoever asks.
    VirtualDevice together(m);
    CHECK(together.read(4 * kPart, 0) < kMs);
    CHECK(together.read(kPart, kMs) == 125 * kMs);
    CHECK(together.read(kPart, kMs) < 126 * kMs);
}

TEST_CASE("the device of a prediction: calls that a limit held up say nothing of what they take from others") {
    StorageModel m = nothing();
    constexpr int64_t kPart = 65'536, kMuch = 40 * kPart, kAlone = 100'000;
    m.read_bytes_per_s = m.write_bytes_per_s = 40e6;
    m.read_burst_ns = m.read_step_ns = 100 * kMs;
    m.read = {{kPart, kAlone}, {kMuch, 65 * kMs}};
    m.direct_write = {{kPart, 1'600'000}};
    m.read_depth = m.write_depth = {{kPart, 1, kAlone, kAlone, 610, false}, {kPart, 4, 200'000, 200'000, 610, false}};
    VirtualDevice device(m);
    WriteBack cache(m);
    CHECK(device.read(kMuch, 0) < 10 * kMs);  // what the limit has saved
    // The read is over, and the limit of writes is all there is.
    CHECK(device.write(kPart, 20 * kMs, cache) == 20 * kMs + 65'536 * 25);
}

TEST_CASE("the device of a prediction: writes past the cache keep a limit of requests, whatever they did by depth") {
    StorageModel m = nothing();
    constexpr int64_t kPart = 131'072;
    m.write_bytes_per_s = 250e6;
    m.writes_per_s = 250;
    m.read_burst_ns = m.read_step_ns = 100 * kMs;
    // Of 16 in flight all but those that stood still: what a step lets through at once.
    m.write_depth = {{kPart, 1, 200'000, 200'000, 250, false}, {kPart, 16, 2 * kMs, 2 * kMs, 250, false}};
    const auto last_of = [&](int writes) {
        VirtualDevice device(m);
        WriteBack cache(m);
        int64_t end = 0;
        for (int i = 0; i < writes; ++i) {
            end = device.write(kPart, 0, cache, VirtualDevice::By::ring);
        }
        return end;
    };
    CHECK(last_of(25) < 100 * kMs);
    CHECK(last_of(800) > 3'000 * kMs);
    CHECK(last_of(800) < 3'300 * kMs);
    m.read_burst_ns = m.read_step_ns = 0;  // no limit: what was written back says nothing of these
    CHECK(last_of(800) < 500 * kMs);
}

TEST_CASE("the device of a prediction: one measurement in which a limit let more through is not what writes move") {
    StorageModel m = nothing();
    constexpr int64_t kPart = 131'072, kMuch = 1 << 20;
    m.write_bytes_per_s = 20e6;
    m.read_burst_ns = m.read_step_ns = 100 * kMs;
    m.write_depth = {{4'096, 1, 20'000, 20'000, 6'100, false},
                     {4'096, 4, 60'000, 60'000, 6'000, false},
                     {kPart, 1, 150'000, 150'000, 190, false},
                     {kPart, 4, 500'000, 500'000, 110, false},
                     {kMuch, 1, kMs, kMs, 27.5, false}};
    const auto rate = [&] {
        VirtualDevice device(m);
        WriteBack cache(m);
        int64_t end = 0;
        for (int i = 0; i < 1'000; ++i) {
            end = device.write(kPart, 0, cache, VirtualDevice::By::ring);
        }
        return 1e3 * kPart / (static_cast<double>(end) / 1e9);
    };
    CHECK(rate() == doctest::Approx(25e6).epsilon(0.01));
    m.read_burst_ns = m.read_step_ns = 0;
    CHECK(rate() == doctest::Approx(28.8e6).epsilon(0.01));
}

TEST_CASE("the cache of a prediction holds pages, and nothing of what moved no byte") {
    const StorageModel m = nothing();
    VirtualStorage storage(m, false);
    CHECK(read(storage, 1, 5, 0, 4096, 7) == 7);
    CHECK(read(storage, 1, -5, 10, 4096, 7) == 7);
    CHECK(storage.write(1, 5, 0, 7) == 7);
    CHECK(storage.reads == 0);
    constexpr int64_t kPiece = 128 << 10;
    const auto fetched = [&](FileId file, int64_t offset, int64_t bytes, int64_t size) {
        const uint64_t before = storage.bytes_read;
        read(storage, file, offset, bytes, size, 100);
        return static_cast<int64_t>(storage.bytes_read - before) / kPageBytes;
    };
    CHECK(fetched(1, 0, 10, 4096) == 1);
    CHECK(fetched(1, 4000, 96, 4096) == 0);
    CHECK(fetched(2, kPiece - 1, 1, 200'000) == 1);  // in the middle of a file: no more than asked for
    CHECK(fetched(2, 0, 200'000, 200'000) == 48);    // 49 pages
    CHECK(fetched(3, kPiece - 1, 2, 0) == 2);        // of unknown size
    storage.write(4, kPiece - 1, 1, 100);
    CHECK(fetched(4, kPiece - 4'097, 4'098, 3 * kPiece) == 2);  // before and after what was written
    CHECK(fetched(5, int64_t{1} << 62, 1, 0) == 0);
    CHECK(storage.reads == 7);
}

TEST_CASE_FIXTURE(PredictJob, "predict: stalls come and go with the storage") {
    training(20 * kMs, 10 * kMs, 50);
    // As recorded: each read takes as long, one after the other, and the step before it is done meanwhile.
    StorageModel same = nothing();
    same.read = {{1'000'000, 20 * kMs}, {2'000'000, 40 * kMs}};
    const Prediction slow = run(same);
    CHECK(slow.recorded_ns > 1'400 * kMs);
    // The loader has its recorded 10 ms between two reads, which nothing explains.
    CHECK(ms(slow.elapsed_ns) == doctest::Approx(ms(slow.recorded_ns)).epsilon(0.06));
    const Prediction fast = run(nothing());
    CHECK(ms(fast.elapsed_ns) == doctest::Approx(50 * 10.0).epsilon(0.05));
    CHECK(fast.accelerators);
    CHECK(fast.storage_bytes >= 40'000'000);
    CHECK(fast.broken.empty());
    const Prediction twice = run(nothing(), {.time_scale = 1.0, .cpu = 2.0, .gpu = 2.0});
    CHECK(ms(twice.elapsed_ns) == doctest::Approx(ms(fast.elapsed_ns) / 2).epsilon(0.1));
    // The result is an op log of the same ops.
    const LogReader result(dir / "run.oplog");
    CHECK(result.op_count() == reader->op_count());
}

TEST_CASE_FIXTURE(PredictJob,
                  "predict: a wait begins where it is issued, also with the run, and ends with what it waits for") {
    const TaskId loader = job.lone_task(), trainer = job.lone_task(), late = job.lone_task();
    const HandleId h = job.handle(job.file("/data/in"));
    const uint64_t read = job.add(loader, {.kind = OpKind::pread,
                                           .begin = 1'000,
                                           .duration = 3 * kMs,
                                           .result = 4'096,
                                           .handle = h,
                                           .fd = 3,
                                           .size = 4'096});
    const std::vector<Edge> edges{{loader, EdgeKind::message, 100, read}};
    job.add(trainer, {.kind = OpKind::wait, .begin = 1'000, .duration = 3 * kMs, .arg = 1, .edges = edges});
    job.add(late, {.kind = OpKind::wait, .begin = 1'000 + kMs, .duration = 2 * kMs, .arg = 1, .edges = edges});
    StorageModel storage = nothing();
    storage.read = {{4'096, 7 * kMs}};
    CHECK(run(storage).elapsed_ns == 7 * kMs);
    const LogReader result(dir / "run.oplog");
    const auto times = [&](TaskId task) {
        std::pair<int64_t, int64_t> found;
        result.for_each(task, [&](const Op& op, uint64_t) { found = {op.begin, op.duration}; });
        return found;
    };
    CHECK(times(loader) == std::pair{int64_t{1'000}, 7 * kMs});
    CHECK(times(trainer) == std::pair{int64_t{1'000}, 7 * kMs});
    CHECK(times(late) == std::pair{1'000 + kMs, 6 * kMs});
}

TEST_CASE_FIXTURE(PredictJob, "predict: computing threads share processors") {
    const ProcessId process = job.process();
    for (int i = 0; i < 4; ++i) {
        job.add(job.task(process), {.kind = OpKind::compute, .begin = 1'000, .duration = 100 * kMs, .flags = 3});
    }
    CHECK(ms(run(nothing(), {}, 0).elapsed_ns) == doctest::Approx(100));
    CHECK(ms(run(nothing(), {}, 2).elapsed_ns) == doctest::Approx(200).epsilon(0.02));
    const Prediction one = run(nothing(), {}, 1);
    CHECK(ms(one.elapsed_ns) == doctest::Approx(400).epsilon(0.02));
    CHECK(ms(one.computing_ns) == doctest::Approx(400));
    CHECK(ms(one.run_queue_ns) > 800);  // all but one wait nearly to the end
    CHECK(ms(run(nothing(), {.time_scale = 1.0, .cpu = 4.0, .gpu = 1.0}, 1).elapsed_ns) ==
          doctest::Approx(100).epsilon(0.02));
}

// What a replay measures in real time with the null engine, a prediction finds without storage.
TEST_CASE_FIXTURE(PredictJob, "predict agrees with a replay") {
    const ProcessId process = job.process();
    const TaskId main = job.task(process), child = job.task(job.process(process));
    const HandleId h = job.handle(job.file("/data/in"));
    job.add(main, {.kind = OpKind::wait, .begin = 1'000, .duration = 30 * kMs, .arg = 3});
    job.add(main, {.kind = OpKind::spawn, .begin = 31 * kMs, .duration = 100'000, .result = 1, .peer = child});
    uint64_t last = 0;
    for (int64_t i = 0; i < 20; ++i) {
        const int64_t from = 40 * kMs + i * 12 * kMs;
        job.add(child, {.kind = OpKind::pread,
                        .begin = from,
                        .duration = 4 * kMs,
                        .result = 100,
                        .handle = h,
                        .fd = 3,
                        .size = 100});
        last = job.add(child, {.kind = OpKind::compute, .begin = from + 4 * kMs, .duration = 7 * kMs});
    }
    const std::vector<Edge> edges{{child, EdgeKind::wake, 100, last}};
    job.add(main, {.kind = OpKind::wait, .begin = 40 * kMs, .duration = 240 * kMs, .arg = 1, .edges = edges});
    job.add(main, {.kind = OpKind::gpu_submit, .begin = 281 * kMs, .duration = 10'000, .size = 50 * kMs});
    job.add(main, {.kind = OpKind::gpu_wait, .begin = 282 * kMs, .duration = 49 * kMs});
    const Prediction predicted = run();
    ReplayOptions options = afap({});
    options.engine = EngineKind::null;
    options.pace = Pace::causal;
    const ReplayResult real = replay(*reader, options);
    CHECK(predicted.ops == real.ops);
    CHECK(predicted.recorded_ns == real.recorded_ns);
    // A replay can only be later; how much depends on who else uses this machine.
    CHECK(real.elapsed_ns >= predicted.elapsed_ns);
    CHECK(ms(real.elapsed_ns) < ms(predicted.elapsed_ns) * 1.5 + 100);
    CHECK(ms(predicted.elapsed_ns) == doctest::Approx(31 + 9 + 20 * 8 + 2 + 50).epsilon(0.03));
}

TEST_CASE_FIXTURE(PredictJob, "predict: files of /dev/shm are memory whatever the storage") {
    const auto write = [&](const char* path, Role role) {
        const TaskId task = job.lone_task();
        const FileId file = job.file(path, Origin::created, role);
        const HandleId h = job.handle(file, O_RDWR | O_CREAT);
        job.add(task, {.kind = OpKind::open,
                       .begin = 1'000,
                       .duration = 1'000,
                       .result = 3,
                       .handle = h,
                       .file = file,
                       .flags = O_RDWR | O_CREAT});
        job.add(task, {.kind = OpKind::pwrite,
                       .begin = 2'000,
                       .duration = kMs,
                       .result = 1'000'000,
                       .handle = h,
                       .fd = 3,
                       .size = 1'000'000});
        job.add(task, {.kind = OpKind::fsync, .begin = 2'000 + kMs, .duration = 1'000, .handle = h, .fd = 3});
    };
    StorageModel slow = nothing();
    slow.make_ns = slow.fsync_ns = 100 * kMs;
    slow.write_bytes_per_s = 1e6;
    SUBCASE("shared memory") {
        write("/dev/shm/torch_1", Role::ipc);
        const Prediction found = run(slow);
        CHECK(found.elapsed_ns < 2 * kMs);
        CHECK(found.bytes_written == 0);
    }
    SUBCASE("a checkpoint") {
        write("/data/torch_1", Role::checkpoint);
        CHECK(run(slow).elapsed_ns > 1'000 * kMs);
    }
}

TEST_CASE_FIXTURE(PredictJob, "predict: asynchronous requests take what the same calls take") {
    const FileId file = job.file("/data/in", Origin::existed, Role::dataset);
    const HandleId h = job.handle(file, O_RDWR);
    const TaskId task = job.lone_task();
    uint32_t number = 0;
    int64_t now = 1'000;
    const auto submit = [&](OpKind kind, int64_t code) {
        const int64_t offset = int64_t{++number} * 100'000'000;
        job.add(task, {.kind = kind,
                       .begin = now += 1'000,
                       .handle = h,
                       .fd = 3,
                       .offset = offset,
                       .size = 1'000'000,
                       .arg = code,
                       .request = number});
    };
    StorageModel slow = nothing();
    SUBCASE("reads, also into registered buffers") {
        submit(OpKind::uring_submit, IORING_OP_READ);
        submit(OpKind::uring_submit, IORING_OP_READV);
        submit(OpKind::uring_submit, IORING_OP_READ_FIXED);
        submit(OpKind::aio_submit, IOCB_CMD_PREAD);
        submit(OpKind::aio_submit, IOCB_CMD_PREADV);
        slow.read_bytes_per_s = 1e8;  // 10 ms each
        const Prediction found = run(slow);
        CHECK(found.bytes_read == 5'000'000);
        CHECK(found.bytes_written == 0);
        CHECK(found.elapsed_ns > 50 * kMs);
    }
    SUBCASE("writes, and the syncs that wait for them") {
        submit(OpKind::uring_submit, IORING_OP_WRITE);
        submit(OpKind::uring_submit, IORING_OP_WRITEV);
        submit(OpKind::uring_submit, IORING_OP_WRITE_FIXED);
        submit(OpKind::aio_submit, IOCB_CMD_PWRITE);
        submit(OpKind::aio_submit, IOCB_CMD_PWRITEV);
        slow.write_bytes_per_s = 1e8;
        SUBCASE("not synced") { CHECK(run(slow).elapsed_ns < 10 * kMs); }
        SUBCASE("by io_uring") {
            submit(OpKind::uring_submit, IORING_OP_FSYNC);
            CHECK(run(slow).elapsed_ns >= 50 * kMs);
        }
        SUBCASE("by libaio") {
            submit(OpKind::aio_submit, IOCB_CMD_FDSYNC);
            CHECK(run(slow).elapsed_ns >= 50 * kMs);
        }
        const Prediction found = run(slow);
        CHECK(found.bytes_written == 5'000'000);
        CHECK(found.bytes_read == 0);
    }
    SUBCASE("neither") {
        submit(OpKind::uring_submit, IORING_OP_NOP);
        submit(OpKind::uring_submit, IORING_OP_FADVISE);
        submit(OpKind::aio_submit, IOCB_CMD_NOOP);
        slow.read_bytes_per_s = slow.write_bytes_per_s = 1e3;
        const Prediction found = run(slow);
        CHECK(found.bytes_read + found.bytes_written == 0);
        CHECK(found.elapsed_ns < 10 * kMs);
    }
}

TEST_CASE_FIXTURE(PredictJob, "predict: logs without ops, without tasks, and with edges against time") {
    SUBCASE("nothing") { CHECK(run().elapsed_ns == 0); }
    SUBCASE("no ops") {
        job.lone_task();
        CHECK(run().ops == 0);
    }
    SUBCASE("edges in a circle") {
        const TaskId a = job.lone_task(), b = job.lone_task();
        std::vector<Edge> edges{{b, EdgeKind::message, 100, 0}};
        job.add(a, {.kind = OpKind::wait, .begin = 1'000, .duration = kMs, .arg = 1, .edges = edges});
        edges[0].task = a;
        job.add(b, {.kind = OpKind::wait, .begin = 1'000, .duration = kMs, .arg = 1, .edges = edges});
        const Prediction result = run();
        CHECK(result.ops == 2);
        CHECK(result.counters.size() + result.broken.size() > 0);
    }
}

TEST_CASE("a storage model: as JSON and back, and what is wrong with one") {
    const TempDir dir;
    StorageModel m = nothing();
    m.read = {{4096, 80'000}, {1 << 20, 900'000}};
    m.parallelism = 8;
    m.open_ns = 1'234;
    m.host = "here";
    m.cold = false;
    m.inline_reads = true;
    m.reads_per_s = 500;
    m.read_burst_ns = 50'000'000;
    m.read_step_ns = 25'000'000;
    m.read_ahead_bytes = 4 << 20;
    m.request_bytes = 1 << 20;
    m.read_depth = {{4096, 1, 90'000, 95'000, 11'000, false},
                    {4096, 4, 91'000, 96'000, 44'000, true},
                    {131'072, 1, 99'000, 99'000, 10'100.5, false}};
    m.write_depth = {{4096, 16, 70'000, 70'000, 30'000, false}};
    m.direct_write = {{4096, 60'000}, {1 << 20, 700'000}};
    m.sync_depth = {{4096, 1, 3'000'000, 3'100'000, 300, false}};
    m.mixed_depth = {{4096, 64, 80'000, 80'000, 60'000, false}};
    m.shared.read_bytes_per_s = 5e11;
    m.shared.names_per_s = 1e5;
    const std::string text = to_json(m);
    write_file(dir / "model.json", text);
    const StorageModel back = read_storage_model(dir / "model.json");
    CHECK(to_json(back) == text);
    CHECK(back.read_depth == m.read_depth);
    CHECK(back.inline_reads);
    CHECK(back.mixed_depth == m.mixed_depth);
    CHECK(back.direct_write_ns(4096) == 60'000);
    CHECK(back.shared.names_per_s == 1e5);
    CHECK(back.shared.given());
    // Models of before do not say of writes that a limit had them stand still.
    StorageModel still = m;
    still.write_depth = {{4096, 16, 70'000, 70'000, 30'000, false}, {4096, 64, 99'000'000, 53'000'000, 640, false}};
    write_file(dir / "still.json", to_json(still));
    const std::vector<DepthRow> rows = read_storage_model(dir / "still.json").write_depth;
    CHECK_FALSE(rows[0].limited);
    CHECK(rows[1].limited);
    // Models of before have no limit of requests, and Linux's own sizes.
    std::string old = text;
    for (const char* key : {"reads_per_s", "read_burst_ns", "read_step_ns", "read_ahead_bytes", "request_bytes"}) {
        const size_t at = old.find("  \"" + std::string(key));
        REQUIRE(at != std::string::npos);
        old.erase(at, old.find('\n', at) + 1 - at);
    }
    for (const char* key : {"read_depth", "write_depth", "sync_depth", "mixed_depth"}) {
        const size_t at = old.find("  \"" + std::string(key));
        REQUIRE(at != std::string::npos);
        old.erase(at, old.find("\n  ]", at) + 6 - at);
    }
    old.replace(old.find("\"storage_model\": 2"), 18, "\"storage_model\": 1");
    write_file(dir / "old.json", old);
    const StorageModel older = read_storage_model(dir / "old.json");
    CHECK(older.reads_per_s == 0);
    CHECK(older.read_burst_ns == 0);
    CHECK(older.read_step_ns == 0);
    CHECK(older.read_ahead_bytes == StorageModel::kReadAhead);
    CHECK(older.request_bytes == StorageModel::kReadAhead);
    CHECK(older.read_depth.empty());
    const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
        std::string changed = text;
        const size_t at = changed.find(from);
        REQUIRE(at != std::string::npos);
        changed.replace(at, from.size(), to);
        write_file(dir / "bad.json", changed);
        CHECK_THROWS_WITH_AS(read_storage_model(dir / "bad.json"), doctest::Contains(why), Error);
    };
    refused("\"open_ns\"", "\"opne_ns\"", "/open_ns: the field is missing");
    refused("\"host\"", "\"extra\": 1, \"host\"", "/extra: the field is unknown");
    refused("\"names_per_s\"", "\"names_per\"", "/shared/names_per: the field is unknown; did you mean names_per_s?");
    refused("\"names_per_s\": 1", "\"names_per_s\": -1", "/shared/names_per_s: the field is below 0");
    refused("\"parallelism\": 8", "\"parallelism\": 0", "/parallelism: the field is not above 0");
    refused("\"parallelism\": 8", "\"parallelism\": \"8\"", "/parallelism: the field is not a number");
    refused("\"ns\": 900000", "\"ns\": -1", "/read/1/ns: the field is below 0");
    refused("\"bytes\": 1048576", "\"bytes\": 4096", "/read/1/bytes: the field is not larger");
    refused("\"reads_per_s\": 500", "\"reads_per_s\": -1", "/reads_per_s: the field is below 0");
    refused("\"request_bytes\": 1048576", "\"request_bytes\": 0", "/request_bytes: the field is not above 0");
    refused("\"depth\": 4", "\"depth\": 1", "/read_depth/1/depth: the field is not larger");
    refused("\"per_s\": 11000.0", "\"per_s\": 0", "/read_depth/0/per_s: the field is not above 0");
    refused("\"limited\": true", "\"limited\": 1", "/read_depth/1/limited: the field is not true or false");
    refused("\"depth\": 16", "\"deep\": 16", "/write_depth/0/depth: the field is missing");
    refused("\"storage_model\": 2", "\"storage_model\": 3", "has an unsupported version");
    refused("\"cold\": false", "\"cold\": 0", "/cold");
    write_file(dir / "bad.json", "[]");
    CHECK_THROWS_WITH_AS(read_storage_model(dir / "bad.json"), doctest::Contains("is not a storage model"), Error);
    CHECK_THROWS_AS(read_storage_model(dir / "none.json"), Error);
}

TEST_CASE("measuring a storage that others use says so, and so do predictions") {
    const TempDir dir;
    if (!OtherIo::now(dir.path())) {
        REPRISE_SKIP("nobody counts what the device of the temporary directory moves");
    }
    constexpr size_t kPiece = 1 << 20, kPieces = 16;
    write_file(dir / "theirs", std::string(kPieces * kPiece, 'x'));
    const pid_t other = fork();
    REQUIRE(other >= 0);
    if (other == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int fd = ::open((dir / "theirs").c_str(), O_RDONLY | O_DIRECT);
        void* buffer = std::aligned_alloc(4096, kPiece);
        for (size_t i = 0; fd >= 0 && buffer != nullptr; ++i) {
            if (::pread(fd, buffer, kPiece, static_cast<off_t>(i % kPieces * kPiece)) < 0) {
                break;
            }
        }
        _exit(1);
    }
    StorageOptions quick;
    quick.file_bytes = 8 << 20;
    quick.each_ns = 20'000'000;
    StorageModel m = measure_storage(dir.path(), quick);
    int status = 0;
    const bool refused = ::waitpid(other, &status, WNOHANG) == other;
    ::kill(other, SIGKILL);
    ::waitpid(other, &status, 0);
    if (refused) {
        REPRISE_SKIP("the file system takes no O_DIRECT");
    }
    CHECK(m.disturbed > 0.3);
    write_file(dir / "model.json", to_json(m));
    CHECK(read_storage_model(dir / "model.json").disturbed == doctest::Approx(m.disturbed));
    m.cold = true;
    Prediction p;
    p.doubts.kept_ops = 1;
    CHECK(poor_reason(p, m).find("others used the storage during ") != std::string::npos);
    m.disturbed = 0.2;
    CHECK(poor_reason(p, m).empty());
    CHECK(fair_reason(p, m).find("others used the storage during 20") != std::string::npos);
    m.disturbed = 0.1;
    m.read_depth = m.write_depth = {};  // which may be uneven, too
    CHECK(fair_reason(p, m).empty());
}

TEST_CASE("trust: a model that serves fewer requests where more are in flight was measured on a busy machine") {
    StorageModel m;
    m.cold = true;
    Prediction p;
    p.doubts.kept_ops = 1;
    m.read_depth = {{.bytes = 4096, .depth = 1, .per_s = 2'339},
                    {.bytes = 4096, .depth = 16, .per_s = 9'486},
                    {.bytes = 4096, .depth = 64, .per_s = 4'900},
                    {.bytes = 131'072, .depth = 1, .per_s = 204}};
    CHECK(fair_reason(p, m).empty());
    m.read_depth[2].per_s = 3'954;
    CHECK(
        fair_reason(p, m) ==
        "the model has 9,486 reads of 4.00 KiB a second with 16 in flight, and 3,954 with 64: the machine was busy as "
        "it was measured; calibrate again");
    p.calls = CallTimes::recorded;
    CHECK(fair_reason(p, m).empty());
    p.calls = CallTimes::model;
    std::swap(m.read_depth, m.write_depth);  // a cache that is full
    CHECK(fair_reason(p, m).empty());
}

TEST_CASE("trust: files in memory that a model of one storage takes for its own") {
    StorageModel m;
    m.cold = true;
    Prediction p;
    p.doubts.kept_ops = 1;
    FileSystemUse disk, memory;
    disk.type = "ext4";
    disk.path = "/data/in";
    disk.calls = memory.calls = 100;
    disk.bytes = memory.bytes = 64 << 20;
    memory.type = "tmpfs";
    memory.path = "/tmp/out";
    memory.device = 1;
    p.doubts.file_systems = {disk, memory};
    p.shares_otherwise = true;
    CHECK(poor_reason(p, m) ==
          "64.0 MiB of the 128 MiB read and written were of files in memory (tmpfs), such as /tmp/out: here the "
          "storage has them; leave them out with --not");
    p.shares_otherwise = false;
    CHECK(poor_reason(p, m).empty());
    CHECK(fair_reason(p, m).find("the recorded files lay on 2 file systems") != std::string::npos);
    p.calls = CallTimes::recorded;
    CHECK(fair_reason(p, m).empty());
}

TEST_CASE("measuring a storage leaves nothing behind, and says what it cannot do") {
    const TempDir dir;
    StorageOptions quick;
    quick.file_bytes = 8 << 20;
    quick.each_ns = 5'000'000;
    const StorageModel m = measure_storage(dir.path(), quick);
    CHECK(fs::is_empty(dir.path()));
    REQUIRE(m.read.size() == 6);
    for (size_t i = 1; i < m.read.size(); ++i) {
        CHECK(m.read[i].bytes == m.read[i - 1].bytes * 4);
        CHECK(m.read[i].ns >= m.read[i - 1].ns);
    }
    CHECK(m.read.front().bytes == 4'096);
    for (const int64_t ns : {m.call_ns, m.stat_ns, m.make_ns, m.remove_ns, m.fsync_ns}) {
        CHECK(ns > 0);
        CHECK(ns < 10'000'000'000);
    }
    CHECK(m.open_ns >= 0);  // less a call
    for (const double rate : {m.read_bytes_per_s, m.write_bytes_per_s, m.cached_bytes_per_s}) {
        CHECK(rate > 1e3);
        CHECK(rate < 1e15);
    }
    CHECK(m.directory == fs::absolute(dir.path()).string());
    CHECK(m.read_bytes_per_s > 0);
    CHECK(m.reads_per_s > 1);
    CHECK(m.read_burst_ns >= 0);
    CHECK(m.request_bytes >= 4'096);
    CHECK(m.parallelism >= 1);
    for (const auto* rows : {&m.read_depth, &m.write_depth, &m.mixed_depth, &m.sync_depth}) {
        for (const DepthRow& row : *rows) {
            CHECK(row.per_s > 0);
            CHECK(row.ns > 0);
        }
    }
    CHECK(m.sync_depth.size() == 3);
    write_file(dir / "model.json", to_json(m));
    CHECK(read_storage_model(dir / "model.json").read.size() == 6);
    CHECK_THROWS_WITH_AS(measure_storage(dir / "none", quick), doctest::Contains("no folder can be made"), Error);
    quick.file_bytes = int64_t{1} << 60;
    CHECK_THROWS_WITH_AS(measure_storage(dir.path(), quick), doctest::Contains("MiB free"), Error);
    const std::atomic<bool> stop{true};
    quick.file_bytes = 8 << 20;
    quick.stop = &stop;
    CHECK_THROWS_WITH_AS(measure_storage(dir.path(), quick), doctest::Contains("interrupted"), Error);
    fs::remove(dir / "model.json");
    CHECK(fs::is_empty(dir.path()));
}

TEST_CASE_FIXTURE(PredictJob, "looking a name up takes the model's time, whichever call does it") {
    const TaskId t = job.lone_task();
    const FileId file = job.file("/data/in");
    const OpKind lookups[] = {OpKind::stat,   OpKind::statx,    OpKind::access,   OpKind::readlink,
                              OpKind::statfs, OpKind::getxattr, OpKind::listxattr};
    for (const OpKind kind : lookups) {
        job.add(t, {.kind = kind, .begin = job.now(), .duration = 20 * kMs, .file = file});
    }
    StorageModel model = nothing();
    model.stat_ns = 3 * kMs;
    const Prediction result = run(model);
    CHECK(result.ops == std::size(lookups));
    LogReader(dir / "run.oplog").for_each(1, [&](const Op& op, uint64_t) {
        CAPTURE(info(op.kind).name);
        CHECK(op.duration == 3 * kMs);
    });
}

TEST_CASE("predict: the critical path goes to the task that held the end up") {
    PredictJob job;
    job.training(5 * kMs, 2 * kMs, 20);
    StorageModel model = nothing();
    model.cold = true;
    SUBCASE("storage") {
        model.read = {{4096, 20 * kMs}};
        const Prediction slow = job.run(model);
        CHECK(ms(slow.path.of(PathPart::device)) == doctest::Approx(20 * 20).epsilon(0.05));
        CHECK(ms(slow.path.of(PathPart::accelerator)) < 10);
        CHECK(slow.path.sum() == slow.elapsed_ns);
        REQUIRE(slow.interval);
        CHECK(slow.interval->low_ns < slow.elapsed_ns);
        CHECK(slow.interval->high_ns > slow.elapsed_ns);
    }
    SUBCASE("the accelerator") {
        const Prediction fast = job.run(model);
        CHECK(ms(fast.path.of(PathPart::accelerator)) == doctest::Approx(20 * 2).epsilon(0.05));
        CHECK(fast.path.of(PathPart::device) == 0);
        CHECK(fast.path.sum() == fast.elapsed_ns);
        const LogReader log(fast.output);
        CHECK(read_fact(log.header(), fact::elapsed_low) == fast.interval->low_ns);
        CHECK(read_fact(log.header(), fact::elapsed_high) == fast.interval->high_ns);
    }
    SUBCASE("a model of memory predicts no storage") {
        model.cold = false;
        CHECK(!job.run(model).interval);
    }
}

TEST_CASE("predict: a thread that no op started begins with what its parent had done, not as late as recorded") {
    const auto elapsed = [](EdgeKind kind) {
        PredictJob job;
        job.job.writer().header().source = "capture";
        const ProcessId process = job.job.process();
        const TaskId main = job.job.task(process), worker = job.job.task(process);
        const HandleId in = job.job.handle(job.job.file("/data/in"));
        uint64_t read = 0;
        for (int64_t i = 0; i < 10; ++i) {
            read = job.job.add(main, {.kind = OpKind::pread,
                                      .begin = 1'000 + i * 10 * kMs,
                                      .duration = 10 * kMs,
                                      .result = 4'096,
                                      .handle = in,
                                      .fd = 3,
                                      .offset = i * 4'096,
                                      .size = 4'096});
        }
        const std::vector<Edge> edges{{main, kind, 100, read - 1}};
        job.job.add(
            worker,
            {.kind = OpKind::compute, .begin = 95 * kMs, .duration = 100'000, .flags = kComputeWorks, .edges = edges});
        StorageModel model = nothing();
        model.cold = true;
        return ms(job.run(model).elapsed_ns);
    };
    CHECK(elapsed(EdgeKind::lifecycle) < 5);
    CHECK(elapsed(EdgeKind::wake) >= 94);  // it may have slept since the run began
}

TEST_CASE("predict: writes to mapped files that the recording may lack are named as not modelled") {
    PredictJob job;
    job.training(5 * kMs, 2 * kMs, 2);
    job.job.writer().count(Count::mapped_writes_unseen, 3);
    const Prediction predicted = job.run();
    REQUIRE(predicted.not_modelled.size() == 1);
    CHECK(predicted.not_modelled[0] ==
          std::pair<std::string, uint64_t>{"mapping on tmpfs whose writes left no fault", 3});
}
