// SPDX-License-Identifier: MIT
// Ops of many tasks in the order of time, and parts of it.
#include "formats/oplog/time_order.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/support.h"

using namespace reprise;

namespace {

using Seen = std::tuple<int64_t, TaskId, uint64_t>;

std::vector<Seen> write_random(const std::filesystem::path& path) {
    std::mt19937 random(3);
    LogWriter log(path, Header(), WriterOptions{.block_ops = 16, .sync = false});
    log.add_process({1, 0, 0, 0});
    std::vector<Seen> all;
    for (int32_t tid = 1; tid <= 5; ++tid) {
        log.add_task({1, tid, 0});
    }
    for (TaskId task = 1; task <= 4; ++task) {
        int64_t at = task == 4 ? 5000 : 0;
        for (uint64_t number = 0; number < 200; ++number) {
            Op op;
            op.kind = OpKind::fsync;
            op.begin = at += static_cast<int64_t>(random() % 3);
            op.duration = static_cast<int64_t>(random() % 50);
            log.append(task, op);
            all.emplace_back(op.begin, task, number);
        }
    }
    log.finish();
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_CASE("the merge is by time, task and number, and ranges cut it without gap or overlap") {
    const test::TempDir dir;
    const std::vector<Seen> all = write_random(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    const auto collect = [&](TimeRange range, std::vector<TaskId> tasks) {
        std::vector<Seen> seen;
        for_each_between(log, range, tasks, [&](TaskId task, const Op& op, uint64_t number) {
            seen.emplace_back(op.begin, task, number);
        });
        return seen;
    };
    CHECK(collect({}, {}) == all);
    std::vector<Seen> pieces;
    for (int64_t from = -10; from < 6000; from += 37) {
        for (const Seen& seen : collect({from, from + 37}, {})) {
            pieces.push_back(seen);
        }
    }
    CHECK(pieces == all);
    std::vector<Seen> two;
    std::copy_if(all.begin(), all.end(), std::back_inserter(two),
                 [](const Seen& seen) { return std::get<1>(seen) == 2 || std::get<1>(seen) == 4; });
    CHECK(collect({}, {4, 2}) == two);
    CHECK(collect({7000, 8000}, {}).empty());
    CHECK(collect({}, {5}).empty());
}
