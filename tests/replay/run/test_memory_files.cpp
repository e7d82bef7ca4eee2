// SPDX-License-Identifier: MIT
// Files of /dev/shm are memory in a replay, too. Mounting needs root; skipped aloud without.
#include <doctest/doctest.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "replay/run/memory_files.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

bool in_memory(const fs::path& place) {
    struct statfs found {};
    return statfs(place.c_str(), &found) == 0 && found.f_type == TMPFS_MAGIC;
}

/// Without it as long as this lives.
class WithoutMounting {
public:
    WithoutMounting() { set(false); }
    ~WithoutMounting() { set(true); }
    WithoutMounting(const WithoutMounting&) = delete;
    WithoutMounting& operator=(const WithoutMounting&) = delete;

private:
    static void set(bool may) {
        __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
        __user_cap_data_struct data[2] = {};
        REQUIRE(syscall(SYS_capget, &header, data) == 0);
        constexpr uint32_t kBit = 1U << CAP_SYS_ADMIN;
        data[0].effective = may ? data[0].effective | kBit : data[0].effective & ~kBit;
        REQUIRE(syscall(SYS_capset, &header, data) == 0);
    }
};

/// A job that keeps a file in /dev/shm, as PyTorch's loaders do, and leaves it there.
struct SharedMemoryJob {
    PreparedRoot prepared;
    JobBuilder job{prepared.dir / "job.oplog"};
    fs::path shm = prepared.root / "dev/shm";

    explicit SharedMemoryJob(const char* path = "/dev/shm/torch_1") {
        fs::create_directories(shm);
        const TaskId task = job.lone_task();
        const HandleId made = job.open(task, job.file(path, Origin::created, Role::ipc), O_RDWR | O_CREAT, 0600);
        job.write(task, made, 0, 5'000);
        job.close(task, made);
    }
    ReplayResult run(PathMap maps = {}) {
        const LogReader log = job.finish();
        ReplayOptions options = afap(prepared.root);
        options.maps = std::move(maps);
        ReplayResult result = replay(log, options);
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        CHECK(result.ops == 3);
        return result;
    }
};

}  // namespace

TEST_CASE("files of /dev/shm lie in a tmpfs of the run, which nobody else sees and which ends with it") {
    SharedMemoryJob with;
    if (geteuid() != 0) {
        REPRISE_SKIP("mounting needs root");
    }
    if (in_memory(with.shm)) {
        REPRISE_SKIP("the folder for tests is a tmpfs itself");
    }
    const ReplayResult result = with.run();
    if (!result.notes.empty() && result.notes[0].find("/dev/shm") != std::string::npos) {
        REPRISE_SKIP("cannot mount: " + result.notes[0]);
    }
    CHECK(fs::is_empty(with.shm));  // what the job left was in the tmpfs
    CHECK(!in_memory(with.shm));
    CHECK(fs::remove_all(with.shm) == 1);  // nothing is mounted there
}

TEST_CASE("files of /dev/shm stay where a rule or the user puts them, and where nobody else has any") {
    SharedMemoryJob with;
    if (in_memory(with.shm)) {
        REPRISE_SKIP("the folder for tests is a tmpfs itself");
    }
    SUBCASE("a rule") {
        fs::create_directories(with.prepared.root / "here");
        const PathMap maps = PathMap::parse({"/dev/shm=here"});
        mark_prepared(with.prepared.root, maps);
        const ReplayResult result = with.run(maps);
        CHECK(result.notes.empty());
        CHECK(fs::file_size(with.prepared.root / "here/torch_1") == 5'000);
    }
    SUBCASE("some were there before") {
        write_file(with.shm / "segment", "x");
        const ReplayResult result = with.run();
        REQUIRE(result.notes.size() == 1);
        CHECK(result.notes[0].find("1 files of /dev/shm") == 0);
        CHECK(result.notes[0].find("mount a tmpfs at " + with.shm.string()) != std::string::npos);
        CHECK(fs::file_size(with.shm / "torch_1") == 5'000);
    }
    SUBCASE("it may not mount") {
        if (geteuid() != 0) {
            REPRISE_SKIP("there is nothing to take away without root");
        }
        const WithoutMounting without;
        const ReplayResult result = with.run();
        REQUIRE(result.notes.size() == 1);
        CHECK(result.notes[0].find("as root (Operation not permitted)") != std::string::npos);
        CHECK(fs::file_size(with.shm / "torch_1") == 5'000);
    }
    SUBCASE("a link leads elsewhere") {
        fs::remove(with.shm);
        fs::create_directories(with.prepared.root / "other");
        fs::create_symlink("../other", with.shm);
        with.run();
        CHECK(fs::file_size(with.prepared.root / "other/torch_1") == 5'000);
    }
}

TEST_CASE("a job without files in /dev/shm gets no tmpfs") {
    SharedMemoryJob with("/dev/shmem");
    with.run();
    CHECK(fs::file_size(with.prepared.root / "dev/shmem") == 5'000);
}
