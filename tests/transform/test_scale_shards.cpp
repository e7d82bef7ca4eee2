// SPDX-License-Identifier: MIT
// Shards that are read one after the other, in another order each epoch, through a shuffle buffer.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/transform/scaled_job.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kRecord = 8192;
constexpr int kRecords = 90, kBatch = 16;  // of a shard; of a batch

/// A batch is a pause after as many samples, from the moment on at which the buffer holds `held`.
struct ShardsJob : ScaledJob {
    TaskId task = job.lone_task();
    std::vector<FileId> files;

    explicit ShardsJob(int held, int64_t stall = 0) {
        for (int i = 0; i < 4; ++i) {
            files.push_back(sized("/data/shard_" + std::to_string(i) + ".tar", kRecords * kRecord));
        }
        std::mt19937 random(11);
        std::vector<FileId> order = files;
        for (int epoch = 0; epoch < 2; ++epoch) {
            std::shuffle(order.begin(), order.end(), random);
            int samples = 0;
            for (const FileId file : order) {
                const HandleId handle = job.open(task, file);
                for (int i = 0; i < kRecords; ++i) {
                    const bool waits = stall != 0 && random() % 6 == 0;  // for the device
                    job.add(task, {.kind = OpKind::read,
                                   .duration = waits ? stall : 5'000,
                                   .result = kRecord,
                                   .handle = handle,
                                   .fd = job.fd(handle),
                                   .offset = i * kRecord,
                                   .size = kRecord});
                    job.skip(waits ? stall : 0);
                    job.add(task, {.kind = OpKind::compute, .duration = 1'000, .flags = kComputeWorks});
                    if (++samples > held && samples % kBatch == 0) {
                        job.skip(20'000'000);
                    }
                }
                job.read(task, handle, kRecords * kRecord, 0);
                job.close(task, handle);
            }
            checkpoint(task, epoch);
        }
    }
};

/// Bytes read by each open instance of a shard.
std::vector<int64_t> read_bytes(const LogReader& log) {
    std::map<HandleId, int64_t> bytes;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::read) {
            bytes[op.handle] += op.result;
        }
    });
    std::vector<int64_t> out;
    for (const auto& [handle, read] : bytes) {
        out.push_back(read);
    }
    return out;
}

}  // namespace

TEST_CASE("each shard is read to its end, also the one that fills the shuffle buffer") {
    int64_t stall = 0;
    SUBCASE("cached") {}
    SUBCASE("reads that wait for the device are no pauses") { stall = 3'000'000; }
    ShardsJob job(24, stall);
    const LogReader& scaled = job.scale(3);
    const std::vector<int64_t> bytes = read_bytes(scaled);
    REQUIRE(bytes.size() == 8);
    for (const int64_t read : bytes) {
        CHECK(std::abs(read - 3 * kRecords * kRecord) <= kBatch * kRecord);
    }
    CHECK(std::none_of(job.result.notes.begin(), job.result.notes.end(),
                       [](const std::string& note) { return note.find("another shard") != std::string::npos; }));
    check_replay(scaled);
}

TEST_CASE("a shard with too few steps to be made longer: its reads are the next one's, and that is said") {
    ShardsJob job(80);
    job.scale(3);
    CHECK(std::any_of(job.result.notes.begin(), job.result.notes.end(), [](const std::string& note) {
        return note.find("of the reads are of another shard than they would be") != std::string::npos;
    }));
}
