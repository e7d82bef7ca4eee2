// SPDX-License-Identifier: MIT
// What the ranks of a run counted, packed and merged: the same as what one counter of all ops says.
#include "analyze/run_sums.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint32_t kProcesses = 6;

struct Made {
    TaskId task;
    Op op, here;
    size_t epoch;
};

/// Six processes that read, write, compute, submit steps to an accelerator in epochs, and make asynchronous requests.
class Job {
public:
    explicit Job(bool requests, uint32_t processes = kProcesses) {
        const FileId file = static_cast<FileId>(tables_.files.size());
        FileRow row;
        row.path = tables_.strings.intern("/data/file");
        row.type = FileType::regular;
        tables_.files.push_back(row);
        const StringId epoch = tables_.strings.intern("epoch"), step = tables_.strings.intern("step");
        std::mt19937 random(3);
        for (uint32_t i = 0; i < processes; ++i) {
            const auto process = static_cast<ProcessId>(tables_.processes.size());
            tables_.processes.push_back({.pid = static_cast<int32_t>(100 + i)});
            const auto task = static_cast<TaskId>(tables_.tasks.size());
            tables_.tasks.push_back({.process = process, .tid = static_cast<int32_t>(100 + i)});
            const auto handle = static_cast<HandleId>(tables_.handles.size());
            tables_.handles.push_back({.file = file});
            int64_t now = 1'000;
            const auto add = [&](Op op, size_t in_epoch) {
                op.begin = now;
                Op here = op;
                here.duration += static_cast<int64_t>(random() % 1'000);
                now += op.duration + 10;
                ops_.push_back({task, op, here, in_epoch});
            };
            for (size_t n = 1; n <= 3; ++n) {
                add({.kind = OpKind::marker, .flags = 1, .arg = static_cast<int64_t>(n), .text = epoch}, n);
                for (int k = 0; k < 50; ++k) {
                    const auto took = static_cast<int64_t>(random() % 100'000);
                    const auto size = static_cast<int64_t>(1 + random() % 8'192);
                    switch (random() % 4) {
                        case 0: add({.kind = OpKind::compute, .duration = took}, n); break;
                        case 1: add({.kind = OpKind::wait, .duration = took, .arg = kWaitPoll}, n); break;
                        case 2:
                            add({.kind = OpKind::pwrite,
                                 .duration = took,
                                 .result = size,
                                 .handle = handle,
                                 .fd = 3,
                                 .size = size},
                                n);
                            break;
                        default:
                            add({.kind = OpKind::pread,
                                 .duration = took,
                                 .result = size,
                                 .handle = handle,
                                 .fd = 3,
                                 .size = size},
                                n);
                    }
                    if (k % 10 == 9) {
                        add({.kind = OpKind::gpu_submit, .duration = 5, .size = took / 2, .arg = i % 2}, n);
                        add({.kind = OpKind::marker, .flags = 0, .arg = k, .text = step}, n);
                    }
                }
                if (requests) {
                    const uint32_t number = static_cast<uint32_t>(1 + i * 10 + n);
                    add({.kind = OpKind::aio_submit,
                         .duration = 20,
                         .result = 1,
                         .handle = handle,
                         .fd = 3,
                         .size = 4'096,
                         .request = number},
                        n);
                    add({.kind = OpKind::aio_complete, .duration = 30, .result = 4'096, .request = number}, n);
                }
                // The last epoch of some is not ended.
                if (n != 3 || i % 2 == 0) {
                    add({.kind = OpKind::marker, .flags = 2, .arg = static_cast<int64_t>(n), .text = epoch}, n);
                }
            }
        }
    }

    const Tables& tables() const { return tables_; }
    RunSums counted(const std::function<bool(ProcessId)>& mine) const {
        FigureCounter recorded(tables_), here(tables_);
        AcceleratorObserver recorded_use(tables_), here_use(tables_);
        RunSums out;
        for (const Made& made : ops_) {
            if (!mine(tables_.tasks[made.task].process)) {
                continue;
            }
            recorded.add(made.task, made.op);
            recorded_use.add(made.task, made.op);
            const uint64_t before = here.asked_so_far();
            here.add(made.task, made.here);
            here_use.add(made.task, made.here);
            out.asked.resize(std::max(out.asked.size(), made.epoch + 1));
            out.asked[made.epoch] += here.asked_so_far() - before;
        }
        out.recorded = sums_of(recorded, recorded_use);
        out.here = sums_of(here, here_use);
        return out;
    }
    RunSums part(uint32_t number, uint32_t of) const {
        return counted([=](ProcessId process) { return process % of == number; });
    }

private:
    Tables tables_;
    std::vector<Made> ops_;
};

Bytes packed(const RunSums& sums) {
    Bytes out;
    pack(sums, out);
    return out;
}

RunSums through_bytes(const RunSums& sums, const Tables& tables) {
    const Bytes bytes = packed(sums);
    ByteReader in(bytes);
    RunSums out = unpack_sums(in, tables);
    CHECK(in.left() == 0);
    return out;
}

RunSums merged(RunSums a, const RunSums& b) {
    merge(a, b);
    return a;
}

}  // namespace

TEST_CASE("run sums: those of the parts are those of the whole, whatever the parts") {
    const Job job(false);
    const RunSums whole = job.counted([](ProcessId) { return true; });
    REQUIRE(whole.here.figures.bytes_read > 0);
    REQUIRE(whole.here.use.devices.size() == kProcesses);
    REQUIRE(whole.here.use.devices[0].epochs.size() == 3);
    REQUIRE(whole.asked.size() == 4);
    for (const uint32_t parts : {2U, 3U, 6U, 9U}) {  // of nine ranks some have nothing
        CAPTURE(parts);
        RunSums sum = through_bytes(job.part(0, parts), job.tables());
        for (uint32_t number = 1; number < parts; ++number) {
            merge(sum, through_bytes(job.part(number, parts), job.tables()));
        }
        CHECK(packed(sum) == packed(whole));
        CHECK(sum.here.figures.reads.count == whole.here.figures.reads.count);
        CHECK(sum.here.figures.writes.p99 == whole.here.figures.writes.p99);
    }
}

TEST_CASE("run sums: the order of merging does not matter, and a rank with nothing adds nothing") {
    const Job job(false);
    const RunSums a = job.part(0, 3), b = job.part(1, 3), c = job.part(2, 3);
    const Bytes left = packed(merged(merged(a, b), c));
    CHECK(packed(merged(a, merged(b, c))) == left);
    CHECK(packed(merged(merged(c, a), b)) == left);
    const RunSums nothing = job.counted([](ProcessId) { return false; });
    CHECK(packed(merged(nothing, a)) == packed(a));
    CHECK(packed(merged(a, nothing)) == packed(a));
    CHECK(packed(merged(nothing, nothing)) == packed(nothing));
}

TEST_CASE("run sums: asynchronous requests add up; how many were in flight is each rank's own") {
    const Job job(true);
    const RunSums whole = job.counted([](ProcessId) { return true; });
    const InFlight& all = whole.here.figures.requests;
    REQUIRE(all.all.requests == 18);
    const RunSums sum = merged(merged(job.part(0, 3), job.part(1, 3)), job.part(2, 3));
    const InFlight& requests = sum.here.figures.requests;
    CHECK(requests.all.requests == all.all.requests);
    CHECK(requests.all.bytes_read + requests.all.bytes_written == all.all.bytes_read + all.all.bytes_written);
    CHECK(requests.all.latency.count() == all.all.latency.count());
    CHECK(requests.all.latency.max() == all.all.latency.max());
    CHECK(requests.rings.size() == all.rings.size());
    CHECK(requests.begin == all.begin);
    CHECK(requests.end == all.end);
    REQUIRE(requests.over_time.size() == InFlight::kParts);
    double sum_of_parts = 0, sum_of_whole = 0;
    for (size_t i = 0; i < InFlight::kParts; ++i) {
        sum_of_parts += requests.over_time[i];
        sum_of_whole += all.over_time[i];
    }
    CHECK(sum_of_parts == doctest::Approx(sum_of_whole).epsilon(1e-6));
}

TEST_CASE("run sums: bytes that are cut or damaged are refused, or other sums") {
    const Job job(true);
    const Bytes bytes = packed(job.part(0, 1));
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 60) {
        ByteReader cut(ByteView(bytes).first(size));
        CHECK_THROWS_AS(unpack_sums(cut, job.tables()), Corrupt);
    }
    // Of another log, which has fewer processes.
    const Job few(true, 2);
    ByteReader in(bytes);
    CHECK_THROWS_AS(unpack_sums(in, few.tables()), Corrupt);
    std::mt19937 random(5);
    size_t refused = 0;
    for (int i = 0; i < 3'000; ++i) {
        Bytes damaged = bytes;
        damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1 + random() % 255);
        ByteReader reader(damaged);
        try {
            packed(unpack_sums(reader, job.tables()));
        } catch (const Corrupt&) {
            ++refused;
        }
    }
    CHECK(refused > 100);
}
