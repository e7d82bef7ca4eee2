// SPDX-License-Identifier: MIT
// What a run says it read from the device, beside the device's own counter.
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

namespace reprise::test {
namespace fs = std::filesystem;
namespace {

/// An ext4 of its own on a loop device, with nothing of it in the page cache.
class LoopDevice {
public:
    explicit LoopDevice(const fs::path& dir) : image_(dir / "image"), at_(dir / "mount") {
        fs::create_directory(at_);
        ok_ = geteuid() == 0 && shell("truncate -s 256M " + image_.string()) &&
              shell("mkfs.ext4 -q -F -O ^has_journal " + image_.string()) && mount();
    }
    ~LoopDevice() { umount(at_.c_str()); }
    LoopDevice(const LoopDevice&) = delete;
    LoopDevice& operator=(const LoopDevice&) = delete;
    bool ok() const { return ok_; }
    const fs::path& path() const { return at_; }
    /// Forgets what is cached.
    bool again() { return umount(at_.c_str()) == 0 && mount(); }

private:
    static bool shell(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }
    bool mount() { return shell("mount -o loop,noatime " + image_.string() + " " + at_.string()); }
    fs::path image_, at_;
    bool ok_ = false;
};

constexpr int64_t kFile = 8 << 20;

/// Reads the whole of /data/<n> in pieces of 128 KiB.
void read_file(JobBuilder& job, TaskId task, int n) {
    const HandleId h = job.open(task, job.file("/data/" + std::to_string(n)));
    for (int64_t at = 0; at < kFile; at += 128 << 10) {
        job.pread(task, h, at, 128 << 10);
    }
    job.close(task, h);
}

}  // namespace

TEST_CASE("bytes read from the device are counted once, with child processes and threads") {
    const TempDir dir;
    LoopDevice device(dir.path());
    if (!device.ok()) {
        REPRISE_SKIP("a loop device with ext4 needs root and mkfs.ext4");
    }
    fs::create_directory(device.path() / "data");
    for (int n = 0; n < 5; ++n) {
        write_file(device.path() / "data" / std::to_string(n), std::string(kFile, 'x'));
    }
    REQUIRE(device.again());

    JobBuilder job(dir / "job.oplog");
    const ProcessId parent = job.process(), child = job.process(parent), grandchild = job.process(child);
    const TaskId main = job.task(parent), thread = job.task(parent), first = job.task(child),
                 second = job.task(grandchild), other = job.lone_task();
    job.spawn(main, thread);
    job.spawn(thread, first);
    job.spawn(first, second);
    const std::vector<TaskId> readers{main, thread, first, second, other};
    for (size_t n = 0; n < readers.size(); ++n) {
        read_file(job, readers[n], static_cast<int>(n));
    }
    const LogReader log = job.finish();
    ReplayOptions options;
    options.root = device.path();
    options.pace = Pace::afap;
    const ReplayResult result = replay(log, options);
    CHECK(result.mismatches == 0);
    CHECK(result.processes == 4);
    REQUIRE(result.device_read_bytes);
    REQUIRE(result.device_counter);
    const auto counted = static_cast<double>(result.device_counter->read_bytes);
    CHECK(counted >= 5.0 * kFile);
    CHECK(static_cast<double>(*result.device_read_bytes) == doctest::Approx(counted).epsilon(0.01));

    // From the page cache now: nothing from the device.
    ReplayResult warm = replay(log, options);
    for (int tries = 10; *warm.device_read_bytes + warm.device_counter->read_bytes != 0 && tries > 0; --tries) {
        warm = replay(log, options);  // the kernel may take pages back at any time, and other tests drop all caches
    }
    CHECK(*warm.device_read_bytes == 0);
    CHECK(warm.device_counter->read_bytes == 0);
}

TEST_CASE("the cache regime decides what the device reads") {
    const TempDir dir;
    LoopDevice device(dir.path());
    if (!device.ok()) {
        REPRISE_SKIP("a loop device with ext4 needs root and mkfs.ext4");
    }
    fs::create_directory(device.path() / "data");
    write_file(device.path() / "data/0", std::string(kFile, 'x'));
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId file = job.file("/data/0");
    read_file(job, t, 0);
    FetchedPages fetched;
    fetched[file].add(kFile / 4, kFile);
    SUBCASE("known") { job.writer().keep(encode_fetched(fetched)); }
    SUBCASE("unknown") { fetched.clear(); }
    const LogReader log = job.finish();
    ReplayOptions options;
    options.root = device.path();
    options.pace = Pace::afap;
    // Only what was not in memory is read, and nothing else; where all caches are dropped, the program's own pages,
    // too.
    const auto as_it_should = [](const ReplayResult& result, bool drop_all) {
        const auto missing = static_cast<double>(kFile) - static_cast<double>(result.cache->before.value_or(0));
        const auto read = static_cast<double>(result.device_read_bytes.value_or(0));
        return result.cache->after == kFile && read >= 0.99 * missing && (drop_all || read <= 1.01 * missing);
    };
    // The kernel may take pages back at any time, other tests drop all caches, and their mounts bring names into
    // memory: then once more.
    const auto tried = [&](const CacheRequest& cache, const auto& prepare, const auto& is_right) {
        options.cache = cache;
        ReplayResult result;
        for (int tries = 10; tries > 0; --tries) {
            prepare();
            result = replay(log, options);
            REQUIRE(result.cache);
            if (as_it_should(result, cache.drop_all) && is_right(*result.cache)) {
                break;
            }
        }
        CHECK(as_it_should(result, cache.drop_all));
        CHECK(result.mismatches == 0);
        CHECK(result.cache->files == 1);
        CHECK(result.cache->bytes == kFile);
        return *result.cache;
    };
    const auto run = [&](std::optional<CacheRegime> regime, bool drop_all = false) {
        return tried(
            {regime, drop_all}, [] {}, [](const CacheReport&) { return true; });
    };
    const auto on_fresh = [&](CacheRegime regime, const auto& is_right) {
        return tried(
            {regime, false}, [&] { REQUIRE(device.again()); }, is_right);
    };
    CHECK(run(CacheRegime::cold).before == 0);
    CHECK(run(CacheRegime::as_is).before == kFile);
    CHECK(run(CacheRegime::warm).before == kFile);
    CHECK(run(CacheRegime::cold, true).before == 0);
    const bool known = !fetched.empty();
    CHECK(run(CacheRegime::recorded).before == (known ? kFile / 4 : kFile));  // else as it is: warm
    CHECK(run({}).before == (known ? kFile / 4 : kFile));  // three quarters were fetched: as recorded
    CHECK(on_fresh(CacheRegime::warm, [](const CacheReport& report) { return report.found == 0; }).found == 0);
    const CacheReport cold =
        on_fresh(CacheRegime::as_is, [](const CacheReport& report) { return report.uncached_names == 1; });
    CHECK(cold.before == 0);
    CHECK(cold.uncached_names == 1);
    options.cache.reset();
    CHECK_FALSE(replay(log, options).cache);
}

TEST_CASE("cold: where no name is in memory, names stay out; where data is, it is dropped") {
    const TempDir dir;
    LoopDevice device(dir.path());
    if (!device.ok()) {
        REPRISE_SKIP("a loop device with ext4 needs root and mkfs.ext4");
    }
    constexpr int kFiles = 40;
    constexpr int64_t kSize = 64 << 10;
    fs::create_directory(device.path() / "data");
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    for (int n = 0; n < kFiles; ++n) {
        const std::string name = "/data/" + std::to_string(n);
        write_file(device.path().string() + name, std::string(kSize, 'x'));
        const HandleId h = job.open(t, job.file(name));
        job.pread(t, h, 0, kSize);
        job.close(t, h);
    }
    const LogReader log = job.finish();
    REQUIRE(device.again());
    ReplayOptions options;
    options.root = device.path();
    options.pace = Pace::afap;
    options.cache = CacheRequest{CacheRegime::cold, false};
    const auto run = [&](const char* what) {
        CAPTURE(what);
        const ReplayResult result = replay(log, options);
        CHECK(result.mismatches == 0);
        REQUIRE(result.cache);
        CHECK(result.cache->files == kFiles);
        CHECK(result.cache->bytes == kFiles * kSize);
        CHECK(result.cache->before == 0);
        REQUIRE(result.device_counter);
        CHECK(result.device_counter->read_bytes >= kFiles * kSize);
        return result.cache->uncached_names;
    };
    CHECK(run("mounted") == 38);  // all but a few
    CHECK(run("read a moment ago") == 0);
    // Drops names, and keeps data.
    std::ofstream("/proc/sys/vm/drop_caches") << 2;
    CHECK(run("names dropped") == 0);
}

TEST_CASE("bytes written are those of the device's counter") {
    const TempDir dir;
    const LoopDevice device(dir.path());
    if (!device.ok()) {
        REPRISE_SKIP("a loop device with ext4 needs root and mkfs.ext4");
    }
    mark_prepared(device.path());
    ::sync();
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/out", Origin::created), O_WRONLY | O_CREAT);
    for (int i = 0; i < 3; ++i) {
        job.pwrite(t, h, 0, 1 << 20);  // the same place again: only what is synced reaches the device
        job.add(t, {.kind = OpKind::fsync, .handle = h, .fd = job.fd(h)});
    }
    job.pwrite(t, h, 4 << 20, 4 << 20);  // stays in the page cache
    job.close(t, h);
    const LogReader log = job.finish();
    ReplayOptions options;
    options.root = device.path();
    options.pace = Pace::afap;
    const ReplayResult result = replay(log, options);
    CHECK(result.mismatches == 0);
    REQUIRE(result.device_write_bytes);
    CHECK(*result.device_write_bytes >= 3 << 20);
    CHECK(*result.device_write_bytes < (3 << 20) + (2 << 20));  // metadata besides, and not all of it twice
}

TEST_CASE("a file system without one device has no counter") {
    CHECK_FALSE(read_device_counter("/proc"));
    CHECK_FALSE(read_device_counter("/no/such/path"));
    CHECK_FALSE(read_device_counter(""));
}

}  // namespace reprise::test
