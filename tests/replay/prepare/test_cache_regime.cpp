// SPDX-License-Identifier: MIT
// Regimes of the page cache, on a real file system: what is in memory when a run begins.
#include "replay/prepare/cache_regime.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"
#include "replay/prepare/residency.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr uint64_t kPage = RangeSet::kPage;
constexpr uint64_t kSize = 200 * kPage;

RangeSet range(uint64_t first, uint64_t end) {
    RangeSet set;
    set.add(first * kPage, end * kPage);
    return set;
}

/// Two files of which parts are read, one that is not there, and a directory. Written a moment ago, so warm and dirty.
struct Root {
    TempDir dir;
    UniqueFd fd;

    Root() {
        std::filesystem::create_directories(dir / "sub/directory");
        write_file(dir / "a", std::string(kSize, 'a'));
        write_file(dir / "sub/b", std::string(kSize, 'b'));
        fd.reset(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    static CachePlan plan() {
        CachePlan plan;
        plan.targets = {{"a", range(0, 100), range(50, 80)},
                        {"sub/b", range(0, 300), range(10, 20)},  // ends before
                        {"sub/missing", range(0, 10), range(0, 10)},
                        {"sub/directory", range(0, 10), {}}};
        plan.recorded = {300 * kPage, 260 * kPage, true};
        return plan;
    }
    uint64_t resident(const char* name, const RangeSet& ranges = range(0, 200)) const {
        const UniqueFd file(::open((dir / name).c_str(), O_RDONLY | O_CLOEXEC));
        return resident_bytes(file.get(), ranges).value_or(UINT64_MAX);
    }
    bool in_memory() const { return lies_in_memory(fd.get()); }
};

}  // namespace

TEST_CASE("regimes: each leaves in memory what it says") {
    const Root root;
    if (root.in_memory()) {
        REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk");
    }
    CacheKeeper keeper(root.fd.get(), Root::plan(), 2, [](uint64_t done, uint64_t total) { CHECK(done <= total); });

    keeper.apply({CacheRegime::cold});
    CHECK(keeper.report().files == 2);
    CHECK(keeper.report().bytes == 300 * kPage);
    CHECK(keeper.report().found == 300 * kPage);
    CHECK(keeper.report().before == 0);
    CHECK_FALSE(keeper.report().after);
    CHECK(keeper.report().stayed_files == 0);
    CHECK(keeper.report().choice.regime == CacheRegime::cold);
    CHECK(root.resident("a") == 0);
    CHECK(root.resident("sub/b") == 0);

    keeper.apply({CacheRegime::recorded});
    CHECK(keeper.report().before == 40 * kPage);
    CHECK(keeper.report().missing_bytes == 0);
    CHECK(root.resident("a") == 30 * kPage);
    CHECK(root.resident("a", range(50, 80)) == 30 * kPage);
    CHECK(root.resident("sub/b", range(10, 20)) == 10 * kPage);
    CHECK(root.resident("sub/b") == 10 * kPage);

    keeper.apply({CacheRegime::warm});
    CHECK(keeper.report().found == 40 * kPage);
    CHECK(keeper.report().before == 300 * kPage);
    CHECK(root.resident("a", range(0, 100)) == 100 * kPage);
    CHECK(root.resident("sub/b") == 200 * kPage);

    keeper.apply({CacheRegime::recorded});  // from warm
    CHECK(keeper.report().found == 300 * kPage);
    CHECK(root.resident("a") == 30 * kPage);
    CHECK(root.resident("sub/b") == 10 * kPage);

    keeper.apply({CacheRegime::as_is});
    CHECK(keeper.report().before == 40 * kPage);
    CHECK(root.resident("a") == 30 * kPage);
    const UniqueFd file(::open((root.dir / "a").c_str(), O_RDONLY | O_CLOEXEC));
    const std::atomic<bool> stop{false};
    std::atomic<uint64_t> done{0};
    REQUIRE(fill_cache(file.get(), 0, 50 * kPage, stop, done) == 0);
    keeper.look_again();
    CHECK(keeper.report().before == 40 * kPage);
    CHECK(keeper.report().after == 90 * kPage);
    CHECK(keeper.report().files == 2);
}

TEST_CASE("regimes: during a run, the share that is in memory by some of the files") {
    const Root root;
    if (root.in_memory()) {
        REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk");
    }
    CacheKeeper keeper(root.fd.get(), Root::plan(), 2);
    const auto share = [&](CacheRegime regime, size_t files) {
        std::optional<double> found;
        for (int tries = 10; tries > 0 && !found; --tries) {  // other tests drop all names
            keeper.apply({regime});
            found = keeper.resident_share(files);
        }
        return found.value_or(-1.0);
    };
    if (share(CacheRegime::warm, 100) < 0) {
        REPRISE_SKIP("this file system finds no name by the kernel's cache alone");
    }
    CHECK(share(CacheRegime::warm, 100) == doctest::Approx(1.0));
    CHECK(share(CacheRegime::cold, 100) == 0.0);
    CHECK(share(CacheRegime::recorded, 100) == doctest::Approx(40.0 / 300));
    CHECK(share(CacheRegime::recorded, 2) == doctest::Approx(0.3));  // "a" and "sub/missing"
    CHECK(CacheKeeper(root.fd.get(), CachePlan{}, 1).resident_share(10) == std::nullopt);
}

TEST_CASE("regimes: files that have no data on the device are counted, and what it can serve") {
    const Root root;
    if (root.in_memory()) {
        REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk");
    }
    write_file(root.dir / "holes", "");
    std::filesystem::resize_file(root.dir / "holes", 150 * kPage + 1);
    CachePlan plan = Root::plan();
    plan.targets.push_back({"holes", range(0, 100), {}});
    plan.beside_bytes = 7;
    CacheKeeper keeper(root.fd.get(), plan, 2);
    keeper.apply({CacheRegime::cold});
    CHECK(keeper.report().sparse_files == 1);
    CHECK(keeper.report().hole_bytes == 100 * kPage);
    CHECK(keeper.report().data_bytes == (200 + 200 + 151) * kPage + 7);
    plan.drops = true;
    CacheKeeper again(root.fd.get(), plan, 2);
    again.apply({CacheRegime::cold});
    CHECK_FALSE(again.report().data_bytes);
}

TEST_CASE("regimes: what is said after a run is said of the files from before it") {
    const Root root;
    if (root.in_memory()) {
        REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk");
    }
    const auto filled = [&](const char* name) { write_file(root.dir / name, std::string(kSize, 'x')); };
    CachePlan plan = Root::plan();
    plan.targets = {{"a", range(0, 200), {}}};
    for (const char* const name : {"replaced", "removed", "cut", "punched", "one", "other"}) {
        filled(name);
        plan.targets.push_back({name, range(0, 200), {}});
    }
    write_file(root.dir / "other", "little");
    CacheKeeper keeper(root.fd.get(), plan, 2);
    keeper.apply({CacheRegime::cold});
    const CacheReport before = keeper.report();
    CHECK(before.data_bytes == (6 * 200 + 1) * kPage);
    write_file(root.dir / "new", "new");
    std::filesystem::rename(root.dir / "new", root.dir / "replaced");
    std::filesystem::remove(root.dir / "removed");
    std::filesystem::resize_file(root.dir / "cut", 1);
    const UniqueFd punched(::open((root.dir / "punched").c_str(), O_RDWR | O_CLOEXEC));
    ::fallocate(punched.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kSize);
    REQUIRE(::renameat2(root.fd.get(), "one", root.fd.get(), "other", RENAME_EXCHANGE) == 0);
    keeper.look_again();
    const CacheReport& after = keeper.report();
    CHECK(after.data_bytes == before.data_bytes);
    CHECK(after.bytes == before.bytes);
    CHECK(after.files == before.files);
    CHECK(after.hole_bytes == before.hole_bytes);
    CHECK(after.sparse_files == before.sparse_files);
}

TEST_CASE("regimes: cold where pages stay names the file and why") {
    const Root root;
    if (root.in_memory()) {
        REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk");
    }
    const UniqueFd file(::open((root.dir / "sub/b").c_str(), O_RDONLY | O_CLOEXEC));
    void* const memory = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
    REQUIRE(memory != MAP_FAILED);
    CacheKeeper keeper(root.fd.get(), Root::plan(), 2);
    keeper.apply({CacheRegime::cold});
    const CacheReport report = keeper.report();
    ::munmap(memory, kSize);
    CHECK(report.before == kSize);
    CHECK(report.stayed_files == 1);
    CHECK(report.stayed_bytes == kSize);
    REQUIRE(report.stayed.size() == 1);
    CHECK(report.stayed[0].path == "sub/b");
    CHECK(report.stayed[0].bytes == kSize);
    CHECK(report.stayed[0].why.find("maps") != std::string::npos);
    CHECK(root.resident("a") == 0);
}

TEST_CASE("regimes: the default follows the recording") {
    const Root root;
    CachePlan plan = Root::plan();
    CacheRegime regime = CacheRegime::cold;
    SUBCASE("it fetched") { plan.recorded.fetched_bytes = plan.recorded.read_bytes; }
    SUBCASE("it did not") {
        plan.recorded.fetched_bytes = 0;
        regime = CacheRegime::recorded;
    }
    CacheKeeper keeper(root.fd.get(), plan, 2);
    keeper.apply({});
    CHECK(keeper.report().choice.regime == regime);
    CHECK(keeper.report().recorded.fetched_bytes == plan.recorded.fetched_bytes);
    if (!root.in_memory()) {
        if (regime == CacheRegime::cold) {
            CHECK(root.resident("a") == 0);
        }
    }
}

TEST_CASE("regimes: memory is never cold, and that is told") {
    const UniqueFd root(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root.valid() || !lies_in_memory(root.get())) {
        REPRISE_SKIP("/dev/shm is no tmpfs here");
    }
    const std::string name = "reprise-test-" + std::to_string(::getpid());
    write_file("/dev/shm/" + name, std::string(kSize, 'm'));
    CachePlan plan;
    plan.targets = {{name.c_str(), range(0, 200), {}}};
    CacheKeeper keeper(root.get(), plan, 1);
    keeper.apply({CacheRegime::cold});
    const CacheReport report = keeper.report();
    ::unlink(("/dev/shm/" + name).c_str());
    CHECK(report.memory_files == 1);
    CHECK(report.files == 1);
    CHECK(report.before == kSize);
    CHECK(report.stayed_files == 0);
}

TEST_CASE("regimes: a link out of the root is not followed") {
    const Root root;
    const TempDir outside;
    write_file(outside / "a", std::string(kSize, 'o'));
    std::filesystem::create_symlink(outside / "a", root.dir / "link");
    const std::string above = "../" + outside.path().filename().string() + "/a";
    CachePlan plan;
    plan.targets = {{"link", range(0, 200), {}}, {above.c_str(), range(0, 200), {}}};
    CacheKeeper keeper(root.fd.get(), plan, 1);
    keeper.apply({CacheRegime::cold});
    CHECK(keeper.report().files == 0);
    CHECK(keeper.report().before == 0);
    const UniqueFd file(::open((outside / "a").c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(resident_bytes(file.get(), range(0, 200)) == kSize);
}

TEST_CASE("regimes: files that this user may not look at") {
    if (::geteuid() != 0) {
        REPRISE_SKIP("needs root, to be somebody else");
    }
    const Root root;
    std::filesystem::permissions(root.dir.path(), std::filesystem::perms(0755));
    std::filesystem::permissions(root.dir / "a", std::filesystem::perms(0644));
    std::filesystem::permissions(root.dir / "sub/b", std::filesystem::perms(0600));
    CacheKeeper keeper(root.fd.get(), Root::plan(), 1);
    constexpr uid_t kNobody = 65534;
    REQUIRE(::seteuid(kNobody) == 0);
    keeper.apply({CacheRegime::warm});
    keeper.look_again();
    REQUIRE(::seteuid(0) == 0);
    CHECK(keeper.report().files == 2);
    CHECK(keeper.report().unseen == 2);
    CHECK_FALSE(keeper.report().before);
    CHECK_FALSE(keeper.report().after);
}

TEST_CASE("the caches of the machine are not for everybody") {
    if (::geteuid() != 0) {
        CHECK_THROWS_AS(drop_machine_caches(), Error);
        return;
    }
    constexpr uid_t kNobody = 65534;
    REQUIRE(::seteuid(kNobody) == 0);
    CHECK_THROWS_AS(drop_machine_caches(), Error);
    REQUIRE(::seteuid(0) == 0);
}

}  // namespace reprise::test
