// SPDX-License-Identifier: MIT
// Ops that a prediction performs one by one, by a model whose numbers cannot be taken for each other.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <memory>
#include <optional>
#include <vector>

#include "replay/predict/virtual_calls.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/virtual_steps.h"

namespace reprise::test {

inline constexpr int64_t kCall = 1, kOpen = 10, kStat = 100, kMake = 1'000, kRemove = 10'000, kSync = 100'000;
inline constexpr int64_t kRead = 1'000'000, kRecorded = 7'000'000;
inline constexpr int64_t kFault = 4'000,
                         kAsk = 20'000;  // of a touch that was recorded to take longer; one that asks or waits

/// A copy takes a nanosecond a byte, and so does writing to the storage.
inline StorageModel model() {
    StorageModel m;
    m.call_ns = kCall;
    m.open_ns = kOpen;
    m.stat_ns = kStat;
    m.make_ns = kMake;
    m.remove_ns = kRemove;
    m.fsync_ns = kSync;
    m.read = {{4096, kRead}};
    m.read_bytes_per_s = 1e18;
    m.cached_bytes_per_s = m.write_bytes_per_s = 1e9;
    return m;
}

struct Calls {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    FileId file = job.file("/data/in"), other = job.file("/data/other"), made = job.file("/data/made", Origin::created);
    HandleId in = job.handle(file, O_RDWR), out = job.handle(other, O_RDWR);
    std::vector<int64_t> expected;

    void add(Op op, int64_t takes) {
        if (op.duration == 0) {
            op.duration = kRecorded;
        }
        job.add(t, op);
        expected.push_back(takes);
    }
    /// Each begins a second after the one before it. Compares what they take.
    VirtualCalls& check(bool warm = false) {
        log = std::make_unique<LogReader>(job.finish());
        plan = std::make_unique<Plan>(make_plan(*log, OpFilter::all(), PathMap{}));
        if (change.any()) {
            plan->access = std::make_shared<const AccessPlan>(plan_access(*plan, change));
        }
        performed = std::make_unique<VirtualCalls>(*plan, storage, warm, policy);
        VirtualCalls& calls = *performed;
        if (policy) {
            calls.limit_cache(room, 0);
        }
        OpBlock block;
        size_t at = 0;
        for (const BlockInfo& where : plan->tasks[t].blocks) {
            log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i, ++at) {
                CAPTURE(at);
                CAPTURE(info(static_cast<OpKind>(block.kind[i])).name);
                const int64_t now = static_cast<int64_t>(at + 1) * 1'000'000'000;
                CHECK(perform(calls, block, i, now) - now == expected[at]);
            }
        }
        CHECK(at == expected.size());
        return calls;
    }
    void sized(FileId of, uint64_t bytes) {
        FileRow row = job.writer().tables().files[of];
        row.size = bytes;
        job.writer().update_file(of, row);
    }
    void map(uint32_t id, HandleId of, int64_t offset) {
        add({.kind = OpKind::mmap,
             .handle = of,
             .fd = 3,
             .offset = offset,
             .size = 64 << 20,
             .flags = MAP_SHARED,
             .mode = PROT_READ,
             .map = id},
            kRecorded);
    }
    uint64_t fetched = 0;  // pages
    AccessChange change;
    StorageModel storage = model();
    std::unique_ptr<LogReader> log;
    std::unique_ptr<Plan> plan;
    std::unique_ptr<VirtualCalls> performed;
    std::optional<PageCachePolicy> policy;
    int64_t room = INT64_MAX;  // bytes of the page cache, with a policy
};

inline constexpr int64_t cached(int64_t bytes) { return kCall + bytes; }

}  // namespace reprise::test
