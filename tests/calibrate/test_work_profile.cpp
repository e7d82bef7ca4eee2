// SPDX-License-Identifier: MIT
// How fast this machine computes: as JSON, measured, and kept for the next time.
#include "calibrate/work_profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/delay.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

/// Sets a variable of the environment, or takes it out, for as long as it lives.
class Variable {
public:
    Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
        if (const char* const before = std::getenv(name)) {
            before_ = before;
        }
        set(value);
    }
    ~Variable() { set(before_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    void set(const std::optional<std::string>& value) {
        if (value) {
            ::setenv(name_, value->c_str(), 1);
        } else {
            ::unsetenv(name_);
        }
    }
    const char* name_;
    std::optional<std::string> before_;
};

/// As if measured on this machine before.
void keep_in(const fs::path& folder, double integer) {
    fs::create_directories(folder);
    WorkProfile kept{.identity = machine_identity(),
                     .cpus = 1,
                     .one = {integer, 1, 1},
                     .waits = {.extra_ns = {1, 2, 3, 4, 5}, .over_ns = 6}};
    kept.boot = boot_identity();
    kept.measured_unix_s = std::time(nullptr);
    write_file(folder / kept_profile_name(), to_json(kept));
}

}  // namespace

TEST_CASE("a profile of work: as JSON and back; what is none") {
    const WorkProfile profile{.identity = 12'345, .cpus = 8, .one = {100, 200, 300}, .waits = {}};
    const auto back = work_profile_of(to_json(profile));
    REQUIRE(back);
    CHECK(back->identity == 12'345);
    CHECK(back->cpus == 8);
    CHECK(back->one.memcpy == 300);
    CHECK(!back->waits.measured());
    for (const char* const text :
         {"", "null", "{}", "[1]", R"({"identity":1,"cpus":2,"integer":0,"inflate":1,"memcpy":1})",
          R"({"identity":1,"cpus":2,"integer":"x","inflate":1,"memcpy":1})",
          R"({"identity":1,"cpus":2,"integer":1e300,"inflate":1,"memcpy":1})"}) {
        CHECK(!work_profile_of(text));
    }
}

TEST_CASE("a profile of work: what waits cost, and what is no such cost") {
    WorkProfile profile{.identity = 1, .cpus = 1, .one = {1, 1, 1}, .waits = {}};
    profile.waits = {.extra_ns = {0, 60'000, 190'000, 560'000, 630'000}, .over_ns = 470'000};
    const std::string text = to_json(profile);
    CHECK(work_profile_of(text)->waits == profile.waits);
    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string other = text;
        const size_t at = other.find(from);
        REQUIRE(at != std::string::npos);
        other.replace(at, from.size(), to);
        const auto found = work_profile_of(other);
        REQUIRE(found);  // the rest still counts
        return found->waits;
    };
    CHECK(changed("470000.0", "480000.0").over_ns == 480'000);
    CHECK(!changed("[0.0,", "[").measured());
    CHECK(!changed("[0.0,", "[0.0,0.0,").measured());
    CHECK(!changed("470000.0", "0").measured());
    CHECK(!changed("470000.0", "1e300").measured());
    CHECK(!changed("190000.0", "-5").measured());  // longer waits do not cost less
    CHECK(!changed("190000.0", "1e300").measured());
    CHECK(!changed("190000.0", "\"x\"").measured());
    CHECK(!changed("2500000", "2600000").measured());  // of other waits
}

TEST_CASE("a profile of work: each number within its bounds") {
    const auto parsed = [](const char* key, const char* value) {
        std::string text = "{";
        for (const char* const each : {"identity", "cpus", "integer", "inflate", "memcpy"}) {
            text += std::string(text.size() > 1 ? "," : "") + "\"" + each +
                    "\":" + (each == std::string(key) ? value : "5");
        }
        return work_profile_of(text + "}");
    };
    for (const char* const key : {"identity", "cpus", "integer", "inflate", "memcpy"}) {
        CAPTURE(key);
        CHECK(parsed(key, "5"));
        CHECK(parsed(key, "1"));
        CHECK(parsed(key, "1e18"));
        CHECK_FALSE(parsed(key, "1.1e18"));
        CHECK(parsed(key, "0").has_value() == (key == std::string("identity")));  // not known
        CHECK_FALSE(parsed(key, "-1"));
        CHECK_FALSE(parsed(key, "true"));
    }
    CHECK(parsed("identity", "9007199254740991")->identity == 9'007'199'254'740'991);  // the largest there is
    CHECK(parsed("cpus", "1000000")->cpus == 1'000'000);
    CHECK(parsed("cpus", "1000002")->cpus == 1'000'000);
    CHECK(parsed("integer", "0.5")->one.integer == 0.5);
    CHECK(parsed("inflate", "7")->one.inflate == 7);
    CHECK(parsed("memcpy", "8")->one.memcpy == 8);
}

TEST_CASE("a profile of work is kept where the user's caches are, if that is known") {
    const TempDir dir;
    keep_in(dir / "given", 11);
    keep_in(dir / "xdg/reprise", 12);
    keep_in(dir / "home/.cache/reprise", 13);
    const auto found = [](const std::optional<std::string>& xdg, const std::optional<std::string>& home,
                          const fs::path& given = {}) {
        const Variable cache("XDG_CACHE_HOME", xdg), folder("HOME", home);
        return this_work_profile(given).one.integer;
    };
    const std::string xdg = dir / "xdg", home = dir / "home";
    CHECK(found(xdg, home) == 12);
    CHECK(found(xdg, {}) == 12);
    CHECK(found({}, home) == 13);
    CHECK(found("", home) == 13);
    CHECK(found("xdg", home) == 13);  // must be absolute
    CHECK(found(xdg, home, dir / "given") == 11);
}

TEST_CASE("a profile of work is measured where it cannot be kept") {
    const TempDir dir;
    const auto measured = [](const WorkProfile& p) {
        CHECK(p.identity == machine_identity());
        CHECK(p.cpus == usable_cpus());
        for (const double rate : {p.one.integer, p.one.inflate, p.one.memcpy}) {
            CHECK(rate > 0.01);
            CHECK(rate < 1e9);
        }
        CHECK(p.waits.measured());
    };
    SUBCASE("nobody's home") {
        const Variable cache("XDG_CACHE_HOME", std::nullopt), home("HOME", "home");
        const fs::path before = fs::current_path();
        fs::current_path(dir.path());
        const WorkProfile found = this_work_profile();
        fs::current_path(before);
        measured(found);
        CHECK(fs::is_empty(dir.path()));
    }
    SUBCASE("no folder") {
        write_file(dir / "file", "");
        measured(this_work_profile(dir / "file/cache"));
    }
    SUBCASE("the file cannot be replaced") {
        fs::create_directories(dir / ("cache/" + kept_profile_name() + "/full"));
        measured(this_work_profile(dir / "cache"));
        CHECK(std::distance(fs::directory_iterator(dir / "cache"), {}) == 1);  // nothing half written
    }
}

TEST_CASE("the identity of a machine stays the same, and is a number that JSON keeps exactly") {
    const uint64_t identity = machine_identity();
    CHECK(identity == machine_identity());
    CHECK(identity > 0);
    CHECK(identity < uint64_t{1} << 53);
}

TEST_CASE("a kept profile is measured again after a boot, and after an hour") {
    const TempDir dir;
    WorkProfile kept{.identity = machine_identity(),
                     .cpus = 1,
                     .one = {11, 1, 1},
                     .waits = {.extra_ns = {1, 2, 3, 4, 5}, .over_ns = 6}};
    kept.boot = boot_identity();
    kept.measured_unix_s = std::time(nullptr) - 3'500;
    const auto found = [&] {
        write_file(dir / kept_profile_name(), to_json(kept));
        return this_work_profile(dir.path()).one.integer;
    };
    CHECK(found() == 11);
    const WorkProfile good = kept;
    kept.measured_unix_s = std::time(nullptr) - 3'700;
    CHECK(found() != 11);
    kept.measured_unix_s = std::time(nullptr) + 1'000;  // the clock was set back
    CHECK(found() != 11);
    kept = good;
    kept.boot += 1;
    CHECK(found() != 11);
    const WorkProfile after = this_work_profile(dir.path());  // kept again
    CHECK(after.boot == boot_identity());
    CHECK(std::abs(after.measured_unix_s - std::time(nullptr)) < 600);
    CHECK(after.spread != WorkRates{});
}

TEST_CASE("a kept profile counts in a namespace with another host name, and is that of the machine there") {
    const TempDir dir;
    keep_in(dir.path(), 11);
    WorkProfile kept = *work_profile_of(read_file(dir / kept_profile_name()));
    kept.identity += 1;
    write_file(dir / kept_profile_name(), to_json(kept));
    const WorkProfile found = this_work_profile(dir.path());
    CHECK(found.one.integer == 11);
    CHECK(found.identity == machine_identity());
}

TEST_CASE("of several that find no kept profile at the same time one measures") {
    const TempDir dir;
    std::array<WorkProfile, 3> found;
    std::vector<std::thread> threads;
    for (WorkProfile& one : found) {
        threads.emplace_back([&one, &dir] { one = this_work_profile(dir.path()); });
    }
    std::for_each(threads.begin(), threads.end(), [](std::thread& one) { one.join(); });
    CHECK(found[0].one == found[1].one);
    CHECK(found[0].one == found[2].one);
    CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);  // no lock is left
}

TEST_CASE("a profile of work: when, and how exactly, as JSON and back") {
    WorkProfile profile{.identity = 5, .cpus = 8, .one = {100, 200, 300}, .waits = {}};
    CHECK(to_json(profile).find("spread") == std::string::npos);
    profile.spread = {0.01, 0.02, 0.03};
    profile.boot = 77;
    profile.measured_unix_s = 1'700'000'000;
    profile.waits = {.extra_ns = {1, 2, 3, 4, 5}, .over_ns = 6, .spread_ns = {1, 0, 0, 0, 2}};
    const auto back = work_profile_of(to_json(profile));
    REQUIRE(back);
    CHECK(back->spread == profile.spread);
    CHECK(back->boot == 77);
    CHECK(back->measured_unix_s == 1'700'000'000);
    CHECK(back->waits == profile.waits);
}

TEST_CASE("the kept profile of another machine, or a broken one, is measured anew") {
    const TempDir dir;
    write_file(dir / kept_profile_name(),
               to_json(WorkProfile{.identity = 1, .cpus = 1, .one = {1, 1, 1}, .waits = {}}));
    CHECK(this_work_profile(dir.path()).identity == machine_identity());
    CHECK(work_profile_of(read_file(dir / kept_profile_name()))->identity == machine_identity());
    const WorkProfile earlier{.identity = machine_identity(), .cpus = 1, .one = {1, 1, 1}, .waits = {}};
    write_file(dir / kept_profile_name(), to_json(earlier));
    CHECK(this_work_profile(dir.path()).waits.measured());
    write_file(dir / kept_profile_name(), "{");
    CHECK(this_work_profile(dir.path()).one.inflate > 1);
}
