// SPDX-License-Identifier: MIT
// The epochs of a log.
#include "transform/epochs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/replay/job_builder.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr int kSamples = 60;

struct SampledJob {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    std::vector<uint64_t> ops = std::vector<uint64_t>(8);  // so far, by task

    void sample(TaskId task, int number) {
        const HandleId h = job.open(task, job.file("/data/s" + std::to_string(number) + ".bin"));
        job.pread(task, h, 0, 10'000);
        job.close(task, h);
        ops[task] += 3;
    }
    std::vector<int> order(int seed) const {
        std::vector<int> all(kSamples);
        for (int i = 0; i < kSamples; ++i) {
            all[static_cast<size_t>(i)] = i;
        }
        std::shuffle(all.begin(), all.end(), std::mt19937(static_cast<unsigned>(seed)));
        return all;
    }
};

}  // namespace

TEST_CASE("an epoch begins with the first access of any task that reads samples") {
    SampledJob of;
    const TaskId one = of.job.lone_task(), two = of.job.lone_task();
    std::vector<std::vector<LogEpoch::Access>> want;
    for (int epoch = 0; epoch < 3; ++epoch) {
        want.push_back({{one, of.ops[one]}, {two, of.ops[two]}});
        int turn = 0;
        for (const int number : of.order(epoch)) {
            of.sample(++turn % 2 != 0 ? one : two, number);
        }
    }
    const std::vector<LogEpoch> found = find_epochs(of.job.finish());
    REQUIRE(found.size() == 3);
    for (size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].accesses == kSamples);
        CHECK(found[i].first == want[i]);
    }
}

TEST_CASE("a sample that was read once more than the others begins no epoch") {
    SampledJob of;
    const TaskId task = of.job.lone_task();
    for (int epoch = 0; epoch < 2; ++epoch) {
        const std::vector<int> order = of.order(epoch);
        for (size_t i = 0; i < order.size(); ++i) {
            of.sample(task, order[i]);
            if (epoch == 1 && i == kSamples / 2) {
                of.sample(task, order[i]);
            }
        }
    }
    CHECK(find_epochs(of.job.finish()).size() == 2);
}

TEST_CASE("one pass is one epoch, and no pass is none") {
    SampledJob of;
    const TaskId task = of.job.lone_task();
    SUBCASE("one") {
        for (const int number : of.order(1)) {
            of.sample(task, number);
        }
        CHECK(find_epochs(of.job.finish()).size() == 1);
    }
    SUBCASE("by chance, again and again") {
        std::mt19937 random(3);
        for (int i = 0; i < 6 * kSamples; ++i) {
            of.sample(task, static_cast<int>(random() % kSamples));
        }
        CHECK(find_epochs(of.job.finish()).empty());
    }
    SUBCASE("nothing is read") {
        of.job.add(task, {.kind = OpKind::compute, .duration = 1'000});
        CHECK(find_epochs(of.job.finish()).empty());
    }
}

}  // namespace reprise::test
