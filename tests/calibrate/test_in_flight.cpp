// SPDX-License-Identifier: MIT
// Requests in flight: the loop on a clock of its own, and the queues on a file.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "calibrate/in_flight.h"
#include "formats/support/error.h"
#include "formats/support/unique_fd.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Serves so many at a time, each in `service` ns. Time passes while somebody waits.
class Fake : public InFlightQueue {
public:
    Fake(int channels, int64_t service) : service_(service), free_(static_cast<size_t>(channels)) {}
    void submit(int slot, bool write, int64_t offset) override {
        CHECK(!in_flight.contains(slot));
        in_flight.insert(slot);
        most = std::max(most, in_flight.size());
        writes += write ? 1 : 0;
        offsets.insert(offset);
        int64_t& free = *std::min_element(free_.begin(), free_.end());
        if (++submitted % 1'000 == 0) {
            for (int64_t& each : free_) {
                each = std::max(each, now) + stands_still;
            }
        }
        free = std::max(free, now) + service_;
        ends_.emplace(free, slot);
    }
    int wait() override {
        REQUIRE(!ends_.empty());
        const auto [end, slot] = *ends_.begin();
        ends_.erase(ends_.begin());
        now = std::max(now, end);
        in_flight.erase(slot);
        return slot;
    }
    int64_t now = 0, stands_still = 0;
    size_t most = 0;
    int writes = 0, submitted = 0;
    std::set<int> in_flight;
    std::set<int64_t> offsets;

private:
    int64_t service_;
    std::vector<int64_t> free_;
    std::multimap<int64_t, int> ends_;
};

DepthRow run(Fake& fake, const InFlightLoad& load, const InFlightTimes& times = {1'000'000, 100'000'000}) {
    return keep_in_flight(
        fake, load, times, [&] { return fake.now; }, [] {});
}

}  // namespace

TEST_CASE("requests in flight: rate and latency follow from what is served at once") {
    constexpr int64_t kService = 100'000;
    for (const int depth : {1, 4, 8, 64}) {
        CAPTURE(depth);
        Fake fake(8, kService);
        const DepthRow row = run(fake, {4096, depth, 100, 1'000});
        const double at_once = std::min(depth, 8);
        CHECK(row.bytes == 4096);
        CHECK(row.depth == depth);
        CHECK(row.per_s == doctest::Approx(at_once * 1e9 / kService).epsilon(0.03));
        CHECK(static_cast<double>(row.ns) == doctest::Approx(depth / at_once * kService).epsilon(0.03));
        CHECK(static_cast<double>(row.mean_ns) == doctest::Approx(depth / at_once * kService).epsilon(0.03));
        CHECK(fake.most == static_cast<size_t>(depth));
        CHECK(fake.in_flight.empty());  // all are waited for
        CHECK(fake.writes == 0);
    }
}

TEST_CASE("requests in flight: those that stand still count for the rate, not for how long one takes") {
    Fake fake(4, 100'000);
    fake.stands_still = 100'000'000;  // each 1,000 requests
    const DepthRow row = run(fake, {4096, 4, 100, 1'000}, {1'000'000, 2'000'000'000});
    CHECK(row.per_s == doctest::Approx(1'000 / 0.125).epsilon(0.1));
    CHECK(row.ns == 100'000);
    CHECK(row.mean_ns == 100'000);
}

TEST_CASE("requests in flight: a row of which half stood still, not one whose requests wait for each other") {
    const DepthRow before{131'072, 4, 263'000, 266'000, 285, false};
    CHECK(stood_still({131'072, 16, 99'000'000, 53'000'000, 160, false}, before));  // behind 40 MB/s
    CHECK(!stood_still({131'072, 16, 1'100'000, 1'100'000, 15'000, false}, before));
    CHECK(!stood_still({131'072, 128, 20'000'000, 20'000'000, 6'400, false}, before));  // each takes twice as long
    CHECK(!stood_still({1 << 20, 16, 99'000'000, 99'000'000, 160, false}, before));     // another size
    const DepthRow fast{4096, 1, 8'000, 8'000, 120'000, false};
    CHECK(!stood_still({4096, 64, 4'900'000, 4'900'000, 13'000, false}, fast));  // too short to stand still
}

TEST_CASE("requests in flight: what is mixed, where they lie, and at least a few of slow ones") {
    Fake fake(4, 100'000);
    run(fake, {8192, 4, 70, 16});
    CHECK(fake.writes > fake.submitted / 5);
    CHECK(fake.writes < fake.submitted * 2 / 5);
    CHECK(fake.offsets.size() == 16);
    CHECK(*fake.offsets.rbegin() == 15 * 8192);
    Fake slow(1, 10'000'000'000);
    const DepthRow row = run(slow, {4096, 1, 0, 1});
    CHECK(row.per_s == doctest::Approx(0.1));
    CHECK(slow.writes == slow.submitted);
    CHECK(slow.submitted < 20);
}

TEST_CASE("requests in flight: who asks to stop is heard once all are done") {
    Fake fake(1, 100'000);
    int asked = 0;
    CHECK_THROWS_AS(keep_in_flight(
                        fake, {4096, 16, 100, 1}, {0, INT64_MAX}, [&] { return fake.now; },
                        [&] {
                            if (++asked == 3) {
                                throw machine_error("stopped", "");
                            }
                        }),
                    Error);
    CHECK(asked == 3);
    CHECK(fake.in_flight.empty());
}

TEST_CASE("requests in flight: the queues read and write what they are asked for") {
    const TempDir dir;
    StorageOptions options;
    const StorageFolder folder(options, dir.path().string());
    write_file(dir / "data", std::string(8 * 4096, 'x'));
    const UniqueFd file(::open((dir / "data").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(file.valid());
    const auto use = [&](InFlightQueue& queue) {
        for (int slot = 0; slot < 4; ++slot) {
            queue.submit(slot, slot % 2 == 1, slot * 4096);
        }
        std::set<int> done;
        for (int i = 0; i < 4; ++i) {
            done.insert(queue.wait());
        }
        CHECK(done == std::set<int>{0, 1, 2, 3});
    };
    const auto changed = [&] {
        const std::string now = read_file(dir / "data");
        REQUIRE(now.size() == 8 * 4096);
        for (size_t page = 0; page < 8; ++page) {
            CAPTURE(page);
            const bool as_before = now.substr(page * 4096, 4096) == std::string(4096, 'x');
            CHECK(as_before == (page != 1 && page != 3));
        }
    };
    SUBCASE("threads") {
        use(*thread_queue(folder, file.get(), 4, 4096));
        changed();
    }
    SUBCASE("a ring") {
        const auto ring = uring_queue(folder, file.get(), 4, 4096);
        if (!ring) {
            REPRISE_SKIP("no io_uring here");
        }
        use(*ring);
        changed();
    }
    SUBCASE("syncs, each of a file of its own that leaves nothing") {
        use(*sync_queue(folder, 4, 4096));
        CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
    }
    SUBCASE("what fails is said") {
        const UniqueFd closed(::open((dir / "data").c_str(), O_RDONLY | O_CLOEXEC));
        const auto threads = thread_queue(folder, closed.get(), 1, 4096);
        threads->submit(0, true, 0);
        CHECK_THROWS_WITH_AS(threads->wait(), doctest::Contains("a request failed"), Error);
    }
}
