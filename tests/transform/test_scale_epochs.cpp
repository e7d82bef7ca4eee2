// SPDX-License-Identifier: MIT
// More epochs and fewer, and epochs that are shorter than loaders are ahead: each as long as asked for.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "tests/transform/scaled_job.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Two threads read samples, which the main thread hands out at the begin of an epoch.
struct ThreadsJob : ScaledJob {
    ProcessId process = job.process();
    TaskId main = job.task(process);
    std::vector<TaskId> readers{job.task(process), job.task(process)};
    std::vector<FileId> files;
    std::vector<uint64_t> done;  // each reader's last op
    std::mt19937 random{5};

    explicit ThreadsJob(int samples) : done(2) {
        for (int i = 0; i < samples; ++i) {
            char path[64];
            std::snprintf(path, sizeof path, "/data/s%04d.bin", i);
            files.push_back(sized(path, static_cast<uint64_t>(5'000 + i * 10)));
        }
        job.add(main, {.kind = OpKind::compute, .flags = kComputeWorks});
        for (const TaskId reader : readers) {
            const Edge edge{main, EdgeKind::lifecycle, 100, job.spawn(main, reader)};
            job.add(reader, {.kind = OpKind::compute, .flags = kComputeWorks, .edges = {&edge, 1}});
        }
    }
    void read(size_t by, FileId file) {
        const HandleId handle = job.open(readers[by], file);
        job.read(readers[by], handle, 0, static_cast<int64_t>(job.writer().tables().files[file].size));
        job.close(readers[by], handle);
        done[by] = job.add(readers[by], {.kind = OpKind::compute, .flags = kComputeWorks});
    }
    /// It learns of what that reader has read so far.
    void wait_for(size_t by) {
        const Edge edge{readers[by], EdgeKind::wake, 100, done[by]};
        job.add(main, {.kind = OpKind::compute, .flags = kComputeWorks, .edges = {&edge, 1}});
    }
    void check(const LogReader& scaled) {
        CHECK(result.edges_dropped == 0);
        CHECK(result.ops_dropped == 0);
        check_edges(scaled);
        check_sizes(scaled);
        check_replay(scaled);
    }
};

/// The main thread looks for what is done now and then, at another moment in each epoch, and the first time in an epoch
/// when a sample of it was read.
struct IrregularJob : ThreadsJob {
    static constexpr int kSamples = 200;

    explicit IrregularJob(const std::vector<std::set<int>>& looks) : ThreadsJob(kSamples) {
        for (const auto& at : looks) {
            std::shuffle(files.begin(), files.end(), random);
            for (int i = 0; i < kSamples; ++i) {
                read(static_cast<size_t>(i) % 2, files[static_cast<size_t>(i)]);
                if (at.contains(i)) {
                    wait_for(static_cast<size_t>(i) % 2);
                }
            }
        }
        wait_for(0);
        wait_for(1);
    }
};

/// Batches of the two readers in turn, of which the main thread takes each when it is read.
struct BatchesJob : ThreadsJob {
    static constexpr int kSamples = 120, kBatch = 4;

    explicit BatchesJob(int epochs) : ThreadsJob(kSamples) {
        for (int epoch = 0; epoch < epochs; ++epoch) {
            std::shuffle(files.begin(), files.end(), random);
            for (int i = 0; i < kSamples; ++i) {
                const auto by = static_cast<size_t>(i / kBatch) % 2;
                read(by, files[static_cast<size_t>(i)]);
                if ((i + 1) % kBatch == 0) {
                    wait_for(by);
                    compute(main, 10 * kMs);
                }
            }
            checkpoint(main, epoch);
        }
    }
};

}  // namespace

TEST_CASE("more epochs are whole epochs where the consumer of samples looks only now and then") {
    IrregularJob job({{1, 40, 42, 130}, {0, 3, 4, 9, 17, 30}, {0, 90, 95, 97, 99, 100, 110, 111, 140, 150, 160, 171}});
    for (const uint32_t epochs : {6u, 2u, 1u}) {
        INFO(epochs);
        const LogReader& scaled = job.scale(1, epochs);
        CHECK(job.result.epochs == std::vector<uint64_t>(epochs, IrregularJob::kSamples));
        CHECK(job.result.files_added == 0);
        CHECK(job.result.files_removed == 0);
        CHECK(job.result.notes.empty());
        std::map<HandleId, FileId> of;
        uint64_t reads = 0;
        std::set<FileId> files;
        scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (op.kind == OpKind::read) {
                ++reads;
                files.insert(scaled.tables().handles[op.handle].file);
            }
        });
        CHECK(reads == uint64_t{epochs} * IrregularJob::kSamples);
        CHECK(files.size() == IrregularJob::kSamples);
        job.check(scaled);
    }
}

TEST_CASE("where the consumer of samples looks only now and then, epochs grow by what the readers do") {
    IrregularJob job({{1, 40, 42, 130}, {0, 3, 4, 9, 17, 30}, {0, 90, 95, 97, 99, 100, 110, 111, 140, 150, 160, 171}});
    for (const auto& [factor, epochs] : {std::pair{2.0, 0u}, {0.5, 0u}, {3.0, 5u}}) {
        const auto& this_factor = factor;  // clang 14 has no capture of bindings
        INFO(this_factor);
        const LogReader& scaled = job.scale(factor, epochs);
        CHECK(job.result.epochs.size() == (epochs == 0 ? 3 : epochs));
        for (const uint64_t reads : job.result.epochs) {
            CHECK(std::abs(static_cast<double>(reads) - factor * IrregularJob::kSamples) <= 2);
        }
        CHECK(job.result.as_asked());
        job.check(scaled);
    }
    CHECK(survey_scaling(job.recorded(), {}).leader.find("which reads the most") != std::string::npos);
}

TEST_CASE("more epochs are whole epochs where two readers take turns") {
    for (const int recorded : {2, 3}) {
        INFO(recorded);
        BatchesJob job(recorded);
        for (const uint32_t epochs : {6u, 1u}) {
            INFO(epochs);
            const LogReader& scaled = job.scale(1, epochs);
            CHECK(job.result.epochs == std::vector<uint64_t>(epochs, BatchesJob::kSamples));
            CHECK(job.result.files_added == 0);
            CHECK(job.result.files_removed == 0);
            job.check(scaled);
        }
        job.scale(2, 5);
        CHECK(job.result.epochs == std::vector<uint64_t>(5, 2 * BatchesJob::kSamples));
        CHECK(job.result.files_added == BatchesJob::kSamples);
    }
}

TEST_CASE("a scaled log says what was asked of each epoch, also of those that are played again") {
    BatchesJob job(2);
    job.scale(0.01, 4);
    REQUIRE(job.result.asked.size() == 4);
    CHECK(job.result.asked == std::vector<uint64_t>(4, 1));
    CHECK(!job.result.as_asked());
    CHECK(job.result.notes.size() >= 4);
    job.scale(2);
    CHECK(job.result.asked == std::vector<uint64_t>(2, 2 * BatchesJob::kSamples));
    CHECK(job.result.as_asked());
}

TEST_CASE("short epochs are cut to where each loader has handed over two batches and has two more") {
    BatchesJob job(3);
    for (const double factor : {0.26, 0.28, 0.4}) {
        INFO(factor);
        const LogReader& scaled = job.scale(factor);
        for (const size_t epoch : {0, 1}) {  // nothing follows the last one, of which more stays
            const auto reads = static_cast<double>(job.result.epochs[epoch]);
            CHECK(std::abs(reads - factor * BatchesJob::kSamples) <= BatchesJob::kBatch);
        }
        job.check(scaled);
    }
}
