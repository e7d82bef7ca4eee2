// SPDX-License-Identifier: MIT
// The one word on how far a run's times may be trusted, and its reason.
#include "replay/run/trust.h"

#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kMs = 1'000'000;

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

TEST_CASE("trust: the speed of processors matters where something computes") {
    ReplayResult result = good_run();
    result.cpu_speed = {CpuSpeed::Source::no_profile, 1.0, 0.0};
    check(result, "fair", "CPU speed not verified: the recording has no profile");
    result.cpu_speed = {CpuSpeed::Source::profiles, 1.25, 0.05};
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed measured, 1.25 of the recording's +-5 %");
    result.cpu_speed.uncertainty = 0.3;
    check(result, "fair", "CPU speed measured, 1.25 of the recording's +-30 %");
    result.cpu_speed = {CpuSpeed::Source::given, 2.0, 0.0};
    check(result, "good", "lateness p99 12.0 us, no steal, CPU speed as asked");
    result.cpu_speed = {CpuSpeed::Source::no_profile, 1.0, 0.0};
    result.fidelity.computing_asked_ns = result.fidelity.computing_took_ns = 0;
    check(result, "good", "lateness p99 12.0 us, no steal");
    result.timed = false;
    check(result, "good", "no times to keep, no steal");
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
