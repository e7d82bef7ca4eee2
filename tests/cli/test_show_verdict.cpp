// SPDX-License-Identifier: MIT
// The summary of a run: at most ten lines of at most 120 columns, whatever happened.
#include "cli/show_verdict.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "cli/command.h"
#include "cli/table.h"
#include "tests/units.h"

namespace reprise::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Verdict full_verdict() {
    Verdict v;
    v.ended = "complete";
    v.pace = "causal";
    v.ops = {10'790, 0, 2'043, 0, {{"filter", 2'043}}};
    v.here.elapsed = 9'730'000'000;
    v.recorded.elapsed = 9'580'000'000;
    v.here.bytes_read = v.recorded.bytes_read = 60 * kMiB;
    v.here.bytes_written = v.recorded.bytes_written = 3 * kMiB;
    v.here.storage_bytes_read = v.recorded.storage_bytes_read = 60 * kMiB;
    v.here.bytes_touched = v.recorded.bytes_touched = kMiB;
    v.here.reads = {1'000, 0, 12'000, 0, 40'000, 0, 0, 0};
    v.recorded.reads = {1'000, 0, 1'200'000, 0, 5'200'000, 0, 0, 0};
    v.here.time = {10 * kSecond, 1 * kSecond, 6 * kSecond, 70 * kSecond, 90 * kSecond};
    v.recorded.time = {10 * kSecond, 5 * kSecond, 6 * kSecond, 70 * kSecond, 93 * kSecond};
    v.here.au = 0.66;
    v.recorded.au = 0.65;
    v.device_read = 8192;
    v.device_written = 3 * kMiB;
    v.trust = "good";
    v.trust_reason = "lateness p99 12.0 us, no steal, CPU speed verified";
    return v;
}

std::vector<std::string> printed(const Verdict& verdict, const std::vector<std::string>& first = {},
                                 const std::vector<std::string>& notes = {}, std::string_view beside = "recorded") {
    std::ostringstream out;
    print_summary(out, first, verdict_lines(verdict, beside), notes);
    std::vector<std::string> lines;
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
        CHECK(display_width(line) <= kSummaryColumns);
    }
    CHECK(lines.size() <= kSummaryLines);
    return lines;
}

bool any(const std::vector<std::string>& lines, std::string_view text) {
    for (const std::string& line : lines) {
        if (line.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("the summary of a good run") {
    const std::vector<std::string> lines = printed(full_verdict());
    const std::string bytes =
        "bytes       read 60.0 MiB, wrote 3.00 MiB (as recorded), pages touched 1.00 MiB; device read 8.00 KiB, wrote "
        "3.00 MiB";
    const std::string spent =
        "spent       compute 10.0 s + storage 1.00 s + accelerator 6.00 s + other waits 1 min 10 s + rest 3.00 s = "
        "1 min 30 s";
    const std::string recorded =
        "  recorded  compute 10.0 s + storage 5.00 s + accelerator 6.00 s + other waits 1 min 10 s + rest 2.00 s = "
        "1 min 33 s";
    const std::vector<std::string> expected = {
        "job         SAME: 10,790 I/O ops as recorded + 0 differ + 2,043 left out (filter) = 12,833 recorded",
        "time        9.73 s, recorded 9.58 s (+1.6 %); WARM: memory served the reads, the device 0.0 % of the bytes",
        bytes,
        "reads       p50 12.0 us (recorded 1.20 ms), p99 40.0 us (recorded 5.20 ms), of 1,000 calls",
        spent,
        recorded,
        "accelerator AU 66.0 % (recorded 65.0 %), busy 0 ns, stall 0 ns (recorded 0 ns)",
        "trust       GOOD  lateness p99 12.0 us, no steal, CPU speed verified",
    };
    CHECK(lines == expected);
}

TEST_CASE("asynchronous requests have a line, and outweigh the calls beside them") {
    Verdict v = full_verdict();
    const auto requests = [](int64_t latency, int64_t depth) {
        InFlight out;
        out.all.requests = out.all.reads = 51'200;
        out.all.latency.add(latency, 51'200);
        out.all.depth.add(depth, 1'000'000'000);
        return out;
    };
    v.here.requests = requests(4'100'000, 32);
    v.recorded.requests = requests(120'000, 31);
    v.here.reads.count = v.recorded.reads.count = 12;
    CHECK(any(printed(v),
              "requests    51,200, 32.0 in flight (recorded 31.0), latency p50 4.10 ms (recorded 120 us), p99 4.10 ms "
              "(recorded 120 us)"));
    // Where there is no room, the line of the few calls goes first.
    const std::vector<std::string> full = printed(v, {"NOT FAITHFUL: a.", "NOT FAITHFUL: b.", "NOT FAITHFUL: c."});
    CHECK(any(full, "requests    51,200"));
    CHECK_FALSE(any(full, "of 12 calls"));
    CHECK_FALSE(any(printed(full_verdict()), "requests"));
}

TEST_CASE("the regime is in the second line, in words") {
    Verdict v = full_verdict();
    const auto second = [&] { return printed(v)[1]; };
    v.device_read = 61 * kMiB;
    CHECK(second().ends_with("; COLD: the device served 100 % of the bytes read"));
    v.device_read = 122 * kMiB;
    CHECK(second().ends_with("; COLD: the device read 200 % of the bytes asked for"));
    v.device_read = 2 * 61 * kMiB + kMiB;
    CHECK(second().ends_with("; COLD: the device read 123 MiB for 61.0 MiB asked for"));
    v.device_read = 30 * kMiB;
    CHECK(second().ends_with("; MIXED: the device served 49 % of the bytes read, memory the rest"));
    v.device_read = 300 * kMiB;
    v.device_data = 0;
    CHECK(second().ends_with("; METADATA: the device read names, no data"));
    v.device_data = 10 * kMiB;
    CHECK(second().ends_with("; METADATA: the device read names, little data"));
    v.no_data = true;
    CHECK(second().ends_with("; NOT MEASURED: no data on the device"));
    v.no_data = false;
    v.device_read.reset();
    CHECK(second().ends_with("; CACHE UNKNOWN: nobody counted what the device served"));
    v.ended.clear();
    CHECK(second().ends_with("(+1.6 %)"));
    v.no_storage = true;
    CHECK(second().ends_with("; NO STORAGE: the null engine reads and writes nothing"));
    v.pace = "afap";
    CHECK(second().starts_with("time        9.73 s as fast as possible (recorded, with waits: 9.58 s); "));
}

TEST_CASE("what went wrong comes first, and the ten lines hold however much there is") {
    Verdict v = full_verdict();
    v.same_job = false;
    v.ops.differ = 3'000'000'000;
    v.ops.extra = 7;
    v.trust = "poor";
    v.trust_reason = std::string(300, 'x');
    std::vector<std::string> first(4, "NOT THE SAME JOB: ");
    for (std::string& sentence : first) {
        for (int i = 0; i < 40; ++i) {
            sentence += "word ";
        }
    }
    const std::vector<std::string> notes(20, "note: a sentence that takes its place");
    std::vector<std::string> lines = printed(v, first, notes);
    CHECK(lines.size() == kSummaryLines);
    CHECK(lines[0].starts_with("NOT THE SAME JOB: word word"));
    CHECK(any(lines, "job         NOT THE SAME: "));
    CHECK(any(lines, "time        9.73 s"));
    CHECK(any(lines, "trust       POOR  xxx"));
    CHECK(lines.back() == "20 notes: -v");
    lines = printed(full_verdict(), {}, {notes.begin(), notes.begin() + 2});
    CHECK(std::count(lines.begin(), lines.end(), notes[0]) == 2);
    lines = printed(full_verdict(), {}, {notes.begin(), notes.begin() + 3});
    CHECK(lines[8] == notes[0]);
    CHECK(lines[9] == "and 2 more notes: -v");
    set_verbosity(1);
    std::ostringstream out;
    print_summary(out, first, verdict_lines(v, "recorded"), notes);
    set_verbosity(0);
    const std::string text = out.str();
    CHECK(std::count(text.begin(), text.end(), '\n') > 30);
    CHECK(text.find("...") == std::string::npos);
}

TEST_CASE("what a tolerance covers is not called the same") {
    Verdict v = full_verdict();
    v.ops = {0, 40, 0, 0, {}};
    v.tolerated_by = "--tolerance-results 100%";
    CHECK(printed(v)[0] ==
          "job         40 of 40 differ (--tolerance-results 100%): 0 I/O ops as recorded + 40 differ + 0 "
          "left out = 40 recorded");
    v.ops = {12'345'678, 1, 400'000, 0, {{"filter", 400'000}}};
    v.tolerated_by.clear();
    CHECK(printed(v)[0].starts_with("job         1 of 12,745,679 differs (tolerated): 12,345,678 I/O ops as recorded"));
    v.ops = {40, 0, 0, 2, {}};
    CHECK(printed(v)[0].starts_with("job         2 more here (tolerated): 40 I/O ops"));
}

TEST_CASE("trust goes on in a second line where there is room") {
    Verdict v = full_verdict();
    v.trust = "poor";
    v.trust_reason =
        "names were cached here, and not when recorded (6.26 s of the 6.31 s): unmount and mount the file system "
        "before "
        "the run, or --drop-caches";
    const std::vector<std::string> lines = printed(v);
    const auto trust = std::find_if(lines.begin(), lines.end(), [](const auto& l) { return l.starts_with("trust"); });
    REQUIRE(trust != lines.end());
    CHECK(
        *trust ==
        "trust       POOR  names were cached here, and not when recorded (6.26 s of the 6.31 s): unmount and mount the "
        "file");
    REQUIRE(std::next(trust) != lines.end());
    CHECK(*std::next(trust) == "            system before the run, or --drop-caches");
}

TEST_CASE("what is cut off is cut at a word, and says so") {
    std::string text = "trust       POOR  ";
    while (text.size() < 115) {
        text += "1.25 s ";
    }
    CHECK(cut_line(text + "123456.75 s of it").ends_with(" s ..."));
    CHECK(cut_line("cache       " + std::string(95, 'x') + ", 119.5 MiB after").ends_with("xxx ..."));
    CHECK(cut_line(std::string(300, 'x')) == std::string(116, 'x') + " ...");
    CHECK(cut_line(std::string(120, 'x')) == std::string(120, 'x'));
    // A sentence whose end has no room.
    std::string sentence = "NOT FAITHFUL:";
    for (int i = 1000; i < 1070; ++i) {
        sentence += " word" + std::to_string(i);
    }
    const std::vector<std::string> lines = printed(full_verdict(), {sentence, sentence});
    CHECK(lines[0].starts_with("NOT FAITHFUL: word1000 word1001"));
    CHECK(lines[3].ends_with("..."));
    CHECK(lines[4].ends_with("..."));
    CHECK(lines[4].starts_with("NOT FAITHFUL: "));
    CHECK(lines[5].starts_with("job "));
    CHECK(lines.size() <= kSummaryLines);
    const std::vector<std::string> more = printed(full_verdict(), {sentence});
    CHECK(more[1].starts_with("            word"));
    CHECK(more[3].ends_with("..."));
    CHECK_FALSE(more[0].ends_with("..."));
    // What is said first is said to its end, before less is said of the rest.
    const std::string why = sentence.substr(0, 400);
    const std::vector<std::string> whole = printed(full_verdict(), {why + " end.", sentence});
    CHECK(whole[3].ends_with(" end."));
    CHECK(whole[4].starts_with("NOT FAITHFUL: "));
    CHECK(whole.size() <= kSummaryLines);
}

TEST_CASE("why ops were left out, as far as there is room") {
    Verdict v = full_verdict();
    v.ops.left_out_by = {{"not_a_file", 43}, {"filter", 2'000}};
    CHECK(printed(v)[0].ends_with(" + 2,043 left out (filter 2,000, not_a_file 43) = 12,833 recorded"));
    v.ops.left_out_by = {{"not_a_file", 43}, {"filter", 1'000}, {"unsupported", 500}, {"received", 500}};
    CHECK(printed(v)[0].ends_with(" + 2,043 left out (filter 1,000, ...) = 12,833 recorded"));
    v.ops.left_out = 0;
    v.ops.left_out_by.clear();
    CHECK(printed(v)[0].ends_with(" + 0 left out = 10,790 recorded"));
}

TEST_CASE("bytes that differ from the recorded ones are shown beside them") {
    Verdict v = full_verdict();
    v.recorded.bytes_read = 61 * kMiB;
    v.recorded.bytes_written = 4 * kMiB;
    CHECK(printed(v)[2] ==
          "bytes       read 60.0 MiB (recorded 61.0 MiB), wrote 3.00 MiB (recorded 4.00 MiB); device read 8.00 KiB, "
          "wrote 3.00 MiB");
    v.device_read.reset();
    CHECK(printed(v)[2] ==
          "bytes       read 60.0 MiB (recorded 61.0 MiB), wrote 3.00 MiB (recorded 4.00 MiB), pages touched 1.00 MiB");
}

TEST_CASE("logs that are no run are A and B, and parts that neither has are not there") {
    Verdict v = full_verdict();
    v.ended.clear();
    v.trust.clear();
    v.here.au.reset();
    v.here.time.accelerator = v.recorded.time.accelerator = 0;
    v.here.reads = {};
    v.here.writes = v.recorded.writes = {1, 0, 5'000, 0, 5'000, 0, 0, 0};
    const std::vector<std::string> lines = printed(v, {}, {}, "A");
    CHECK(any(lines, "SAME: 10,790 I/O ops as in A + 0 differ + 2,043 left out (filter) = 12,833 in A"));
    CHECK(any(lines, "writes      p50 5.00 us (A 5.00 us), p99 5.00 us (A 5.00 us), of 1 call"));
    CHECK(any(lines, "trust       not known"));
    CHECK_FALSE(any(lines, "accelerator"));
}

}  // namespace reprise::cli
