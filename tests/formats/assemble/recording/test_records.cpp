// SPDX-License-Identifier: MIT
// Raw recordings to op logs: which records are numbered, and what becomes of the rarer ones.
#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

template <class Struct>
RawBytes empty(uint8_t type) {
    Struct record{};
    record.head.pid = record.head.tid = 100;
    return RawBytes(type, record);
}

// Records that tell nothing, by type.
RawBytes empty_record(uint8_t type) {
    switch (type) {
        case RAW_CALL: return empty<raw_call>(type);
        case RAW_SPAWN: return empty<raw_spawn>(type);
        case RAW_EXEC: return empty<raw_exec>(type);
        case RAW_SWITCH: return empty<raw_switch>(type);
        case RAW_FAULT: return empty<raw_fault>(type);
        case RAW_TOUCH: return empty<raw_touch>(type);
        case RAW_STOLEN: return empty<raw_stolen>(type);
        case RAW_FAULTS: return empty<raw_faults>(type);
        case RAW_URING_SUBMIT:
        case RAW_URING_COMPLETE: return empty<raw_uring>(type);
        case RAW_PAGE_CACHE: return empty<raw_page_cache>(type);
        case RAW_BACKING: return empty<raw_backing>(type);
        case RAW_BLOCK: return empty<raw_block>(type);
        case RAW_MEMORY: return empty<raw_memory>(type);
        case RAW_USES: return empty<raw_uses>(type);
        case RAW_RANK: return empty<raw_rank>(type);
        case RAW_SOCKET: return empty<raw_socket>(type);
        case RAW_CUFILE: return empty<raw_cufile>(type);
        case RAW_HOLES: return empty<raw_holes>(type);
        case RAW_PRESSURE: return empty<raw_pressure>(type);
        case RAW_CLOCK: return empty<raw_clock>(type);
        default: return empty<raw_gpu>(type);
    }
}

// What is said to be missing where such a record stands between the calls with the numbers 0 and `next`.
uint64_t missing(uint8_t type, uint32_t number, uint32_t next) {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    RawBytes between = empty_record(type);
    between.head().time = job.now + kUs;
    between.head().sequence = number;
    job.records().push_back(between);
    job.pread(3, 0xf1, 7, 0, 100).head().sequence = next;
    return job.assemble().counter("capture_records_missing");
}

raw_gpu work(uint32_t device, uint32_t stream, uint64_t begin, uint64_t end) {
    raw_gpu record{};
    record.head.time = end;
    record.begin = begin;
    record.device = device;
    record.stream = stream;
    return record;
}

}  // namespace

TEST_CASE("the records of a task are numbered, whatever they tell") {
    for (const uint8_t type : {RAW_CALL, RAW_SPAWN, RAW_EXEC, RAW_SWITCH, RAW_FAULT, RAW_TOUCH, RAW_STOLEN, RAW_FAULTS,
                               RAW_URING_SUBMIT, RAW_URING_COMPLETE, RAW_PAGE_CACHE}) {
        CAPTURE(int{type});
        CHECK(missing(type, 1, 2) == 0);
        CHECK(missing(type, 1, 4) == 2);
        CHECK(missing(type, 3, 4) == 2);
    }
}

TEST_CASE("a task whose first records are missing") {
    for (const uint32_t number : {1, 2, 7}) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7).head().sequence = number;
        CHECK(job.assemble().counter("capture_records_missing") == number);
    }
}

TEST_CASE("records that the recorder itself makes have no numbers") {
    for (const uint8_t type : {RAW_BLOCK, RAW_PRESSURE, RAW_CLOCK, RAW_GPU, RAW_MEMORY, RAW_USES, RAW_RANK, RAW_SOCKET,
                               RAW_CUFILE, RAW_HOLES}) {
        CAPTURE(int{type});
        CHECK(missing(type, 0, 1) == 0);
        CHECK(missing(type, 77, 1) == 0);
        CHECK(missing(type, 1, 2) == 1);
    }
}

TEST_CASE("pages that went when no recorded task ran belong to nobody") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    raw_page_cache page{};
    page.head.time = job.now + kUs;
    page.head.sequence = 9;
    page.bytes = 4096;
    page.evicted = 1;
    job.records().emplace_back(RAW_PAGE_CACHE, page);
    job.pread(3, 0xf1, 7, 0, 100);
    const AssembledLog log = job.assemble();
    CHECK(log.tables().tasks.size() == 2);  // of which the first is none
    CHECK(log.tables().losses() == 0);
    CHECK(log.reader.header().extra.at("context").find("cache_evicted_kib") != std::string::npos);
}

TEST_CASE("what the machine did is told where something was recorded of it") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    CHECK(job.assemble().reader.header().extra.count("context") == 0);
}

TEST_CASE("the first clock record says when the log begins") {
    RawJob job;
    raw_clock clock{};
    clock.head.time = RawJob::kStart - 5 * kMs;
    clock.realtime = 1'700'000'000'000'000'000;
    job.records().emplace_back(RAW_CLOCK, clock);
    job.open("/d/a", 3, 0xf1, 7);  // begins 9 us after the start
    clock.head.time = RawJob::kStart + 100 * kMs;
    clock.realtime += 1'000'000'000;  // somebody set it
    job.records().emplace_back(RAW_CLOCK, clock);
    CHECK(job.assemble().reader.header().origin_unix_ns == 1'700'000'000'005'009'000);
}

TEST_CASE("each stream of an accelerator is a task, and what follows at once is one op") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    const auto add = [&](const raw_gpu& record, std::string_view name) {
        job.add(RawBytes(RAW_GPU, record)).string(0, name).head().sequence = 0;
    };
    add(work(0, 1, from, from + 10 * kUs), "first");
    add(work(1, 1, from + 5 * kUs, from + 30 * kUs), "other device");
    add(work(0, 2, from + 6 * kUs, from + 40 * kUs), "other stream");
    add(work(0, 1, from + 20 * kUs, from + 50 * kUs), "10 us later");
    add(work(0, 1, from + 45 * kUs, from + 52 * kUs), "before its end");
    add(work(0, 1, from + 62 * kUs + 1, from + 70 * kUs), "a little later");
    const AssembledLog log = job.assemble();
    std::map<std::string, std::string> seen;
    for (TaskId task = 2; task < log.tables().tasks.size(); ++task) {
        std::string& text = seen[std::string(log.tables().strings[log.tables().tasks[task].name])];
        for (const Op& op : log.ops(task)) {
            CHECK(op.kind == OpKind::gpu_submit);
            text += std::to_string(op.arg) + "/" + std::to_string(op.flags) + " " +
                    std::string(log.tables().strings[op.text]) + " " + std::to_string(op.size / int64_t{kUs}) + "; ";
        }
    }
    CHECK(seen["gpu 0 stream 1"] == "0/1 first 52; 0/1 a little later 7; ");
    CHECK(seen["gpu 0 stream 2"] == "0/2 other stream 34; ");
    CHECK(seen["gpu 1 stream 1"] == "1/1 other device 25; ");
    CHECK(seen.size() == 3);
}

TEST_CASE("faults inside a call are touches before it, and take their time from it") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now + 100 * kUs;
    job.fault(from + 10 * kUs, from + 15 * kUs, 0x701000);
    job.fault(from + 20 * kUs, from + 28 * kUs, 0x702000);
    job.fault(from + 30 * kUs, from + 31 * kUs, 0x100000);  // no mapping of a file
    job.call_at(from, from + 100 * kUs, SYS_write, {4, 0x701000, 8192}, 8192).fd(0, RawJob::fd_of(4, 0xf2, 8));
    const AssembledLog log = job.assemble();
    REQUIRE(log.of_kind(OpKind::touch).size() == 1);
    const Op touch = log.of_kind(OpKind::touch)[0], write = log.of_kind(OpKind::write).at(0);
    CHECK(touch.begin == static_cast<int64_t>(from - RawJob::kStart - 9 * kUs));
    CHECK(touch.duration == 13 * kUs);
    CHECK(touch.size == 8192);
    CHECK(write.begin == touch.begin + static_cast<int64_t>(14 * kUs));
    CHECK(write.end() == touch.begin + static_cast<int64_t>(100 * kUs));
}

TEST_CASE("a task off the processor between faults of one record does not compute") {
    const auto computed = [](uint64_t off, uint64_t back, uint16_t state) {
        RawJob job;
        job.open("/dev/shm/t", 3, 0xf1, 7, 1 << 20);
        job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
        const uint64_t from = job.now;
        job.now = from + 10 * kMs;
        job.touches(from + 100 * kUs, from + 500 * kUs, 50 * kUs, 0x703000, 8);
        job.off(from + off * kUs, 0, from + back * kUs, 0xffff, state);
        job.call_at(from + 10 * kMs, from + 10 * kMs + kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
        return job.assemble().of_kind(OpKind::compute).back().duration / int64_t{kUs};
    };
    CHECK(computed(200, 201, RAW_OFF_SLEEPING) == 9850);  // 350 between the faults, 9500 after them
    CHECK(computed(200, 300, RAW_OFF_RUNNABLE) == 9750);
    CHECK(computed(110, 490, RAW_OFF_RUNNABLE) == 9500);
    CHECK(computed(400, 900, RAW_OFF_RUNNABLE) == 250 + 9100);
}

TEST_CASE("the time of a wait whose end was not seen is no wait for a processor") {
    RawJob job;
    job.off(RawJob::kStart, 0, RawJob::kStart + 50 * kUs, 0xffff);  // the very first record
    job.now += 100 * kUs;
    job.open("/d/a", 3, 0xf1, 7);
    job.off(job.now + 10 * kUs, 0, job.now + 30 * kUs, 0xffff);
    job.now += 100 * kUs;
    job.open("/d/b", 4, 0xf2, 8);
    CHECK(job.assemble().reader.header().extra.count("capture.run_queue_ns") == 0);
}

TEST_CASE("tasks that might not use all processors are counted, and the processors that they might use together") {
    const auto facts = [](uint64_t first, uint64_t second) {
        RawJob job(R"({"command":["job"],"cpus":4})");
        job.open("/d/a", 3, 0xf1, 7);
        job.spawn(200, 200, 17);
        job.as(200, 200);
        job.open("/d/b", 4, 0xf2, 8);
        job.exit(0, true, second);
        job.as(100, 100);
        job.exit(0, true, first);
        const AssembledLog log = job.assemble();
        const Header& header = log.reader.header();
        return std::pair{read_fact(header, fact::pinned_tasks).value_or(0),
                         read_fact(header, fact::pinned_cpus).value_or(0)};
    };
    CHECK(facts(0xf, 0xf) == std::pair{INT64_C(0), INT64_C(0)});
    CHECK(facts(0, 0) == std::pair{INT64_C(0), INT64_C(0)});
    CHECK(facts(0xf, 4) == std::pair{INT64_C(1), INT64_C(1)});
    CHECK(facts(1, 4) == std::pair{INT64_C(2), INT64_C(2)});
    CHECK(facts(3, 6) == std::pair{INT64_C(2), INT64_C(3)});
}
