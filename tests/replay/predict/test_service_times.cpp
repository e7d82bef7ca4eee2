// SPDX-License-Identifier: MIT
// Service times drawn from another recording: by kind, size, how often the same was read, and what is in flight.
#include "replay/predict/service_times.h"

#include <doctest/doctest.h>
#include <linux/io_uring.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kSize = 1 << 20;

/// A read of the file's first bytes.
Op reading(HandleId handle, int64_t begin, int64_t took, int64_t size = kSize, OpKind kind = OpKind::pread) {
    return {.kind = kind, .begin = begin, .duration = took, .result = size, .handle = handle, .fd = 3, .size = size};
}

struct Logs {
    TempDir dir;

    LogReader made(std::string_view name, const std::function<void(JobBuilder&)>& add) const {
        JobBuilder job(dir / name);
        add(job);
        return job.finish();
    }
    Prediction drawn(const LogReader& log, const LogReader& other) const {
        const ServiceTimes times(other);
        PredictOptions how;
        how.calls = CallTimes::drawn;
        how.service = &times;
        how.filter = OpFilter::all();
        return predict(log, how);
    }
    /// Of a job of one read of that size; its own log says that it takes 77 ms.
    int64_t one_read(const LogReader& other, int64_t size, OpKind kind = OpKind::pread) const {
        const LogReader log = made("one.oplog", [&](JobBuilder& job) {
            job.add(job.lone_task(), reading(job.handle(job.file("/d/x")), 1, 77 * kMs, size, kind));
        });
        const Prediction found = drawn(log, other);
        CHECK(found.bytes_read == static_cast<uint64_t>(size));
        CHECK(found.not_in_service.empty());
        CHECK_FALSE(found.interval.has_value());
        return found.elapsed_ns;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Logs, "service times: by size; beyond 64 KiB by byte") {
    const LogReader other = made("other.oplog", [](JobBuilder& job) {
        const TaskId task = job.lone_task();
        job.add(task, reading(job.handle(job.file("/d/small")), 1, 2 * kMs, 4096));
        job.add(task, reading(job.handle(job.file("/d/large")), 10 * kMs, 8 * kMs));
    });
    CHECK(one_read(other, 4096) == 2 * kMs);
    CHECK(one_read(other, 100) == 2 * kMs);
    CHECK(one_read(other, kSize) == 8 * kMs);
    CHECK(one_read(other, kSize * 3 / 2) == 12 * kMs);
    CHECK(one_read(other, 16 * kSize) == 128 * kMs);
    // Any call that reads is a read.
    CHECK(one_read(other, kSize, OpKind::read) == 8 * kMs);
}

TEST_CASE_FIXTURE(Logs, "service times: the first, second, third and later reads of the same place") {
    const auto passes = [](JobBuilder& job, const std::vector<int64_t>& took) {
        const TaskId task = job.lone_task();
        const FileId file = job.file("/d/x");
        int64_t now = 1;
        for (const int64_t ms : took) {
            job.add(task, reading(job.handle(file), now, ms * kMs));  // the file, not the open instance
            now += ms * kMs;
        }
    };
    const LogReader other = made("other.oplog", [&](JobBuilder& job) { passes(job, {40, 20, 10, 5, 5, 5}); });
    CHECK(drawn(made("3.oplog", [&](JobBuilder& job) { passes(job, {1, 1, 1}); }), other).elapsed_ns == 70 * kMs);
    CHECK(drawn(made("8.oplog",
                     [&](JobBuilder& job) {
                         passes(job, {1, 1, 1, 1, 1, 1, 1, 1});
                     }),
                other)
              .elapsed_ns == 95 * kMs);
}

TEST_CASE_FIXTURE(Logs, "service times: by what is in flight") {
    const auto beside = [](JobBuilder& job, int tasks, int64_t took) {
        for (int i = 0; i < tasks; ++i) {
            job.add(job.lone_task(), reading(job.handle(job.file("/d/" + std::to_string(i))), 1, took));
        }
    };
    const LogReader other = made("other.oplog", [&](JobBuilder& job) {
        const TaskId task = job.lone_task();
        job.add(task, reading(job.handle(job.file("/d/alone")), 1, 3 * kMs));
        int64_t took = 20 * kMs;
        for (int i = 0; i < 8; ++i) {
            job.add(job.lone_task(), reading(job.handle(job.file("/d/" + std::to_string(i))), 100 * kMs + i, took));
            took = i == 0 ? 30 * kMs : took;
        }
    });
    // Each begins beside those before it: of the first, one alone took 3 ms and one 20.
    const LogReader alone = made("alone.oplog", [&](JobBuilder& job) { beside(job, 1, kMs); });
    const int64_t first = drawn(alone, other).elapsed_ns;
    CHECK((first == 3 * kMs || first == 20 * kMs));
    const LogReader eight = made("eight.oplog", [&](JobBuilder& job) { beside(job, 8, kMs); });
    CHECK(drawn(eight, other).elapsed_ns == 30 * kMs);
}

TEST_CASE_FIXTURE(Logs, "service times: calls that the other recording lacks keep their own, and are counted") {
    const LogReader other = made("other.oplog", [](JobBuilder& job) {
        const TaskId task = job.lone_task();
        job.add(task, reading(job.handle(job.file("/d/x")), 1, 2 * kMs));
        // Memory, pipes and failed calls are not storage.
        job.add(task, reading(job.handle(job.file("/dev/shm/x", Origin::existed, Role::ipc)), 10 * kMs, 500 * kMs));
        job.add(task, reading(job.handle(0, O_RDONLY, HandleKind::other), 600 * kMs, 500 * kMs));
        job.add(task, {.kind = OpKind::pread,
                       .begin = 1200 * kMs,
                       .duration = 500 * kMs,
                       .result = -5,
                       .handle = job.handle(job.file("/d/y")),
                       .fd = 3,
                       .size = kSize});
    });
    const LogReader log = made("job.oplog", [](JobBuilder& job) {
        const TaskId task = job.lone_task();
        const HandleId handle = job.handle(job.file("/d/x"), O_RDWR);
        for (int i = 0; i < 20; ++i) {
            Op op = reading(handle, 1 + i, 1);
            op.offset = i * kSize;
            job.add(task, op);
        }
        job.add(task, {.kind = OpKind::fsync, .begin = 50, .duration = 7 * kMs, .handle = handle, .fd = 3});
    });
    const Prediction found = drawn(log, other);
    CHECK(found.elapsed_ns == doctest::Approx(47.0 * kMs).epsilon(0.001));
    REQUIRE(found.not_in_service.size() == 1);
    CHECK(found.not_in_service[0].first == "fsync");
    CHECK(found.not_in_service[0].second == 1);
    CHECK(found.bytes_read == 20 * kSize);
}

TEST_CASE_FIXTURE(Logs, "service times: requests of a ring") {
    const auto ring = [](JobBuilder& job, int64_t took) {
        const TaskId task = job.lone_task();
        const HandleId handle = job.handle(job.file("/d/x"), O_RDONLY), of = job.handle(0, O_RDWR, HandleKind::other);
        job.add(task, {.kind = OpKind::uring_submit,
                       .begin = 1,
                       .duration = 1,
                       .result = 1,
                       .handle = handle,
                       .fd = 3,
                       .size = kSize,
                       .arg = IORING_OP_READ,
                       .request = 1});
        job.add(task, {.kind = OpKind::uring_enter,
                       .begin = 2,
                       .duration = took,
                       .result = 1,
                       .handle = of,
                       .fd = 4,
                       .size = 1,
                       .arg = 1});
        job.add(task,
                {.kind = OpKind::uring_complete, .begin = 2 + took, .duration = 1, .result = kSize, .request = 1});
    };
    const LogReader other = made("other.oplog", [&](JobBuilder& job) { ring(job, 30 * kMs); });
    const LogReader log = made("job.oplog", [&](JobBuilder& job) { ring(job, 2 * kMs); });
    const Prediction found = drawn(log, other);
    CHECK(found.not_in_service.empty());
    CHECK(static_cast<double>(found.elapsed_ns) == doctest::Approx(30.0 * kMs).epsilon(0.01));
}

TEST_CASE_FIXTURE(Logs, "service times: draws repeat, and are of many calls") {
    const LogReader other = made("other.oplog", [](JobBuilder& job) {
        const TaskId task = job.lone_task();
        for (int i = 0; i < 10'000; ++i) {  // more than are kept
            job.add(task,
                    reading(job.handle(job.file("/d/" + std::to_string(i))), 1 + i * 10 * kMs, (1 + i % 9) * kMs));
        }
    });
    const LogReader log = made("job.oplog", [](JobBuilder& job) {
        const TaskId task = job.lone_task();
        for (int i = 0; i < 4'000; ++i) {
            job.add(task, reading(job.handle(job.file("/d/" + std::to_string(i))), 1 + i, 1));
        }
    });
    const Prediction found = drawn(log, other);
    CHECK(static_cast<double>(found.elapsed_ns) == doctest::Approx(4'000 * 5.0 * kMs).epsilon(0.05));
    CHECK(drawn(log, other).elapsed_ns == found.elapsed_ns);
}

TEST_CASE_FIXTURE(Logs, "service times: a log of which no call took time has none") {
    const auto one = [&](std::string_view name, int64_t took) {
        const LogReader log = made(name, [&](JobBuilder& job) {
            const TaskId task = job.lone_task();
            job.writer().append(task, reading(job.handle(job.file("/d/x")), 1, took));
        });
        return has_service_times(log);
    };
    CHECK_FALSE(one("none.oplog", 0));
    CHECK(one("some.oplog", 1));
}
