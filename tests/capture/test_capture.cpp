// SPDX-License-Identifier: MIT
// The table of recorded calls against the assembler's, and recordings whose records are looked at one by one.
#include "capture/capture.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "capture/child.h"
#include "capture/context_records.h"
#include "capture/loader.h"
#include "capture/probe.h"
#include "capture/rules.h"
#include "formats/assemble/recording/raw_calls.h"
#include "formats/raw/dump.h"
#include "formats/raw/log.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Recording {
    CaptureResult result;
    std::vector<std::string> lines;

    // How often a record's text holds all of these.
    size_t count(const std::vector<std::string>& words) const {
        size_t found = 0;
        for (const std::string& line : lines) {
            bool all = true;
            for (const std::string& word : words) {
                all = all && line.find(word) != std::string::npos;
            }
            found += all ? 1 : 0;
        }
        return found;
    }
};

Recording record(const std::string& script, CaptureOptions how = {}) {
    const TempDir dir;
    how.command = {"/bin/sh", "-c", "cd " + dir.path().string() + "; " + script};
    how.raw = dir / "job.raw";
    Recording out;
    out.result = capture(how);
    RawReader reader(how.raw);
    for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
        for (const raw_head& head : RawRecords(chunk)) {
            out.lines.push_back(raw_line(head));
        }
    }
    CHECK(reader.cut().empty());
    return out;
}

}  // namespace

TEST_CASE("recorded calls: whatever the assembler understands is recorded, with the arguments it wants") {
    const CallRules rules = call_rules();
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(row.name);
        REQUIRE(row.nr < CALL_LIMIT);
        const call_rule& rule = rules[row.nr];
        CHECK((rule.kind != RULE_NONE) == row.recorded);
        CHECK(((rule.flags & RULE_WAKES) != 0) == (row.wakes != 0));
        for (size_t i = 0; i < row.arguments.size(); ++i) {
            const auto argument = static_cast<raw_u8>(i + 1);
            switch (row.arguments[i]) {
                case 'f':
                case '2':
                case 'd':
                case 'D': CHECK((rule.fd == argument || rule.fd2 == argument)); break;
                case 'p':
                case 'P': CHECK((rule.path == argument || rule.path2 == argument)); break;
                case 't':
                case 'L':
                    CHECK((rule.string == argument || (rule.extra == EXTRA_LINK && rule.extra_arg == argument)));
                    break;
                case 'S':
                    // fstat has it from the descriptor.
                    if (rule.kind == RULE_FD) {
                        break;
                    }
                    [[fallthrough]];
                case 'i':
                case 'H': CHECK((rule.extra != EXTRA_NONE && rule.extra_arg == argument)); break;
                case 'O':
                case 'Q':
                    CHECK((rule.extra == EXTRA_OFFSETS && (rule.extra_arg == argument || rule.extra_arg2 == argument)));
                    break;
                default: break;
            }
        }
    }
}

TEST_CASE("recorded calls: rules of some calls") {
    constexpr raw_u8 kResult = RULE_RESULT;
    const CallRules rules = call_rules();
    const auto check = [&](unsigned nr, const call_rule& expected) {
        CAPTURE(nr);
        CHECK(std::memcmp(&rules[nr], &expected, sizeof expected) == 0);
    };
    // kind, flags, fd, fd2, path, path2, string, extra and its arguments; arguments count from 1
    check(SYS_getpid, {});
    check(SYS_read, {RULE_FD, RULE_WAKES | RULE_READS, 1, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_pread64, {RULE_FD, RULE_READS, 1, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_close, {RULE_FD, RULE_WAKES | RULE_AT_ENTER, 1, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_openat, {RULE_OPEN, RULE_WAKES, kResult, 1, 2, 0, 0, 0, 0, 0});
    check(SYS_openat2, {RULE_RICH, RULE_WAKES, kResult, 1, 2, 0, 0, EXTRA_HOW, 3, 0});
    check(SYS_fstat, {RULE_FD, 0, 1, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_statx, {RULE_RICH, 0, 1, 0, 2, 0, 0, EXTRA_STATX, 5, 0});
    check(SYS_renameat2, {RULE_RICH, RULE_WAKES, 1, 3, 2, 4, 0, 0, 0, 0});
    check(SYS_symlinkat, {RULE_RICH, RULE_WAKES, 2, 0, 3, 0, 1, 0, 0, 0});
    check(SYS_mmap, {RULE_FD, RULE_NOT_ANON | RULE_POPULATES, 5, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_munmap, {RULE_PLAIN, RULE_UNMAPS, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_mremap, {RULE_PLAIN, RULE_POPULATES | RULE_UNMAPS, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_mlock, {RULE_PLAIN, RULE_POPULATES, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_ioctl, {RULE_RICH, RULE_IF_CLONE, 1, 0, 0, 0, 0, EXTRA_CLONE, 3, 0});
    check(SYS_sendfile, {RULE_RICH, RULE_WAKES, 1, 2, 0, 0, 0, EXTRA_OFFSETS, 3, 0});
    check(SYS_copy_file_range, {RULE_RICH, RULE_WAKES, 1, 3, 0, 0, 0, EXTRA_OFFSETS, 2, 4});
    check(SYS_recvmsg, {RULE_RICH, RULE_WAKES, 1, 0, 0, 0, 0, EXTRA_MESSAGE, 2, 1});
    check(SYS_socketpair, {RULE_RICH, 0, 0, 0, 0, 0, 0, EXTRA_PAIR, 4, 0});
    check(SYS_epoll_wait, {RULE_FD, 0, 1, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_fcntl, {RULE_FD, RULE_WAKES | RULE_LOCKS, 1, 0, 0, 0, 0, EXTRA_LOCK, 3, 0});
    check(SYS_poll, {RULE_PLAIN, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_futex, {RULE_PLAIN, RULE_WAKES, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_kill, {RULE_PLAIN, RULE_WAKES, 0, 0, 0, 0, 0, 0, 0, 0});
    check(SYS_clone3, {RULE_RICH, 0, 0, 0, 0, 0, 0, EXTRA_OFFSETS, 1, 0});
    check(SYS_prctl, {RULE_RICH, RULE_IF_MARKER, 0, 0, 0, 0, 2, 0, 0, 0});
}

TEST_CASE("recorded calls: fast paths ask for nothing that only the slow one gives") {
    for (const call_rule& rule : call_rules()) {
        if (rule.kind == RULE_FD) {
            const bool slow_of_some = (rule.flags & RULE_LOCKS) != 0;  // commands
            CHECK((rule.fd != 0 && !rule.fd2 && !rule.path && !rule.string && (!rule.extra || slow_of_some)));
        }
        if (rule.kind == RULE_OPEN) {
            CHECK((rule.fd == RULE_RESULT && rule.path && !rule.path2 && !rule.extra));
        }
        if (rule.kind == RULE_PLAIN) {
            CHECK((!rule.fd && !rule.path && !rule.string && !rule.extra));
        }
        if (rule.kind == RULE_RICH && rule.extra != EXTRA_NONE) {
            CHECK(rule.extra_arg != 0);
        }
    }
}

TEST_CASE("capture: what cannot be recorded is said before anything runs") {
    CHECK_THROWS_AS(processes_of_cgroup("/tmp"), Error);
    CHECK_THROWS_AS(process_tree(0x3fffffff), Error);
    CHECK_THROWS_AS(child_user("no-such-user-here"), Error);
    const CaptureCheck check = check_capture();
    CHECK(check.hooks.size() >= 15);
    for (const CaptureHook& hook : check.hooks) {
        CHECK(!hook.follows.empty());
        if (!check.refusal.empty()) {
            CHECK(!hook.granted);
        }
    }
}

TEST_CASE("capture: identities, positions and flags, by plain loads and by probe reads") {
    if (const std::string refusal = bpf_refusal(); !refusal.empty()) {
        REPRISE_SKIP(refusal);
    }
    for (const bool probe_reads : {false, true}) {
        CAPTURE(probe_reads);
        if (probe_reads) {
            ::setenv("REPRISE_CAPTURE_PROBE_READS", "1", 1);
        }
        const Recording seen = record("exec 5<>made; echo abc >&5; echo defg >&5; exec 5>&-; exec 6<made; read x <&6");
        ::unsetenv("REPRISE_CAPTURE_PROBE_READS");
        CHECK(seen.count({"CALL", "open", " created", "path1=\"made\""}) == 1);
        CHECK(seen.count({"CALL", "open", "path1=\"made\""}) == 2);
        CHECK(seen.count({"CALL", "write(", ", 4, ", "size=4 pos=4 "}) == 1);
        CHECK(seen.count({"CALL", "write(", ", 5, ", "size=9 pos=9 "}) == 1);
        CHECK(seen.count({"CALL", "close(5", "size=9 pos=9 "}) == 1);
        CHECK(seen.result.lost == 0);
        CHECK(seen.result.recursion_misses == 0);
    }
}

TEST_CASE("capture: who woke whom") {
    if (const std::string refusal = bpf_refusal(); !refusal.empty()) {
        REPRISE_SKIP(refusal);
    }
    const Recording seen = record("(sleep 0.1; echo x) | cat >/dev/null");
    CHECK(seen.count({"SPAWN"}) >= 3);
    // cat slept in read until the other side wrote; the shell in wait4 until its child ended.
    CHECK(seen.count({"SWITCH", " sleeping in read", " in write"}) >= 1);
    CHECK(seen.count({"SWITCH", " sleeping in wait4", " in exit_group"}) >= 1);
    // Nobody woke the sleeper: the clock did.
    CHECK(seen.count({"SWITCH", "sleeping in clock_nanosleep", " by "}) == 0);
    CHECK(seen.count({"SWITCH", "sleeping in clock_nanosleep"}) >= 1);
}

TEST_CASE("capture: groups that are left out leave nothing") {
    if (const std::string refusal = bpf_refusal(); !refusal.empty()) {
        REPRISE_SKIP(refusal);
    }
    CaptureOptions how;
    for (const CaptureGroup& group : capture_groups()) {
        how.without.emplace_back(group.name);
    }
    const Recording seen = record("cat /etc/passwd >copy; sleep 0.3; sync", how);
    std::map<std::string, size_t> types;
    for (const std::string& line : seen.lines) {
        ++types[line.substr(0, line.find(' '))];
    }
    CHECK(types["CALL"] > 20);
    for (const char* type : {"SWITCH", "FAULT", "PAGE_CACHE", "BLOCK", "PRESSURE", "SUBMIT"}) {
        CHECK(types[type] == 0);
    }
    const Recording all = record("cat /etc/passwd >copy; sleep 0.3; sync");
    types.clear();
    for (const std::string& line : all.lines) {
        ++types[line.substr(0, line.find(' '))];
    }
    for (const char* type : {"SWITCH", "FAULT", "PAGE_CACHE"}) {
        CHECK(types[type] > 0);
    }
}

namespace {

// Sum of a number that the lines with `word` tell.
long sum_of(const Recording& recorded, const std::string& word, const std::string& key) {
    long sum = 0;
    for (const std::string& line : recorded.lines) {
        const size_t at = line.find(" " + key + "=");
        if (line.starts_with(word) && at != std::string::npos) {
            sum += std::stol(line.substr(at + key.size() + 2));
        }
    }
    return sum;
}

// A string of 64 MiB, filled once by perl's own code.
constexpr char kTouchesMemory[] = "perl -e 'my $x = \"a\" x 67108864; print length $x'";

}  // namespace

TEST_CASE("faults outside calls are counted; dear ones are told by how much") {
    if (const std::string refusal = bpf_refusal(); !refusal.empty()) {
        REPRISE_SKIP(refusal);
    }
    const Recording usual = record(kTouchesMemory);
    constexpr long kPages = (64L << 20) / 4096;
    // A few are told with nothing; huge pages are one fault each.
    const long faults = sum_of(usual, "FAULTS", "faults");
    CHECK(faults >= kPages / 512);
    ::setenv("REPRISE_CAPTURE_PAGE_NS", "1", 1);
    const Recording dear = record(kTouchesMemory);
    ::unsetenv("REPRISE_CAPTURE_PAGE_NS");
    const long pages = sum_of(dear, "FAULTS", "dear"), ns = sum_of(dear, "FAULTS", "ns");
    CHECK(pages >= kPages / 2);
    CHECK(ns >= pages * 20);  // no page is made in less
    CHECK(dear.count({"META", "\\\\\"page\\\\\":1,"}) == 1);
}

TEST_CASE("the probe: costs are what recorded events took longer, each without the others it is made of") {
    ProbeTimes without, with;
    without.call = 300, with.call = 700;
    without.anonymous = 500, with.anonymous = 750;
    without.file_fault = 800, with.file_fault = 1'450;
    without.yield = 1'000, with.yield = 1'800;            // both tasks: two calls that are looked at, two switches
    without.round_trip = 5'000, with.round_trip = 7'800;  // four calls, two wakes, two switches
    without.truncate = 400, with.truncate = 800;
    without.truncate_page = 600, with.truncate_page = 1'300;
    without.truncate_pages = 600 + 63 * 100, with.truncate_pages = 1'300 + 63 * 150;
    const RecorderCosts costs = costs_of(without, with, 60);
    CHECK(costs.call == 400);
    CHECK(costs.fault == 250);
    CHECK(costs.file_fault == 400);
    CHECK(costs.off == 340);
    CHECK(costs.wake == 260);
    CHECK(costs.folio == 50);
    CHECK(costs.folio_run == 250);
    SUBCASE("faster when recorded, or not measured at all: nothing") {
        with.call = 200;
        with.file_fault = 0;
        without.yield = 0;
        const RecorderCosts less = costs_of(without, with, 60);
        CHECK(less.call == 0);
        CHECK(less.file_fault == 0);
        CHECK(less.off == 0);
    }
    SUBCASE("a disturbance is bounded") {
        with.call = 1e9;
        CHECK(costs_of(without, with, 60).call == 10'000);
    }
}

TEST_CASE("the probe: what pages usually take, by its own records only") {
    PageTimes pages;
    const auto tell = [&](pid_t pid, raw_u32 dear, raw_u64 ns) {
        raw_faults record{};
        record.head.type = RAW_FAULTS;
        record.head.pid = static_cast<raw_u32>(pid);
        record.faults = dear;
        record.dear = dear;
        record.dear_ns = ns;
        pages.see(record.head, 7);
    };
    CHECK(pages.base() == 0);
    for (const raw_u64 ns : {400, 500, 600, 9'000, 450, 550, 650, 700}) {
        tell(7, 64, 64 * ns);
    }
    tell(8, 64, 64);  // another process
    tell(7, 3, 3);    // too few
    tell(7, 1024, 90'000);
    CHECK(pages.base() == 550 - 50);  // the third of eight
    CHECK(pages.huge() == 45'000);
}

TEST_CASE("the probe: a process that can be run, ends, and leaves nothing") {
    Probe probe;
    REQUIRE(probe.pid() > 0);
    const ProbeTimes times = probe.run();
    CHECK(times.call > 0);
    CHECK(times.anonymous > 0);
    CHECK(times.truncate_pages > times.truncate);
    const pid_t pid = probe.pid();
    probe.end();
    CHECK(probe.pid() == 0);
    CHECK(::kill(pid, 0) != 0);
    CHECK(probe.run().call == 0);
}
