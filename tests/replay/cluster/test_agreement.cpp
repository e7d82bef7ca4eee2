// SPDX-License-Identifier: MIT
// Copies of a job by their profile beside the same copies op by op.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analyze/accelerator.h"
#include "generate/generate.h"
#include "replay/cluster/cluster.h"
#include "tests/support.h"
#include "transform/copies.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct OpByOp {
    double elapsed_s = 0, au = 0;
};

OpByOp op_by_op(const LogReader& log, const StorageModel& storage, int cpus) {
    PredictOptions how;
    how.storage = storage;
    how.cpus = cpus;
    how.filter = OpFilter::all();
    AcceleratorObserver observer(log.tables());
    how.observe = [&](TaskId task, const Op& op) { observer.add(task, op); };
    const Prediction p = predict(log, how);
    return {static_cast<double>(p.elapsed_ns) / 1e9, observer.finish().au().value_or(0)};
}

JobProfile profile_of(const LogReader& log, const StorageModel& storage) {
    const Predictor predictor(log, OpFilter::all(), {});
    PredictOptions how;
    how.storage = storage;
    how.filter = OpFilter::all();
    return profile_job(log, predictor, how);
}

void check_alike(const std::string& name, const ClusterResult& r, const OpByOp& real) {
    INFO(name << ", " << r.copies << " copies: elapsed " << r.elapsed_s << " s, op by op " << real.elapsed_s
              << " s; AU " << r.au << ", op by op " << real.au);
    CHECK(std::abs(r.elapsed_s / real.elapsed_s - 1) <= 0.02);
    CHECK(std::abs(r.au - real.au) <= 0.01);
}

struct Case {
    std::string name, job;
    int samples = 0;
    std::string size, deviation;
    StorageModel storage;
    int cpus = 0;

    Job parsed(uint64_t ranks, const std::string& more) const {
        const std::string count = std::to_string(samples * static_cast<int>(ranks));
        return parse_job(job + "samples=" + count + "\ngpus=" + std::to_string(ranks) + "\n" + more + "\n", "job.ini");
    }
};

/// 200 us a request and no more than `bytes_per_s`; reads ahead as Linux does.
StorageModel limited(double bytes_per_s) {
    StorageModel m;
    m.open_ns = 40'000;
    m.stat_ns = 10'000;
    m.close_ns = m.call_ns = 1'000;
    m.read = {{4096, 150'000}, {131072, 250'000}};
    m.parallelism = 4096;
    m.read_bytes_per_s = bytes_per_s;
    m.write_bytes_per_s = 2e8;
    m.cached_bytes_per_s = 5e9;
    m.fsync_ns = 2'000'000;
    return m;
}

constexpr const char* kSamples = R"([train]
format=npz
batch=4
loader_workers=2
prefetch=2
shuffle=full
compute=30ms
)";

constexpr const char* kRecords = R"([train]
format=tfrecord
samples_per_file=300
batch=100
loader_workers=4
decode=150us
compute=60ms
epochs=2
)";

constexpr const char* kCheckpoints = R"([train]
format=npz
batch=4
loader_workers=3
compute=25ms
checkpoint_every=10
checkpoint_size=20MiB
)";

std::vector<Case> cases() {
    StorageModel channels = limited(1e12), requests = limited(1e12), depth = limited(1e12);
    channels.parallelism = 6;
    requests.reads_per_s = 3000;
    // 16 requests of 128 KiB at once is what the device can do.
    for (const auto& [n, ns] : {std::pair{1, 250'000}, {4, 300'000}, {16, 600'000}, {64, 2'400'000}}) {
        depth.read_depth.push_back({131072, n, ns, ns, n * 1e9 / ns, false});
    }
    return {{"files, much bandwidth", kSamples, 160, "2MiB", "500KiB", limited(1e12)},
            {"files, one rank's bandwidth", kSamples, 160, "2MiB", "500KiB", limited(4e8)},
            {"files, few channels", kSamples, 160, "2MiB", "500KiB", channels},
            {"files, requests per second", kSamples, 160, "2MiB", "500KiB", requests},
            {"files, a device by depth", kSamples, 160, "2MiB", "500KiB", depth},
            {"records and decoding", kRecords, 4800, "110k", "20k", limited(6e8)},
            {"records, decoding on four processors", kRecords, 4800, "110k", "20k", limited(1e10), 4},
            {"checkpoints", kCheckpoints, 120, "1MiB", "200k", limited(1e9)}};
}

}  // namespace

TEST_CASE("copies of a job by its profile take as long as op by op") {
    for (const Case& one : cases()) {
        TempDir dir;
        // Past the page cache: on one machine, copies would read what others have brought there.
        generate(one.parsed(1, "direct=1\nsample_size=normal(" + one.size + "," + one.deviation + ")"),
                 dir / "job.oplog");
        const LogReader log(dir / "job.oplog");
        const JobProfile profile = profile_of(log, one.storage);
        for (uint32_t copies = rounds(1, 2); copies <= rounds(8, 2); copies *= 2) {
            VariantOptions variant;
            variant.copies = {copies, true};
            ClusterOptions options;
            options.accelerators = copies;
            options.storage = one.storage;
            options.scatter = false;
            options.all_write = true;
            options.cpus = one.cpus;
            check_alike(one.name, simulate_cluster(profile, options),
                        op_by_op(make_variant(log, variant), one.storage, one.cpus));
        }
    }
}

TEST_CASE("copies of a job by its profile take as long as one of as many ranks") {
    for (const Case& one : cases()) {
        TempDir dir;
        generate(one.parsed(1, "sample_size=" + one.size), dir / "job.oplog");
        const LogReader log(dir / "job.oplog");
        const JobProfile profile = profile_of(log, one.storage);
        for (uint64_t ranks = 2; ranks <= rounds(8, 2); ranks *= 2) {
            generate(one.parsed(ranks, "sample_size=" + one.size), dir / "ranks.oplog");
            ClusterOptions options;
            options.accelerators = ranks;
            options.storage = one.storage;
            options.cpus = one.cpus;
            check_alike(one.name, simulate_cluster(profile, options),
                        op_by_op(LogReader(dir / "ranks.oplog"), one.storage, one.cpus));
        }
    }
}
