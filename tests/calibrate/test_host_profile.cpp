// SPDX-License-Identifier: MIT
// What a machine is like: measured once in short, kept as JSON, compared.
#include "calibrate/host_profile.h"

#include <doctest/doctest.h>
#include <sys/utsname.h>

#include <atomic>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/delay.h"
#include "calibrate/work_units.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

HostProfile made_up() {
    HostProfile p;
    p.host = "box";
    p.cpu = "a \"quoted\" processor";
    p.kernel = "Linux";
    p.measured_unix_s = 1'700'000'000;
    p.cpus = 2;
    p.sleep_p50_ns = 90'000;
    p.sleep_p99_ns = 199'000;
    p.slack_p50_ns = 46'000;
    p.slack_p99_ns = 636'000;
    p.delays = {{50'000, 10, 0.25, 60, 33'000}, {1'000'000, 5, 0.0, 1, 2}};
    p.clock_ns = 8.5;
    p.spin_ns = 12;
    p.call_ns = 90;
    p.pread_ns = 380;
    p.open_ns = 1'800;
    p.wake_ns = 4'000;
    p.one = {1000, 2000, 3000};
    p.all = {900, 1800, 1500};
    p.waits.extra_ns = {0, 60'000, 190'000, 560'000, 630'000};
    p.waits.over_ns = 470'000;
    return p;
}

}  // namespace

TEST_CASE("a host profile written is a host profile read") {
    const TempDir dir;
    const HostProfile before = made_up();
    write_file(dir / "host.json", to_json(before));
    const HostProfile after = read_host_profile(dir / "host.json");
    CHECK(to_json(after) == to_json(before));
    CHECK(after.waits == before.waits);
    HostProfile earlier = before;  // a profile of before has none
    earlier.waits = {};
    write_file(dir / "host.json", to_json(earlier));
    CHECK(!read_host_profile(dir / "host.json").waits.measured());
    HostProfile strange = before;
    strange.waits.extra_ns[2] = -5;
    write_file(dir / "host.json", to_json(strange));
    CHECK_THROWS_WITH_AS(read_host_profile(dir / "host.json"), doctest::Contains("after_wait"), Error);
    CHECK(after.delays == before.delays);
    CHECK(after.all.memcpy == 1500);
}

TEST_CASE("a file that is no host profile is refused with the field that is wrong") {
    const TempDir dir;
    const auto refused = [&](const std::string& text, const char* says) {
        write_file(dir / "host.json", text);
        CHECK_THROWS_WITH_AS(read_host_profile(dir / "host.json"), doctest::Contains(says), Error);
    };
    refused("", "not a host profile");
    refused("[1]", "not a host profile");
    refused("{}", "/reprise_host_profile");
    std::string text = to_json(made_up());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const size_t at = changed.find(from);
        REQUIRE(at != std::string::npos);
        return changed.replace(at, from.size(), to);
    };
    refused(with("\"reprise_host_profile\": 1", "\"reprise_host_profile\": 2"), "version");
    refused(with("\"cpus\": 2", "\"cpus\": \"two\""), "/cpus: the field has the wrong type");
    refused(with("\"wake_ns\"", "\"woke_ns\""), "/wake_ns: the field is missing");
    refused(with("\"memcpy\": 3000.0", "\"memcpy\": 0.0"), "/work_per_s/one/memcpy: the field is not above 0");
    CHECK_THROWS_AS(read_host_profile(dir / "absent.json"), Error);
}

TEST_CASE("the ratio of two machines, and by how much kinds of work disagree") {
    const WorkRates here{200, 400, 600};
    CHECK(compare_speed(here, here).ratio == doctest::Approx(1.0));
    CHECK(compare_speed(here, here).uncertainty == doctest::Approx(0.0));
    const SpeedRatio twice = compare_speed(here, {100, 200, 300});
    CHECK(twice.ratio == doctest::Approx(2.0));
    const SpeedRatio uneven = compare_speed(here, {100, 400, 1200});  // 2, 1, 0.5
    CHECK(uneven.ratio == doctest::Approx(1.0));
    CHECK(uneven.uncertainty == doctest::Approx(0.75));
    CHECK(compare_speed(here, {}).ratio == 1.0);  // nothing is known
}

TEST_CASE("a short measurement has every number") {
    HostOptions options;
    options.repeats = 5;
    const int64_t before = std::time(nullptr);
    int steps = 0;
    options.progress = [&](const char*, int done, int total) {
        CHECK(done == steps++);
        CHECK(total == 9);
    };
    const HostProfile p = measure_host(options);
    CHECK(steps == 9);
    CHECK(p.cpus == usable_cpus());
    utsname name{};
    REQUIRE(uname(&name) == 0);
    CHECK(p.host == name.nodename);
    CHECK(p.kernel == std::string(name.sysname) + " " + name.release + " " + name.machine);
    CHECK(p.measured_unix_s >= before);
    CHECK(p.sleep_p50_ns >= 0);
    CHECK(p.sleep_p99_ns >= p.sleep_p50_ns);
    CHECK(p.slack_p50_ns >= 0);
    CHECK(p.slack_p99_ns >= p.slack_p50_ns);
    CHECK(p.delays.size() == 3);
    const std::vector<std::pair<int64_t, uint64_t>> asked{{50'000, 5'000}, {1'000'000, 1'000}, {10'000'000, 100}};
    for (size_t i = 0; i < p.delays.size(); ++i) {
        const DelayError& one = p.delays[i];
        CHECK(std::pair{one.target_ns, one.count} == asked[i]);
        CHECK(one.p50_ns >= 0);  // never early
        CHECK(one.p99_ns >= one.p50_ns);
        CHECK(one.total >= 0);
    }
    for (const double cost : {p.clock_ns, p.spin_ns, p.call_ns, p.pread_ns, p.open_ns, p.wake_ns}) {
        CHECK(cost > 0);
    }
    for (const WorkRates& rates : {p.one, p.all}) {
        for (const double rate : {rates.integer, rates.inflate, rates.memcpy}) {  // pieces of some 10 us to 10 ms
            CHECK(rate > 0.01);
            CHECK(rate < 1e9);
        }
    }
    CHECK(p.pread_ns > p.clock_ns);
    CHECK(p.waits.measured());
    const TempDir dir;
    write_file(dir / "host.json", to_json(p));
    CHECK(to_json(read_host_profile(dir / "host.json")) == to_json(p));
}

TEST_CASE("a measurement can be stopped, and a folder that takes no file is named") {
    std::atomic<bool> stop{true};
    HostOptions options;
    options.stop = &stop;
    CHECK_THROWS_WITH_AS(measure_host(options), doctest::Contains("interrupted"), Error);
    options.stop = nullptr;
    options.repeats = 1;
    options.scratch = "/does/not/exist";
    CHECK_THROWS_WITH_AS(measure_host(options), doctest::Contains("/does/not/exist"), Error);
}

// Rates of machines are compared by these units: the work must be the same everywhere, and with every version.
TEST_CASE("units of work are the same work everywhere") {
    WorkUnits units;
    CHECK(units.run_integer() == 10'212'991'311'207'186'093ULL);
    std::string text;
    for (int i = 0; i < 60; ++i) {
        text += static_cast<char>(units.run_inflate());
        units.run_integer();
    }
    CHECK(text == "efsmeeej sg cmihmjbdmfcpvge mfefw jmusgj crs qeeajci  pbulm ");
}

TEST_CASE("units of work do work") {
    WorkUnits units;
    CHECK(units.run_integer() != units.run_integer());
    units.run_inflate();  // throws where the text does not come back
    CHECK(units.run_memcpy() == 1);
}
