// SPDX-License-Identifier: MIT
// Open loops of plain I/O: arrivals, who takes them, and what of the log waits for what.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/support/error.h"
#include "generate/generate.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::string error_of(const std::string& text) {
    try {
        parse_arrivals(text, "a.csv");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        return error.what();
    }
    return "none";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

struct Generated {
    explicit Generated(const std::string& text)
        : result(generate(parse_job(text, (dir / "job.ini").string()), dir / "job.oplog")), log(dir / "job.oplog") {}
    TempDir dir;
    GenerateResult result;
    LogReader log;

    /// Times of the arrivals, ns since their loop began.
    std::vector<int64_t> arrivals() const {
        std::vector<int64_t> out;
        log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (waits_until(op.kind, op.arg) && until_ns(op.arg) != 0) {
                out.push_back(until_ns(op.arg));
            }
        });
        std::sort(out.begin(), out.end());
        return out;
    }
};

constexpr const char* kOpen = "[r]\nrw=randread\nsize=1m\nbs=4k\n";

}  // namespace

TEST_CASE("arrivals: fixed ones are evenly spaced, Poisson's have the rate, and both end with runtime=") {
    const Generated fixed(std::string(kOpen) + "rate_iops=1000\nruntime=0.1\narrivals=fixed\n");
    const auto even = fixed.arrivals();
    REQUIRE(even.size() == 100);
    for (size_t i = 0; i < even.size(); ++i) {
        CHECK(even[i] == static_cast<int64_t>(i + 1) * 1'000'000);
    }
    CHECK(fixed.result.sections[0].requests == 100);
    const Generated drawn(std::string(kOpen) + "rate_iops=2000\nruntime=2s\n");
    const auto times = drawn.arrivals();
    CHECK(times.size() > 3'700);
    CHECK(times.size() < 4'300);
    CHECK(times.back() <= 2'000'000'000);
    // Of a Poisson process, the share of gaps above the mean gap is 1/e.
    size_t longer = 0;
    for (size_t i = 1; i < times.size(); ++i) {
        longer += times[i] - times[i - 1] > 500'000 ? 1 : 0;
    }
    CHECK(static_cast<double>(longer) / static_cast<double>(times.size()) == doctest::Approx(0.368).epsilon(0.1));
    const Generated again(std::string(kOpen) + "rate_iops=2000\nruntime=2s\n");
    CHECK(again.arrivals() == times);
}

TEST_CASE("arrivals: without runtime= the files end the job, or number_ios= does") {
    CHECK(Generated(std::string(kOpen) + "rate_iops=1e5\n").result.sections[0].requests == 256);
    CHECK(Generated(std::string(kOpen) + "rate_iops=1e5\nnumber_ios=70\n").result.sections[0].requests == 70);
}

TEST_CASE("arrivals: threads take them in turn, and are joined") {
    const Generated job(std::string(kOpen) + "rate_iops=1e4\nnumber_ios=30\nconcurrency=4\nnumjobs=2\nend_fsync=1\n");
    std::map<TaskId, uint64_t> reads;
    std::map<OpKind, uint64_t> kinds;
    job.log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        reads[task] += op.kind == OpKind::pread ? 1 : 0;
        ++kinds[op.kind];
    });
    CHECK(kinds[OpKind::spawn] == 8);
    CHECK(kinds[OpKind::join] == 8);
    std::multiset<uint64_t> shares;
    for (const auto& [task, count] : reads) {
        shares.insert(count);
    }
    CHECK(shares == std::multiset<uint64_t>{0, 0, 7, 7, 7, 7, 8, 8, 8, 8});
    CHECK(job.result.read_bytes == 60 * 4096);
    CHECK(job.result.ops == kinds[OpKind::pread] + 120 + 60 + 8 * 4 + 2 * 3);
}

TEST_CASE("arrivals in flight: a request waits for a free place, and for nothing else") {
    const auto needs = [](const std::string& words) {
        const Generated job(std::string(kOpen) + "ioengine=io_uring\nrate_iops=1e5\narrivals=fixed\nnumber_ios=40\n" +
                            words);
        std::map<uint64_t, uint64_t> completes;  // op, how many by then
        std::vector<uint64_t> out;
        uint64_t flying = 0, most = 0;
        job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t number) {
            if (op.kind == OpKind::uring_complete) {
                completes[number] = completes.size() + 1;
                --flying;
            }
            if (op.kind == OpKind::uring_submit) {
                most = std::max(most, ++flying);
                REQUIRE(op.edges.size() <= 1);
                out.push_back(op.edges.empty() ? 0 : completes.at(op.edges[0].op));
            }
        });
        CHECK(completes.size() == 40);
        CHECK(flying == 0);
        CHECK(most <= 256);
        return out;
    };
    const auto few = needs("iodepth=3\n");
    for (size_t i = 0; i < few.size(); ++i) {
        CHECK(few[i] == (i < 3 ? 0 : i - 2));
    }
    const auto many = needs("");
    CHECK(std::count(many.begin(), many.end(), uint64_t{0}) == 39);
    CHECK(many.back() == 1);
}

TEST_CASE("files of arrivals: seconds, calendar times, numbers of tokens") {
    const auto plain = parse_arrivals("0.5\n\n# a comment\n1.25, more\n1.25\n", "a.csv");
    REQUIRE(plain.size() == 3);
    CHECK(plain[0].ns == 500'000'000);
    CHECK(plain[2].ns == 1'250'000'000);
    const auto azure = parse_arrivals(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.9000000,374,44\n"
        "2023-11-17 00:00:01.0000000,396,109\n",
        "a.csv");
    REQUIRE(azure.size() == 2);
    CHECK(azure[0].ns == 0);
    CHECK(azure[1].ns == 1'100'000'000);
    CHECK(azure[1].prompt_tokens == 396);
    CHECK(azure[1].new_tokens == 109);
    CHECK(has(error_of(""), "has no arrivals"));
    CHECK(has(error_of("time\n"), "has no arrivals"));
    CHECK(has(error_of("1\nx\n"), "a.csv:2: 'x' is no time"));
    CHECK(has(error_of("2\n1\n"), "a.csv:2: '1' is before the line above"));
    CHECK(has(error_of("-1\n"), "is before the line above, or too far"));
    CHECK(has(error_of("1e12\n"), "or too far"));
    CHECK(has(error_of("nan\n"), "or too far"));
    CHECK(has(error_of("t,input_length\n1,x\n"), "no number of tokens in column 2"));
    CHECK(has(error_of("t,input_length\n1\n"), "no number of tokens in column 2"));
    CHECK(has(error_of("2023-11-16 18:15:xx\n1\n2023-11-16 18:15:xx\n"), "a.csv:3: "));
}

TEST_CASE("files of arrivals lie beside the job file") {
    TempDir dir;
    write_file(dir / "times.csv", "0\n0.001\n0.5\n");
    const Job job = parse_job(std::string(kOpen) + "arrivals=times.csv\nruntime=0.1\n", (dir / "job.ini").string());
    const auto& io = std::get<IoJob>(job.sections[0].what);
    REQUIRE(io.arrivals);
    CHECK(io.arrivals->list.size() == 3);
    ArrivalTimes times(*io.arrivals, 1);
    CHECK(times.next()->ns == 1);
    CHECK(times.next()->ns == 1'000'000);
    CHECK(!times.next());
}
