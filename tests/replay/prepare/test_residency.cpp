// SPDX-License-Identifier: MIT
// The page cache of single files, on a real file system.
#include "replay/prepare/residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>

#include "formats/support/unique_fd.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr uint64_t kPage = RangeSet::kPage;
constexpr uint64_t kSize = 300 * kPage + 100;

RangeSet range(uint64_t from, uint64_t to) {
    RangeSet set;
    set.add(from, to);
    set.clip(kSize);
    return set;
}

/// A file of kSize bytes, on the device and in memory.
struct CachedFile {
    TempDir dir;
    UniqueFd fd;

    CachedFile() {
        write_file(dir / "f", std::string(kSize, 'x'));
        fd.reset(::open((dir / "f").c_str(), O_RDONLY | O_CLOEXEC));
        ::fdatasync(fd.get());
    }
    uint64_t resident(uint64_t from = 0, uint64_t to = kSize) const {
        return resident_bytes(fd.get(), range(from, to)).value_or(UINT64_MAX);
    }
};

#define SKIP_IN_MEMORY(file)                                                              \
    do {                                                                                  \
        if (lies_in_memory((file).fd.get())) {                                            \
            REPRISE_SKIP("the temporary directory is memory; set TMPDIR to a real disk"); \
        }                                                                                 \
    } while (false)

}  // namespace

TEST_CASE("residency: all of a file, nothing of it, and the pages that were filled") {
    const CachedFile file;
    SKIP_IN_MEMORY(file);
    CHECK(file.resident() == kSize);
    REQUIRE(drop_cached(file.fd.get()) == 0);
    CHECK(file.resident() == 0);
    const std::atomic<bool> stop{false};
    std::atomic<uint64_t> done{0};
    REQUIRE(fill_cache(file.fd.get(), 10 * kPage, 80 * kPage, stop, done) == 0);
    CHECK(done == 70 * kPage);
    CHECK(file.resident() == 70 * kPage);
    CHECK(file.resident(10 * kPage, 80 * kPage) == 70 * kPage);
    CHECK(file.resident(0, 11 * kPage) == kPage);
    CHECK(file.resident(79 * kPage, 90 * kPage) == kPage);
    REQUIRE(fill_cache(file.fd.get(), 299 * kPage, kSize, stop, done) == 0);
    CHECK(file.resident(299 * kPage, kSize) == kPage + 100);
    const std::atomic<bool> stopped{true};
    REQUIRE(fill_cache(file.fd.get(), 100 * kPage, 200 * kPage, stopped, done) == 0);
    CHECK(file.resident(100 * kPage, 200 * kPage) == 0);
}

TEST_CASE("residency: cachestat and mincore agree") {
    const CachedFile file;
    SKIP_IN_MEMORY(file);
    if (resident_by_cachestat(file.fd.get(), 0, kPage) < 0) {
        REPRISE_SKIP("cachestat needs Linux 6.5");
    }
    REQUIRE(drop_cached(file.fd.get()) == 0);
    const std::atomic<bool> stop{false};
    std::atomic<uint64_t> done{0};
    for (const uint64_t first : {3, 40, 41, 250}) {
        REQUIRE(fill_cache(file.fd.get(), first * kPage, (first + 2) * kPage, stop, done) == 0);
    }
    for (uint64_t from = 0; from < 300; from += 7) {
        for (const uint64_t pages : {1, 2, 30, 300}) {
            const uint64_t to = std::min(from + pages, uint64_t{300}) * kPage;
            CHECK(resident_by_cachestat(file.fd.get(), from * kPage, to) ==
                  resident_by_mincore(file.fd.get(), from * kPage, to));
        }
    }
    CHECK(resident_by_mincore(file.fd.get(), 0, kSize) == 7 * kPage);
    CHECK(resident_by_cachestat(file.fd.get(), kPage, kPage) == 0);
    CHECK(resident_by_mincore(file.fd.get(), kPage, kPage) == 0);
}

TEST_CASE("residency: what somebody maps stays, and the reason is told") {
    const CachedFile file;
    SKIP_IN_MEMORY(file);
    void* const memory = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file.fd.get(), 0);
    REQUIRE(memory != MAP_FAILED);
    CHECK(*static_cast<volatile const char*>(memory) == 'x');
    REQUIRE(drop_cached(file.fd.get()) == 0);
    CHECK(file.resident(0, kPage) == kPage);
    CHECK(why_cached(file.fd.get()).find("maps") != std::string::npos);
    ::munmap(memory, kPage);
    REQUIRE(drop_cached(file.fd.get()) == 0);
    CHECK(file.resident() == 0);
}

TEST_CASE("residency: of a file on overlayfs, whose data the file below has") {
    const CachedFile file;
    SKIP_IN_MEMORY(file);
    for (const char* name : {"upper", "work", "merged"}) {
        std::filesystem::create_directory(file.dir / name);
    }
    const std::string lower = (file.dir / "lower").string(), merged = (file.dir / "merged").string();
    std::filesystem::create_directory(lower);
    std::filesystem::rename(file.dir / "f", lower + "/f");
    const std::string how =
        "lowerdir=" + lower + ",upperdir=" + (file.dir / "upper").string() + ",workdir=" + (file.dir / "work").string();
    if (::mount("overlay", merged.c_str(), "overlay", 0, how.c_str()) != 0) {
        REPRISE_SKIP("overlayfs cannot be mounted here");
    }
    {
        const UniqueFd above(::open((merged + "/f").c_str(), O_RDONLY | O_CLOEXEC));
        CHECK(above.valid());
        CHECK(resident_bytes(above.get(), range(0, kSize)) == kSize);
        CHECK(drop_cached(above.get()) == 0);
        CHECK(resident_bytes(above.get(), range(0, kSize)) == 0);
        CHECK(file.resident() == 0);
    }
    ::umount(merged.c_str());
}

TEST_CASE("residency: memory is no storage") {
    const UniqueFd memory(::memfd_create("residency", MFD_CLOEXEC));
    REQUIRE(memory.valid());
    CHECK(lies_in_memory(memory.get()));
    CHECK(why_cached(memory.get()) == "its file system is memory");
    const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK_FALSE(lies_in_memory(proc.get()));
}

TEST_CASE("residency: the kernel tells nothing of others' files") {
    if (::geteuid() != 0) {
        REPRISE_SKIP("needs root, to be somebody else");
    }
    const CachedFile file;
    constexpr uid_t kNobody = 65534;
    REQUIRE(::seteuid(kNobody) == 0);
    const bool told = resident_bytes(file.fd.get(), range(0, kSize)).has_value();
    REQUIRE(::seteuid(0) == 0);
    CHECK_FALSE(told);
}

TEST_CASE("residency: bad descriptors") {
    CHECK(drop_cached(-1) == -EBADF);
    CHECK(resident_by_mincore(-1, 0, kPage) == -EBADF);
    CHECK_FALSE(resident_bytes(-1, range(0, kPage)));
    CHECK_FALSE(lies_in_memory(-1));
    const std::atomic<bool> stop{false};
    std::atomic<uint64_t> done{0};
    CHECK(fill_cache(-1, 0, kPage, stop, done) == -EBADF);
}

}  // namespace reprise::test
