// SPDX-License-Identifier: MIT
// The one word on how far a run's times may be trusted, and its reason.
#include "replay/run/trust.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Ten seconds, of them four of compute, on time and alone on two processors.
ReplayResult good_run() {
    ReplayResult result;
    result.timed = true;
    result.elapsed_ns = 10'000 * kMs;
    result.machine.cpus = 2;
    result.lateness.add(12'000, 1000);
    result.fidelity.computing_asked_ns = 4e9;
    result.fidelity.computing_took_ns = 4.01e9;
    result.fidelity.stolen_cpus = 0;
    result.fidelity.other_cpus = 0.05;
    result.cpu_speed.source = CpuSpeed::Source::same_machine;
    return result;
}

void check(const ReplayResult& result, std::string_view word, std::string_view reason) {
    const Trust trust = trust_in(result);
    CHECK(trust_name(trust.level) == word);
    CHECK(trust.reason == reason);
}

}  // namespace

TEST_CASE("trust: good says what was looked at") {
    check(good_run(), "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    ReplayResult result = good_run();
    result.fidelity.stolen_cpus = 0.01;
    check(result, "good", "lateness p99 12.0 us, steal time 0.01 of 2 CPUs, CPU speed verified");
    result.fidelity.stolen_cpus = -1;
    check(result, "good", "lateness p99 12.0 us, steal time unknown, CPU speed verified");
}

TEST_CASE("trust: poor where what was read is neither in memory nor on the device") {
    constexpr uint64_t kMiB = 1 << 20;
    const auto run = [](uint64_t device) {
        ReplayResult result = good_run();
        result.machine.memory_bytes = 1000 * kMiB;
        result.device_read_bytes = device;
        result.device_counter.emplace();
        CacheReport cache;
        cache.files = 3;
        cache.bytes = 60 * kMiB;
        cache.before = 0;
        cache.after = 60 * kMiB;
        cache.data_bytes = 80 * kMiB;
        result.cache = cache;
        return result;
    };
    const std::string_view words = "have no data on the device: neither storage nor memory was measured";
    ReplayResult result = run(kMiB);
    CHECK(device_data(result) == 80 * kMiB);
    // Read past the page cache, it comes from the device as often as it is read.
    result.access_counts[AccessCount::direct_fetched] = 180 * kMiB;
    CHECK(device_data(result) == 260 * kMiB);
    result.access_counts = {};
    check(result, "poor", "files that are read " + std::string(words));
    result.cache->sparse_files = 2;
    check(result, "poor", "2 of 3 files that are read " + std::string(words));
    for (const auto& change : std::vector<std::function<void(ReplayResult&)>>{
             [](ReplayResult& r) { r.device_read_bytes = 30 * kMiB; },
             [](ReplayResult& r) { r.device_counter->read_bytes = 30 * kMiB; },  // threads of the file system
             [](ReplayResult& r) { r.cache->before = 30 * kMiB; }, [](ReplayResult& r) { r.cache->after = 10 * kMiB; },
             [](ReplayResult& r) { r.cache->bytes = r.cache->before.emplace(4096); },
             [](ReplayResult& r) { r.cache->hole_bytes = r.cache->recorded.hole_bytes = 60 * kMiB; },  // as in the job
             [](ReplayResult& r) { r.cache->uncached_names = 2; },  // their pages may have been in memory
             [](ReplayResult& r) { r.cache->memory_files = 1; }, [](ReplayResult& r) { r.cache->unseen = 1; },
             [](ReplayResult& r) { r.cache.reset(); }}) {
        ReplayResult other = run(0);
        change(other);
        CHECK_FALSE(reads_no_data(other));
        CHECK(trust_in(other).level == Trust::Level::good);
    }
    // Reads past the page cache leave nothing in memory.
    ReplayResult direct = run(0);
    direct.cache->after = 0;
    CHECK_FALSE(reads_no_data(direct));
    direct.reads_direct = true;
    direct.bytes_read = 60 * kMiB;
    CHECK(reads_no_data(direct));
    // ... and neither do files without blocks, in little memory.
    ReplayResult limited = run(0);
    limited.cache->after = 5 * kMiB;
    limited.cache->hole_bytes = 60 * kMiB;
    CHECK(reads_no_data(limited));
    // Files without blocks, whatever others read meanwhile.
    ReplayResult busy = run(0);
    busy.device_counter->read_bytes = 30 * kMiB;
    CHECK_FALSE(reads_no_data(busy));
    busy.cache->hole_bytes = 60 * kMiB;
    CHECK(reads_no_data(busy));
    busy.cache->uncached_names = 3;
    CHECK(reads_no_data(busy));
    result.bytes_written = 300 * kMiB;  // of which it may read some again
    CHECK_FALSE(device_data(result));
    result.bytes_written = 0;
    result.cache->data_bytes.reset();
    CHECK_FALSE(device_data(result));
}

TEST_CASE("trust: what the recording's device read, and this one need not") {
    ReplayResult result = good_run();
    CacheReport cache;
    cache.choice.regime = CacheRegime::cold;
    cache.recorded.pages_known = true;
    cache.recorded.read_bytes = cache.bytes = 40 * kMiB;
    cache.recorded.fetched_bytes = 40 * kMiB;
    cache.before = 0;
    result.cache = cache;
    result.device_counter.reset();
    result.device_read_bytes = 11 * kMiB;
    check(result, "poor",
          "the device read 11.0 MiB of the 40.0 MiB that were not in memory: they are compressed here, or shared with "
          "other files, and were not when recorded");
    result.device_read_bytes = 25 * kMiB;
    CHECK(trust_in(result).level == Trust::Level::fair);
    result.device_read_bytes = 35 * kMiB;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.device_read_bytes = 11 * kMiB;
    for (const auto& change : std::vector<std::function<void(ReplayResult&)>>{
             [](ReplayResult& r) { r.cache->recorded.fetched_bytes = 12 * kMiB; },
             [](ReplayResult& r) { r.cache->before = 30 * kMiB; },
             [](ReplayResult& r) { r.cache->choice.regime = CacheRegime::as_is; },
             [](ReplayResult& r) { r.cache->recorded.pages_known = false; },
             [](ReplayResult& r) { r.cache->uncached_names = 1; }, [](ReplayResult& r) { r.cache->unseen = 1; },
             [](ReplayResult& r) { r.device_counter = DeviceCounter{.read_bytes = 40 * kMiB}; }}) {
        ReplayResult other = result;
        change(other);
        CHECK(trust_in(other).reason.find("the device read") == std::string::npos);
    }
}

TEST_CASE("trust: at most fair where mapped files are cold here and were in memory when recorded") {
    ReplayResult result = good_run();
    result.cache.emplace();
    result.cache->choice.regime = CacheRegime::cold;
    result.cache->recorded.touched_bytes = result.cache->recorded.touched_in_memory = 100 * 4096;
    const std::string words = "mapped files were in memory when recorded: not all their pages are known (record cold)";
    result.cache->recorded.read_bytes = 1000 * 4096;
    check(result, "fair", words);
    result.cache->recorded.read_bytes = 200 * 4096;
    check(result, "poor", words);
    result.cache->choice.regime = CacheRegime::recorded;
    CHECK(trust_in(result).level == Trust::Level::good);
}

TEST_CASE("trust: a limit takes back pages of mapped files, which the recording does not know") {
    ReplayResult result = good_run();
    result.cache.emplace();
    result.cache->recorded.read_bytes = 1000 * 4096;
    result.cache->recorded.touched_bytes = 500 * 4096;
    LimitedMemory limited;
    limited.limit = 1000 * 4096;
    limited.job_known = true;
    result.memory = limited;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.memory->group.reached = 10;
    CHECK(trust_in(result).level == Trust::Level::poor);
    CHECK(trust_in(result).reason.starts_with("pages of mapped files that a limit takes back are read once more"));
    result.cache->recorded.touched_bytes = 200 * 4096;
    CHECK(trust_in(result).level == Trust::Level::fair);
    result.cache->recorded.touched_bytes = 50 * 4096;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.cache->recorded.around_bytes = 600 * 4096;  // 650 of 1600 pages
    CHECK(trust_in(result).level == Trust::Level::poor);
    result.cache->recorded.around_bytes = 0;
    // What the job wrote and reads back is data, too.
    result.cache->data_bytes = 4096;
    result.machine.memory_bytes = uint64_t{1} << 30;
    CHECK_FALSE(device_data(result));
    result.memory->group.reached = 0;
    CHECK(device_data(result) == 4096);
}

TEST_CASE("trust: less is read around page faults than when recorded") {
    ReplayResult result = good_run();
    result.around = {256 << 10, 1 << 20, 128 << 10, 4096};
    const std::string_view words =
        "files are read 4.00 KiB ahead here, and at least 128 KiB when recorded: the log does not say which of 256 KiB "
        "around page faults the job used, and each of those pages would be a read (record with read_ahead_kb at 4)";
    check(result, "fair", words);
    result.around.bytes = 320 << 10;
    CHECK(trust_in(result).level == Trust::Level::poor);
    result.around.read_ahead = 128 << 10;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.around.read_ahead.reset();  // a tmpfs
    CHECK(trust_in(result).level == Trust::Level::good);
    result.around.read_ahead = 0;
    CHECK(trust_in(result).reason.ends_with("(record with read_ahead_kb at 4)"));
    result.around.bytes = 60 << 10;  // little
    CHECK(trust_in(result).level == Trust::Level::good);
    result.around = {1 << 20, 2 << 20, 0, 4096};  // the log does not say what was fetched
    CHECK(trust_in(result).level == Trust::Level::good);
}

TEST_CASE("trust: tasks that wrote one after another write at the same time, locks are polled") {
    ReplayResult result = good_run();
    result.recorded_ns = result.elapsed_ns;
    result.serial_writers = {12, 1'000 * kMs};
    CHECK(trust_in(result).level == Trust::Level::good);
    result.serial_writers.together_ns = 1'001 * kMs;
    const std::string_view words =
        "12 tasks that wrote one after another when recorded write at the same time for 1.00 s here: a job that waits "
        "for the last one, or skips, does not";
    check(result, "fair", words);
    result.recorded_ns = result.elapsed_ns / 2;
    check(result, "poor", words);
    result.serial_writers = {};
    result.doubts.lock_polls = 3;
    CHECK(trust_in(result).level == Trust::Level::fair);
    result.doubts.requests = 200;
    result.doubts.unreported_requests = 20;  // a tenth
    CHECK(trust_in(result).level == Trust::Level::fair);
    result.doubts.unreported_requests = 21;
    check(result, "poor",
          "the log has no result of 21 of 200 asynchronous requests (of libaio, another thread may take them from "
          "memory): what "
          "waited "
          "for them does not wait here");
}

TEST_CASE("trust: a thread that is done too late for a sleep, requests that share syncs") {
    ReplayResult result = good_run();
    result.recorded_ns = result.elapsed_ns;
    result.slept_through = {1, 2, 300 * kMs};
    check(result, "fair",
          "task 2 was done while task 1 slept when recorded, and 300 ms after that here: a job that sleeps "
          "until it is done would sleep on");
    result.slept_through.late_ns = result.elapsed_ns / 5;
    CHECK(trust_in(result).level == Trust::Level::poor);
    result.slept_through = {};
    result.doubts.asked_syncs = 20;
    result.doubts.syncs_for_others = 4;
    const std::string_view words =
        "task 4 syncs what several connections ask for (20 times): how many requests share a "
        "sync depends on how long one takes";
    check(result, "fair", words);
    result.recorded_ns = result.elapsed_ns / 2;
    check(result, "poor", words);
}

TEST_CASE("trust: sleeps that may limit a rate, and ranks of MPI, where the time is not the recorded one") {
    ReplayResult result = good_run();
    result.recorded_ns = result.elapsed_ns;
    result.doubts.mpi_processes = 2;
    result.helpers.limited_ns = result.elapsed_ns;
    result.path.of(PathPart::asleep) = result.elapsed_ns;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.recorded_ns = result.elapsed_ns / 10 * 9;
    Trust trust = trust_in(result);
    CHECK(trust.level == Trust::Level::fair);
    CHECK(trust.reason.find("2 processes use MPI") != std::string::npos);
    CHECK(trust.reason.find("if they limit a rate") != std::string::npos);
    result.recorded_ns = result.elapsed_ns / 2;
    trust = trust_in(result);
    CHECK(trust.level == Trust::Level::poor);
    CHECK(trust.reason.starts_with("2 processes use MPI"));
}

TEST_CASE("trust: the speed of processors matters where something computes") {
    ReplayResult result = good_run();
    result.cpu_speed = {CpuSpeed::Source::no_profile, 1.0, 0.0};
    check(result, "fair", "CPU speed not verified: the recording has no profile");
    result.cpu_speed = {CpuSpeed::Source::profiles, 1.25, 0.05};
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed measured, 1.25 of the recording's +-5 %");
    result.cpu_speed.uncertainty = 0.3;
    check(result, "fair", "CPU speed measured, 1.25 of the recording's +-30 %");
    result.cpu_speed = {CpuSpeed::Source::same_boot, 1.67, 0.77};
    check(result, "poor",
          "CPU speed 1.67 of the recording's, though this machine has not been rebooted since (--cpu-speed 1 ignores "
          "that)");
    result.cpu_speed = {CpuSpeed::Source::given, 2.0, 0.0};
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed as asked");
    result.cpu_speed = {CpuSpeed::Source::no_profile, 1.0, 0.0};
    result.fidelity.computing_asked_ns = result.fidelity.computing_took_ns = 0;
    check(result, "good", "lateness p99 12.0 us, no steal");
    result.timed = false;
    check(result, "good", "no times to keep, no steal");
}

TEST_CASE("trust: requests that were in flight together and are made one by one are another load") {
    ReplayResult result = good_run();
    result.async_depth = 1;
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    result.async_depth = 32;
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    result.requests_at_once = true;
    check(result, "poor", "asynchronous requests were made one by one; the recording had up to 32 at a time");
}

TEST_CASE("trust: tasks that a signal ended, or that only sleep") {
    ReplayResult result = good_run();
    result.recorded_ns = result.elapsed_ns;
    result.helpers.processes = 1;
    result.helpers.signal = 14;
    result.helpers.cut_share = 0.09;
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    result.helpers.cut_share = 0.1;
    const std::string_view ended =
        "1 process was ended by a signal (SIGALRM): the replay does what was done until then, however long that takes";
    check(result, "fair", ended);
    SUBCASE("the time is another one") {
        result.recorded_ns = result.elapsed_ns / 2;
        check(result, "fair", ended);  // for other reasons
        result.path.cut_ns = result.elapsed_ns / 5;
        check(result, "poor", ended);
        result.recorded_ns = result.elapsed_ns * 9 / 10;
        check(result, "fair", ended);
    }
    SUBCASE("nothing else went on") {
        result.helpers = {};
        result.helpers.beats_ns = 2'000 * kMs;
        check(
            result, "fair",
            "for 2.00 s of the 10.0 s nothing went on but sleeps one after the other, beside which others worked when "
            "recorded: the job would be done earlier here");
        result.helpers.signal = 9;
        result.helpers.cut_ns = 4'000 * kMs;
        check(
            result, "poor",
            "for 6.00 s of the 10.0 s nothing went on but what was ended by a signal (SIGKILL) when recorded: the job "
            "would be done earlier here");
    }
}

TEST_CASE("trust: fair names everything that cost more than a little") {
    ReplayResult result = good_run();
    SUBCASE("late") {
        result.lateness.add(200 * kMs, 100);
        check(result, "fair", "lateness p99 200 ms");
    }
    SUBCASE("sleeps") {
        result.fidelity.delay_error.add(kMs, 150);
        result.fidelity.delays_asked_ns = 2e9;
        check(result, "fair", "sleeps took 150 ms too long");
    }
    SUBCASE("compute") {
        result.fidelity.computing_took_ns = 4.56e9;
        check(result, "fair", "compute ran 14 % over: the CPU was shared");
        result.fidelity.recorded_run_queue_ns = 500 * kMs;  // so it was in the recording
        check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    }
    SUBCASE("others") {
        result.fidelity.stolen_cpus = 0.1;
        result.fidelity.other_cpus = 0.5;
        check(result, "fair", "steal time 0.10 of 2 CPUs; other programs used 0.50 of 2 CPUs");
    }
    SUBCASE("a few milliseconds are nothing, however short the run") {
        result.elapsed_ns = 20 * kMs;
        result.fidelity.computing_asked_ns = 4e6;
        result.fidelity.computing_took_ns = 12e6;
        result.fidelity.delay_error.add(9 * kMs);
        check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    }
}

TEST_CASE("trust: what a tolerance covers is not forgotten") {
    ReplayResult result = good_run();
    result.latency.resize(kOpKindLimit);
    result.latency[static_cast<size_t>(OpKind::read)].add(1000, 1000);
    result.mismatches = 1;
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed verified");
    result.mismatches = 2;
    check(result, "fair", "2 of 1,000 ops differ (tolerated)");
    result.mismatches = 101;
    check(result, "poor", "101 of 1,000 ops differ (tolerated)");
}

TEST_CASE("trust: poor is what ends with another exit code") {
    ReplayResult result = good_run();
    result.fidelity.failures = {"This machine could not keep up: p99 lateness of ops is 600 ms.", "more"};
    check(result, "poor", "p99 lateness of ops is 600 ms");
    result.not_same_job = {"2 of 2 I/O ops"};
    check(result, "poor", "it did not do what the job did");
    result.ended = "interrupted: signal 2 (Interrupt)";
    check(result, "poor", "the run did not finish");
}

TEST_CASE("a run's log says what its result says, of the device and of trust") {
    const PreparedRoot prepared;
    JobBuilder job(prepared.dir / "job.oplog");
    const TaskId task = job.lone_task();
    const HandleId in = job.open(task, job.file("/in"));
    job.pread(task, in, 0, 4096);
    job.close(task, in);
    const LogReader log = job.finish();
    ReplayOptions options = afap(prepared.root);
    options.output = prepared.dir / "run.oplog";
    const ReplayResult result = replay(log, options);
    const LogReader run(options.output);
    CHECK(result.trust.level == Trust::Level::poor);  // there is no file to read
    CHECK(read_fact(run.header(), fact::trust) == "poor");
    CHECK(read_fact(run.header(), fact::trust_reason) == result.trust.reason);
    REQUIRE(result.device_read_bytes);
    CHECK(read_fact(run.header(), fact::device_read).value_or(0) == static_cast<int64_t>(*result.device_read_bytes));
    CHECK(read_fact(run.header(), fact::device_read).has_value() == device_reads_known(result));
    CHECK(read_fact(run.header(), fact::device_written).has_value() == result.device_write_bytes.has_value());
    CHECK_FALSE(read_fact(run.header(), fact::cache_regime));  // nobody looked
    for (const CacheRegime regime : {CacheRegime::cold, CacheRegime::warm}) {
        options.cache = CacheRequest{regime};
        std::filesystem::remove(options.output);
        replay(log, options);
        CHECK(read_fact(LogReader(options.output).header(), fact::cache_regime) == cache_regime_name(regime));
    }
}

TEST_CASE("ops are observed beside those of the recording, and I/O ops that are left out are counted apart") {
    const PreparedRoot prepared;
    JobBuilder job(prepared.dir / "job.oplog");
    const TaskId task = job.lone_task();
    const HandleId in = job.open(task, job.file("/in"));
    job.pread(task, in, 0, 4096);
    const HandleId out = job.open(task, job.file("/usr/lib/x.so", Origin::existed, Role::program));
    job.pread(task, out, 0, 4096);
    job.add(task, {.kind = OpKind::compute, .duration = 1'000});
    const LogReader log = job.finish();
    ReplayOptions options = afap(prepared.root);
    options.filter = OpFilter();
    std::string seen;
    options.observe = [&](const ObservedOp& op) {
        CHECK(op.task == task);
        CHECK(op.recorded.kind == op.here.kind);
        seen += std::string(info(op.here.kind).name) + (op.performed ? " " : "(not performed) ") +
                std::to_string(op.recorded.result) + " " + std::to_string(op.here.result) + ", ";
    };
    const ReplayResult result = replay(log, options);
    CHECK(seen == "open 3 -2, pread(not performed) 4096 -9, compute 0 0, ");
    CHECK(result.left_out[static_cast<size_t>(LeftOut::filter)] == 2);
    CHECK(result.left_out_io[static_cast<size_t>(LeftOut::filter)] == 2);
    CHECK(result.left_out_io[static_cast<size_t>(LeftOut::not_open)] == 1);
}

TEST_CASE("nothing read from the device is known to be nothing only where such reads are accounted") {
    ReplayResult result;
    CHECK_FALSE(device_reads_known(result));
    for (const char* type : {"nfs4", "fuse.sshfs", "9p", "zfs"}) {
        result.machine.file_system = type;
        CHECK_FALSE(device_reads_known(result));
    }
    result.device_read_bytes = 4096;
    CHECK(device_reads_known(result));
    result.device_read_bytes = 0;
    CHECK_FALSE(device_reads_known(result));
    result.machine.file_system = "tmpfs";
    CHECK(device_reads_known(result));
    result.machine.file_system = "ext4";
    result.device_counter = DeviceCounter{};
    CHECK(device_reads_known(result));
}

TEST_CASE("trust: an interval that reaches down to nothing is not good") {
    ReplayResult result = good_run();
    result.trust = trust_in(result);
    result.interval = TimeInterval{1'100 * kMs, 12'000 * kMs, {}};
    doubt_wide_interval(result);
    CHECK(result.trust.level == Trust::Level::good);
    result.interval->low_ns = 0;
    doubt_wide_interval(result);
    CHECK(result.trust.level == Trust::Level::fair);
    CHECK(result.trust.reason == "the 95 % interval reaches down to 0 ns");
    result.trust = {Trust::Level::poor, "another"};
    doubt_wide_interval(result);
    CHECK(result.trust.reason == "another");
}

TEST_CASE("trust: what says little about the storage is no measurement") {
    ReplayResult result = good_run();
    SUBCASE("waits of unknown cause") {
        result.path.of(PathPart::unexplained) = 900 * kMs;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.path.of(PathPart::unexplained) = 2'000 * kMs;
        check(result, "fair", "2.00 s of the 10.0 s are recorded waits of unknown cause");
        CHECK(not_measured(result).empty());
        result.path.of(PathPart::unexplained) = 9'000 * kMs;
        check(result, "poor", "9.00 s of the 10.0 s are recorded waits of unknown cause, as long on any storage");
        CHECK(!not_measured(result).empty());
    }
    SUBCASE("data that the filter leaves out") {
        constexpr uint64_t kMiB = 1 << 20;
        result.doubts.kept_bytes = 60 * kMiB;
        result.doubts.left_out_bytes = 6 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.doubts.left_out_bytes = 20 * kMiB;
        check(result, "fair", "20.0 MiB of the job's 80.0 MiB are left out as program or system files");
        result.doubts.left_out_bytes = 100 * kMiB;
        check(result, "poor",
              "100 MiB of the job's 160 MiB are left out as program or system files; select with --only PATH");
        result.doubts.kept_bytes = 0;
        result.doubts.left_out_bytes = kMiB / 2;
        CHECK(trust_in(result).level == Trust::Level::good);  // it is hardly anything
    }
    SUBCASE("data that has no place below the root") {
        constexpr uint64_t kMiB = 1 << 20;
        const std::string why =
            " MiB of the job's 100 MiB have no place below the root (paths longer than 4,095 bytes, relative or "
            "empty), and are left out";
        result.doubts.kept_bytes = 100 * kMiB;
        result.doubts.unplaced_bytes = 9 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.doubts.unplaced_bytes = 20 * kMiB;
        check(result, "fair", "20.0" + why);
        CHECK(why_no_interval(result) == "data is left out");
        result.doubts.unplaced_bytes = 40 * kMiB;
        check(result, "poor", "40.0" + why);
        CHECK(not_measured(result).empty());
        result.doubts.unplaced_bytes = 60 * kMiB;
        CHECK(not_measured(result) == "60.0" + why);
    }
    SUBCASE("holes of the recorded files") {
        constexpr uint64_t kMiB = 1 << 20;
        result.cache.emplace();
        result.cache->bytes = 200 * kMiB;
        result.recorded_holes = 10 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.recorded_holes = 50 * kMiB;
        check(result, "fair",
              "50.0 MiB of the 200 MiB that are read were compressed or sparse on the recording's device, and are not "
              "here");
        result.recorded_holes = 196 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::poor);
        result.cache->hole_bytes = 196 * kMiB;  // here, too
        CHECK(trust_in(result).level == Trust::Level::good);
        result.cache->recorded.hole_bytes = 196 * kMiB;  // but others, which the recording knows
        CHECK(trust_in(result).level == Trust::Level::poor);
        result.cache->hole_bytes = result.recorded_holes = result.cache->recorded.hole_bytes = 0;
        result.cache->recorded.unserved_bytes = 50 * kMiB;  // filled or removed since
        check(result, "fair",
              "50.0 MiB of the 200 MiB that are read came from no device in the recording: the files were sparse, "
              "compressed or in memory then, and are not here");
    }
    SUBCASE("holes that were none when recorded") {
        constexpr uint64_t kMiB = 1 << 20;
        result.cache.emplace();
        result.cache->bytes = 64 * kMiB;
        result.cache->hole_bytes = 5 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.cache->hole_bytes = 16 * kMiB;
        check(result, "fair",
              "16.0 MiB of the 64.0 MiB that are read have no blocks here, and had when recorded (sparse or compressed "
              "files)");
        result.cache->hole_bytes = 40 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::poor);
        result.cache->recorded.hole_bytes = 30 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::fair);
        result.recorded_holes = 10 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
    }
    SUBCASE("what the recording fetched again") {
        constexpr uint64_t kMiB = 1 << 20;
        result.cache.emplace();
        result.cache->bytes = 60 * kMiB;
        result.cache->before = 0;
        result.cache->recorded.fetched_bytes = 60 * kMiB;
        result.device_read_bytes = 60 * kMiB;
        result.doubts.refetched_bytes = 6 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);  // 9 %
        result.doubts.refetched_bytes = 15 * kMiB;
        check(result, "fair",
              "the recording fetched 15.0 MiB again that had been in memory (dropped caches, or little memory), and "
              "memory keeps them here");
        result.doubts.refetched_bytes = 60 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::poor);
        result.device_read_bytes = 115 * kMiB;  // as here
        CHECK(trust_in(result).level == Trust::Level::good);
    }
    SUBCASE("a log without the flags of its opens") {
        const std::string_view words =
            "fio's log does not say how files were opened: direct and synchronous I/O is buffered here";
        result.doubts.flags_assumed = true;
        result.bytes_read = result.bytes_written = 100;
        check(result, "fair", std::string(words));
        result.bytes_written = 200;
        check(result, "poor", std::string(words));
    }
    SUBCASE("memory that the job held") {
        constexpr uint64_t kMiB = 1 << 20;
        result.cache.emplace();
        result.cache->bytes = 100 * kMiB;
        result.bytes_read = 300 * kMiB;
        result.recorded_memory = 200 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);  // unknown what is free
        result.free_memory = 300 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.free_memory = 270 * kMiB;
        check(result, "poor",
              "the job held 200 MiB of memory, which the replay does not: with 270 MiB free here, it may read 200 MiB "
              "from the device again");
        result.free_memory = 100 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::poor);
        result.bytes_read = 130 * kMiB;
        check(result, "fair",
              "the job held 200 MiB of memory, which the replay does not: with 100 MiB free here, it may read 30.0 MiB "
              "from the device again");
        result.bytes_read = 100 * kMiB;  // nothing twice
        CHECK(trust_in(result).level == Trust::Level::good);
        result.bytes_read = 300 * kMiB;
        result.recorded_memory = 0;  // unknown
        CHECK(trust_in(result).level == Trust::Level::good);
    }
    SUBCASE("names that only the recording had to read") {
        result.machine.file_system = "ext4";
        result.recorded_ns = 10'000 * kMs;
        result.doubts.names_ns = 6'000 * kMs;
        result.recorded_name_waits = 1'000;
        result.name_waits = 100;
        result.names_cached_ns = 2'000 * kMs;
        constexpr const char* kNames =
            "names were cached here, and not when recorded (2.00 s of the 10.0 s): unmount and mount the file system "
            "before the run, or --drop-caches";
        check(result, "fair", kNames);
        CHECK(not_measured(result).empty());
        SUBCASE("most of its time") {
            result.names_cached_ns = 6'000 * kMs;
            CHECK(trust_in(result).level == Trust::Level::poor);
            CHECK(!not_measured(result).empty());
        }
        SUBCASE("the device was read here, too") {
            result.device_read_bytes = 1 << 20;
            CHECK(trust_in(result).level == Trust::Level::good);
            result.cache.emplace();
            result.cache->data_bytes = 1 << 20;  // but for data
            check(result, "fair", kNames);
        }
        SUBCASE("calls took long here, too") {
            result.name_waits = 101;
            CHECK(trust_in(result).level == Trust::Level::good);
        }
        SUBCASE("as asked, or in memory") {
            result.cache.emplace();
            result.cache->choice.asked = CacheRegime::warm;
            CHECK(trust_in(result).level == Trust::Level::good);
            result.cache->choice.asked.reset();
            check(result, "fair", kNames);
            result.cache->dropped_all = true;
            CHECK(trust_in(result).level == Trust::Level::good);
            result.cache.reset();
            result.machine.file_system = "tmpfs";
            CHECK(trust_in(result).level == Trust::Level::good);
        }
    }
    SUBCASE("a recording that had to wait for CPUs") {
        result.recorded_ns = 10'000 * kMs;
        result.fidelity.recorded_run_queue_ns = 1'000 * kMs;
        CHECK(trust_in(result).level == Trust::Level::good);
        result.fidelity.recorded_run_queue_ns = 8'000 * kMs;
        check(result, "fair", "the recording waited 8.00 s for CPUs (a quota, or few CPUs)");
        result.fidelity.computing_took_ns += 7e9;  // so did the run
        CHECK(trust_in(result).level == Trust::Level::good);
    }
}

TEST_CASE("trust: poor where the recording may lack writes to mapped files") {
    ReplayResult result = good_run();
    result.unseen_writes = 1;
    check(result, "poor",
          "writes to 1 mapping of files on tmpfs leave no page fault and may be missing: record elsewhere");
}

TEST_CASE("trust: at most fair where recorded tasks were pinned to fewer CPUs than the run has") {
    ReplayResult result = good_run();
    result.machine.cpus = 4;
    result.pinned_tasks = 3;
    result.pinned_cpus = 1;
    check(result, "fair", "3 tasks ran pinned to 1 CPU, here on any of 4: replay under taskset -c 0");
    result.pinned_cpus = 2;
    result.pinned_tasks = 1;
    check(result, "fair", "1 task ran pinned to 2 CPUs, here on any of 4: replay under taskset -c 0-1");
    SUBCASE("as many") { result.pinned_cpus = 4; }
    SUBCASE("nobody") { result.pinned_tasks = 0; }
    SUBCASE("nothing computes") { result.fidelity.computing_asked_ns = result.fidelity.computing_took_ns = 0; }
    CHECK(trust_in(result).level == Trust::Level::good);
}

TEST_CASE("trust: at most fair where others move data on the device") {
    constexpr uint64_t kMiB = 1 << 20;
    ReplayResult result = good_run();
    result.latency.resize(kOpKindLimit);
    result.device_read_bytes = 100 * kMiB;
    result.dirtied_bytes = 50 * kMiB;
    result.device_counter = DeviceCounter{110 * kMiB, 60 * kMiB};
    CHECK(moved_by_others(result) == 10 * kMiB);
    CHECK(trust_in(result).level == Trust::Level::good);  // too little
    SUBCASE("reads") {
        result.device_counter->read_bytes = 150 * kMiB;
        check(result, "fair", "other programs moved 50.0 MiB on the device meanwhile");
        result.device_read_bytes = 0;  // threads of the file system read: for whom is not known
        result.bytes_read = 150 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
    }
    SUBCASE("writes beyond what the journal may write again") {
        result.device_read_bytes = 110 * kMiB;
        result.device_counter->write_bytes = 115 * kMiB;
        check(result, "fair", "other programs moved 40.0 MiB on the device meanwhile");
        for (int i = 0; i < 640; ++i) {
            result.latency[static_cast<size_t>(OpKind::fsync)].add(1000);
        }
        CHECK(moved_by_others(result) == 0);
    }
    SUBCASE("a small part") {
        result.device_read_bytes = 1000 * kMiB;
        result.device_counter->read_bytes = 1050 * kMiB;
        CHECK(trust_in(result).level == Trust::Level::good);
    }
    SUBCASE("not known") {
        result.device_counter.reset();
        CHECK(moved_by_others(result) == 0);
    }
}

TEST_CASE("trust: at most fair where the file system compresses") {
    ReplayResult result = good_run();
    result.machine.compresses = compression_of({"btrfs", "/dev/x", "rw,compress=zstd:3,space_cache=v2"}, false);
    CHECK(trust_in(result).level == Trust::Level::good);  // of no data
    result.bytes_written = 100 << 20;
    check(result, "fair", "the file system compresses (compress=zstd:3), and the replay's data does not compress");
    CHECK(compression_of({"btrfs", "", "rw,compress-force=lzo"}, false) == "compress-force=lzo");
    CHECK(compression_of({"bcachefs", "", "rw,compression=lz4"}, false) == "compression=lz4");
    CHECK(compression_of({"btrfs", "", "rw,compress=no"}, false).empty());
    CHECK(compression_of({"f2fs", "", "rw,compress_algorithm=lz4"}, false).empty());
    CHECK(compression_of({"btrfs", "", "rw"}, true) == "chattr +c");
    CHECK(compression_of({"zfs", "pool", "rw,xattr"}, false) == "ZFS, unless its compression is off");
    CHECK(compression_of({}, false).empty());
}

TEST_CASE("trust: a depth that the recording hides, where this storage takes longer") {
    ReplayResult result = good_run();
    result.doubts.requests = result.doubts.at_once_requests = 1'500;
    const std::string_view words =
        "1,500 asynchronous requests were each done before the job made the next: how many it keeps in flight where "
        "they take longer is not in the log; record on slower storage, or with cold caches";
    result.recorded_ns = result.elapsed_ns;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.recorded_ns = result.elapsed_ns * 10 / 11;
    check(result, "fair", words);
    result.recorded_ns = result.elapsed_ns / 2;
    check(result, "poor", words);
    result.timed = false;
    CHECK(trust_in(result).level != Trust::Level::poor);
}

TEST_CASE("trust: a storage that refuses O_DIRECT on parts of blocks would refuse the job") {
    using enum AccessCount;
    ReplayResult result = good_run();
    result.bytes_read = 1 << 20;
    result.access_counts[part_reads] = 1;
    result.access_counts[part_asked] = 512;
    result.access_counts[part_fetched] = 4'096;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.access_counts[part_reads] = 400;
    result.access_counts[part_asked] = 200 << 10;
    result.access_counts[part_fetched] = 1'600 << 10;
    check(result, "fair",
          "this storage refuses O_DIRECT on parts of a block: 400 reads took whole ones (1.56 MiB for 200 KiB)");
}

TEST_CASE("trust: calls that were not to wait, and had to, would have the job wait elsewhere") {
    ReplayResult result = good_run();
    result.latency.resize(kOpKindLimit);
    for (int i = 0; i < 1'000; ++i) {
        result.latency[static_cast<size_t>(OpKind::preadv)].add(1'000);
    }
    result.access_counts[AccessCount::waited] = 10;
    CHECK(trust_in(result).level == Trust::Level::good);
    result.access_counts[AccessCount::waited] = 11;
    check(result, "fair", waited_sentence(result.access_counts));
}
