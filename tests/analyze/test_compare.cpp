// SPDX-License-Identifier: MIT
// Comparing a recording with runs of it that differ in one known way.
#include "analyze/compare.h"

#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "formats/oplog/result_rule.h"
#include "formats/support/error.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

Comparison compare_run(const test::RunChanges& changes, const CompareOptions& options = {}) {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    test::write_sample_run(dir / "b.oplog", changes);
    return compare(LogReader(dir / "a.oplog"), LogReader(dir / "b.oplog"), options);
}

const Check& check_of(const Comparison& comparison, std::string_view name) {
    for (const Check& check : comparison.checks) {
        if (check.name == name) {
            return check;
        }
    }
    throw std::logic_error("no such check");
}

// A log of preads of one file at the given offsets.
void write_reads(const std::filesystem::path& path, const std::vector<int64_t>& offsets) {
    LogWriter log(path, Header(), WriterOptions{.block_ops = 64, .sync = false});
    log.add_process({1, 0, 0, 0});
    log.add_task({1, 1, 0});
    FileRow row;
    row.path = log.intern("/f");
    const HandleId handle = log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
    int64_t at = 0;
    for (const int64_t offset : offsets) {
        Op op;
        op.kind = OpKind::pread;
        op.begin = at++;
        op.handle = handle;
        op.offset = offset;
        op.size = op.result = 10;
        log.append(1, op);
    }
    log.finish();
}

Comparison compare_reads(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    const test::TempDir dir;
    write_reads(dir / "a.oplog", a);
    write_reads(dir / "b.oplog", b);
    return compare(LogReader(dir / "a.oplog"), LogReader(dir / "b.oplog"));
}

}  // namespace

TEST_CASE("a faithful run agrees, whatever its filter left out and whatever its descriptors are") {
    const Comparison same = compare_run({});
    CHECK(same.passed());
    CHECK(same.matched == 19);
    CHECK(same.missing + same.extra + same.moved + same.arguments + same.results == 0);
    CHECK(same.results_known == 3);
    CHECK(same.left_out_ops == 5);
    CHECK(same.filter == "leave=program,system");
    CHECK(same.ended == "complete");
    CHECK(same.differences.empty());
}

TEST_CASE("each kind of difference is found, named and fails") {
    const Comparison short_read = compare_run({.short_read = true});
    CHECK_FALSE(short_read.passed());
    CHECK(short_read.results == 1);
    REQUIRE(short_read.differences.size() == 1);
    CHECK(short_read.differences[0].what == DifferenceKind::result);
    CHECK(short_read.differences[0].task == 2);
    CHECK(short_read.differences[0].op_a == 8);
    CHECK(short_read.differences[0].result_a == 16384);
    CHECK(short_read.differences[0].result_b == 100);
    CHECK(short_read.differences[0].path == "/data/a b\n\xff\"x");
    CHECK_FALSE(check_of(short_read, "results").ok);

    const Comparison missing = compare_run({.missing_op = true});
    CHECK(missing.missing == 1);
    CHECK(missing.extra == 0);
    CHECK_FALSE(check_of(missing, "ops").ok);
    REQUIRE(missing.differences.size() == 1);
    CHECK(missing.differences[0].what == DifferenceKind::missing);

    const Comparison extra = compare_run({.extra_op = true});
    CHECK(extra.extra == 1);
    CHECK(extra.missing == 0);
    CHECK_FALSE(check_of(extra, "bytes").ok);

    const Comparison swapped = compare_run({.swapped = true});
    CHECK(swapped.moved == 1);
    CHECK(swapped.missing + swapped.extra == 0);
    CHECK_FALSE(check_of(swapped, "order").ok);

    const Comparison other = compare_run({.other_size = true});
    CHECK(other.arguments == 1);
    CHECK(other.missing + other.extra + other.moved == 0);
    CHECK_FALSE(check_of(other, "arguments").ok);
}

TEST_CASE("tolerances decide what fails") {
    CompareOptions options;
    CHECK(compare_run({.slower = 1.1}, options).passed());
    add_tolerance(options, "elapsed=5%");
    CHECK_FALSE(compare_run({.slower = 1.1}, options).passed());
    add_tolerance(options, "elapsed=11%");
    CHECK(compare_run({.slower = 1.1}, options).passed());
    CompareOptions loose;
    add_tolerance(loose, "results=1");
    CHECK_FALSE(compare_run({.short_read = true}, loose).passed());  // the bytes differ too
    add_tolerance(loose, "bytes=none");
    CHECK(compare_run({.short_read = true}, loose).passed());
    CompareOptions points;
    add_tolerance(points, "au=1%");
    const Comparison slower = compare_run({.slower = 1.1}, points);  // gaps grow, busy time does not
    CHECK_FALSE(check_of(slower, "au").ok);
    add_tolerance(options, "elapsed=1h");
    CHECK(compare_run({.slower = 1.1}, options).passed());
    add_tolerance(options, "elapsed=1ns");
    CHECK_FALSE(compare_run({.slower = 1.1}, options).passed());
    CHECK_THROWS_WITH_AS(add_tolerance(options, "elapsed=1"), doctest::Contains("is not a tolerance"), Error);
    add_tolerance(loose, "bytes=4KiB");
    CHECK(loose.tolerances["bytes"]->value == 4096);
    add_tolerance(options, "elapsed=0");
    CHECK_FALSE(compare_run({.slower = 1.1}, options).passed());
    for (const char* bad :
         {"elapsed", "speed=1", "elapsed=", "elapsed=fast", "elapsed=-1", "elapsed=5%%", "=5", "elapsed=nan"}) {
        INFO(bad);
        CHECK_THROWS_AS(add_tolerance(options, bad), Error);
    }
}

TEST_CASE("alignment finds its way after insertions, deletions and blocks that moved") {
    std::vector<int64_t> a;
    for (int64_t i = 0; i < 5000; ++i) {
        a.push_back(i);
    }
    std::vector<int64_t> b = a;
    b.erase(b.begin() + 100, b.begin() + 300);
    b.insert(b.begin() + 2000, 50, 999999);
    const Comparison edited = compare_reads(a, b);
    CHECK(edited.missing == 200);
    CHECK(edited.extra == 50);
    CHECK(edited.moved == 0);
    CHECK(edited.matched == 4800);

    std::vector<int64_t> rotated = a;
    std::rotate(rotated.begin() + 1000, rotated.begin() + 1020, rotated.begin() + 1100);
    const Comparison moved = compare_reads(a, rotated);
    CHECK(moved.missing + moved.extra == 0);
    CHECK(moved.moved > 0);
    CHECK(moved.moved <= 80);
    CHECK(moved.matched + moved.moved == 5000);

    const Comparison none = compare_reads(a, {});
    CHECK(none.missing == 5000);
    const Comparison all = compare_reads({}, a);
    CHECK(all.extra == 5000);
}

TEST_CASE("random edits: every op is matched, missing, extra, moved or has other arguments") {
    std::mt19937 random(5);
    for (int round = 0; round < 30; ++round) {
        std::vector<int64_t> a, b;
        for (int64_t i = 0; i < 3000; ++i) {
            const int64_t offset = random() % 50;
            if (random() % 20) {
                a.push_back(offset);
            }
            if (random() % 20) {
                b.push_back(offset);
            }
        }
        const Comparison result = compare_reads(a, b);
        CHECK(result.matched + result.missing + result.moved + result.arguments == a.size());
        CHECK(result.matched + result.extra + result.moved + result.arguments == b.size());
        CHECK(result.matched > 2000);
    }
}

TEST_CASE("results that depend on the machine are known, errors are not") {
    CHECK(match_results(OpKind::open, 0, 3, 17) == ResultMatch::known);
    CHECK(match_results(OpKind::open, 0, 3, -2) == ResultMatch::differs);
    CHECK(match_results(OpKind::open, 0, -2, -13) == ResultMatch::differs);
    CHECK(match_results(OpKind::open, 0, -2, -2) == ResultMatch::same);
    CHECK(match_results(OpKind::read, 0, 100, 99) == ResultMatch::differs);
    CHECK(match_results(OpKind::getdents, 0, 480, 512) == ResultMatch::known);
    CHECK(match_results(OpKind::spawn, 0, 480, 512) == ResultMatch::same);
}

TEST_CASE("logs that share nothing but paths are compared, runs of different paths are refused") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    test::write_all_ops(dir / "b.oplog");
    const LogReader a(dir / "a.oplog"), b(dir / "b.oplog");
    const Comparison result = compare(a, b);
    CHECK_FALSE(result.passed());
    CHECK(result.differences.size() == 10);
    const nlohmann::ordered_json json = to_json(result, a.tables(), b.tables());
    CHECK(json["passed"] == false);
    CHECK(json["differences"].size() == 10);
    (void)json.dump();
    CHECK(compare(a, a).passed());

    const auto run_of = [&](const char* name, const char* filter) {
        Header header;
        header.extra["filter"] = filter;
        LogWriter(dir / name, header).finish();
    };
    run_of("c.oplog", "leave=;only=/a/*");
    run_of("d.oplog", "leave=;only=/b/*");
    run_of("e.oplog", "nonsense");
    CHECK_THROWS_AS(compare(LogReader(dir / "c.oplog"), LogReader(dir / "d.oplog")), Error);
    CHECK_THROWS_AS(compare(a, LogReader(dir / "e.oplog")), Error);
}

TEST_CASE("the report holds each check with its unit, and of each difference what either log has of it") {
    const test::TempDir dir;
    const auto report = [&](const std::vector<int64_t>& in_a, const std::vector<int64_t>& in_b) {
        write_reads(dir / "a.oplog", in_a);
        write_reads(dir / "b.oplog", in_b);
        const LogReader a(dir / "a.oplog"), b(dir / "b.oplog");
        return to_json(compare(a, b), a.tables(), b.tables());
    };
    const auto missing = report({0, 10, 20, 30}, {0, 10, 30});
    CHECK(missing["differences"].dump() ==
          R"([{"what":"missing","task":1,"kind":"pread","path":"/f","op_a":2,"result_a":10}])");
    const auto extra = report({0, 10, 30}, {0, 10, 20, 30});
    CHECK(extra["differences"].dump() ==
          R"([{"what":"extra","task":1,"kind":"pread","path":"/f","op_b":2,"result_b":10}])");
    std::string units;
    for (const auto& check : missing["checks"]) {
        units += check["check"].get<std::string>() + " " + check["unit"].get<std::string>() + ", ";
    }
    CHECK(units ==
          "ops count, bytes bytes, results count, errors count, order count, arguments count, elapsed ns, "
          "throughput bytes/s, latency ns, au share, au_mlperf share, stall ns, ");
    CHECK(missing["checks"][0].dump() ==
          R"({"check":"ops","unit":"count","a":4.0,"b":3.0,"difference":1.0,"tolerance":{"value":0.0,"percent":false},)"
          R"("ok":false})");
    CHECK(missing["checks"][3]["tolerance"].is_null());
    CHECK(missing["checks"][3]["ok"] == true);
    for (const char* name : {"missing", "extra", "moved", "arguments", "results", "results_known", "not_performed"}) {
        CHECK(missing[name] == (std::string_view(name) == "missing" ? 1 : 0));
    }
    CHECK(missing["matched"] == 3);
}

TEST_CASE("what a run that was stopped has not performed is neither a difference nor missing bytes") {
    const test::TempDir dir;
    const auto write = [&](const char* name, int64_t last, const char* ended) {
        Header header;
        if (*ended) {
            header.extra["ended"] = ended;
        }
        LogWriter log(dir / name, header, WriterOptions{.sync = false});
        log.add_process({1, 0, 0, 0});
        log.add_task({1, 1, 0});
        FileRow row;
        row.path = log.intern("/f");
        const HandleId handle = log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
        for (int64_t i = 0; i < 4; ++i) {
            Op op;
            op.kind = i == 3 ? OpKind::lseek : OpKind::pread;
            op.begin = i;
            op.handle = handle;
            op.size = 10;
            op.result = i < 2 ? 10 : last;
            log.append(1, op);
        }
        log.finish();
    };
    write("a.oplog", 10, "");
    write("stopped.oplog", -ECANCELED, "stopped");
    write("failed.oplog", -ECANCELED, "");
    const LogReader a(dir / "a.oplog");
    const Comparison stopped = compare(a, LogReader(dir / "stopped.oplog"));
    CHECK(stopped.not_performed == 2);
    CHECK(stopped.not_performed_bytes == 10);
    CHECK(stopped.results == 0);
    CHECK(check_of(stopped, "bytes").a == 20.0);
    CHECK(check_of(stopped, "bytes").b == 20.0);
    CHECK(check_of(stopped, "bytes").ok);
    const Comparison failed = compare(a, LogReader(dir / "failed.oplog"));
    CHECK(failed.not_performed == 0);
    CHECK(failed.results == 2);
    CHECK(check_of(failed, "bytes").a == 30.0);
}

TEST_CASE("requests that a stopped run has not performed are no missing bytes, whatever else its ring carried") {
    const test::TempDir dir;
    const auto write = [&](const char* name, int64_t last, const char* ended) {
        Header header;
        if (*ended) {
            header.source = "replay";
            header.extra["ended"] = ended;
        }
        LogWriter log(dir / name, header, WriterOptions{.sync = false});
        log.add_process({1, 0, 0, 0});
        log.add_task({1, 1, 0});
        FileRow row;
        row.path = log.intern("/f");
        const HandleId handle = log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
        constexpr int64_t kRead = 22, kReceive = 27;  // IORING_OP_*
        for (uint32_t request = 1; request <= 3; ++request) {
            Op op;
            op.kind = OpKind::uring_submit;
            op.begin = request * 10;
            op.request = request;
            op.handle = handle;
            op.arg = request == 3 ? kReceive : kRead;
            op.size = 10;
            log.append(1, op);
            op = Op();
            op.kind = OpKind::uring_complete;
            op.begin = request * 10 + 5;
            op.request = request;
            op.size = 10;
            op.result = request == 1 ? 10 : last;
            log.append(1, op);
        }
        log.finish();
    };
    write("a.oplog", 10, "");
    write("stopped.oplog", -ECANCELED, "stopped");
    const Comparison stopped = compare(LogReader(dir / "a.oplog"), LogReader(dir / "stopped.oplog"));
    CHECK(stopped.not_performed == 2);
    CHECK(check_of(stopped, "bytes").a == 10.0);
    CHECK(check_of(stopped, "bytes").b == 10.0);
    CHECK(stopped.a.requests.all.requests == 2);
    CHECK(stopped.b.requests.all.requests == 1);
    CHECK(stopped.a.requests.all.latency.max() == 5);
}

namespace {

// A log of ops: "read FILE OFFSET", "rename FILE TO", "copy FILE TO".
void write_side(const std::filesystem::path& path, const std::vector<std::string>& ops) {
    LogWriter log(path, Header(), WriterOptions{.sync = false});
    log.add_process({1, 0, 0, 0});
    log.add_task({1, 1, 0});
    std::map<std::string, std::pair<FileId, HandleId>> files;
    const auto file = [&](const std::string& name) {
        auto [at, fresh] = files.try_emplace(name);
        if (fresh) {
            FileRow row;
            row.path = log.intern("/" + name);
            at->second.first = log.add_file(row);
            at->second.second = log.add_handle({at->second.first, 0, HandleKind::file, true, 1, 3});
        }
        return at->second;
    };
    int64_t at = 0;
    for (const std::string& text : ops) {
        std::istringstream words(text);
        std::string call, name, more;
        words >> call >> name >> more;
        Op op;
        op.begin = ++at;
        if (call == "read") {
            op.kind = OpKind::pread;
            op.handle = file(name).second;
            op.offset = std::stoll(more);
            op.size = op.result = 10;
        } else if (call == "rename") {
            op.kind = OpKind::rename;
            op.file = file(name).first;
            op.file2 = file(more).first;
        } else {
            op.kind = OpKind::copy_file_range;
            op.handle = file(name).second;
            op.handle2 = file(more).second;
            op.size = op.result = 10;
        }
        log.append(1, op);
    }
    log.finish();
}

// "3 matched" and a line for each difference: "missing 2 2 pread /f".
std::string aligned(const std::vector<std::string>& a, const std::vector<std::string>& b,
                    const CompareOptions& options = {}) {
    const test::TempDir dir;
    write_side(dir / "a.oplog", a);
    write_side(dir / "b.oplog", b);
    const Comparison found = compare(LogReader(dir / "a.oplog"), LogReader(dir / "b.oplog"), options);
    std::string out = std::to_string(found.matched) + " matched, " + std::to_string(found.missing) + " missing, " +
                      std::to_string(found.extra) + " extra, " + std::to_string(found.moved) + " moved, " +
                      std::to_string(found.arguments) + " arguments\n";
    for (const Difference& each : found.differences) {
        out += std::to_string(static_cast<int>(each.what)) + " " + std::to_string(each.op_a) + " " +
               std::to_string(each.op_b) + " " + std::string(info(each.kind).name) + " " + each.path + "\n";
    }
    return out;
}

}  // namespace

TEST_CASE("alignment: what makes two ops the same, and what a difference shows") {
    const std::vector<std::string> plain{"read f 0", "read f 10", "read g 0", "rename f h", "copy f g"};
    CHECK(aligned(plain, plain) == "5 matched, 0 missing, 0 extra, 0 moved, 0 arguments\n");
    // Other arguments, and other files by either name or instance.
    CHECK(aligned(plain, {"read f 0", "read f 20", "read g 0", "rename f i", "copy f h"}) ==
          "2 matched, 2 missing, 2 extra, 0 moved, 1 arguments\n"
          "4 1 1 pread /f\n"
          "1 3 3 rename /f\n"
          "2 3 3 rename /f\n"
          "1 4 4 copy_file_range /f\n"
          "2 4 4 copy_file_range /f\n");
    CHECK(aligned(plain, {"read f 10", "read f 0", "read g 0", "copy f g", "rename f h"}) ==
          "3 matched, 0 missing, 0 extra, 2 moved, 0 arguments\n"
          "3 1 0 pread /f\n"
          "3 4 3 copy_file_range /f\n");
    CHECK(aligned(plain, {"read f 0", "read g 0", "read x 5", "rename f h", "read f 10", "copy f g"}) ==
          "4 matched, 0 missing, 1 extra, 1 moved, 0 arguments\n"
          "3 1 4 pread /f\n"
          "2 2 2 pread /x\n");
    CHECK(aligned(plain, {}) ==
          "0 matched, 5 missing, 0 extra, 0 moved, 0 arguments\n"
          "1 0 0 pread /f\n"
          "1 1 1 pread /f\n"
          "1 2 2 pread /g\n"
          "1 3 3 rename /f\n"
          "1 4 4 copy_file_range /f\n");
    CHECK(aligned({}, plain).starts_with("0 matched, 0 missing, 5 extra, 0 moved, 0 arguments\n2 0 0 pread /f\n"));
}

TEST_CASE("alignment: three examples of a kind of call and difference, and as many in all as asked for") {
    const std::vector<std::string> a{"read f 0", "read f 1", "read f 2", "read f 3", "rename f g", "copy f g"};
    CHECK(aligned(a, {}) ==
          "0 matched, 6 missing, 0 extra, 0 moved, 0 arguments\n"
          "1 0 0 pread /f\n"
          "1 1 1 pread /f\n"
          "1 2 2 pread /f\n"
          "1 4 4 rename /f\n"
          "1 5 5 copy_file_range /f\n");
    CompareOptions options;
    options.examples = 4;
    CHECK(aligned(a, {}, options).ends_with("1 2 2 pread /f\n1 4 4 rename /f\n"));
    options.examples = 0;
    CHECK(aligned(a, {}, options) == "0 matched, 6 missing, 0 extra, 0 moved, 0 arguments\n");
}

TEST_CASE("alignment: looks ahead for 1024 ops, and tells how far it is") {
    std::vector<std::string> rest;
    for (int i = 0; i < 5000; ++i) {
        rest.push_back("read rest " + std::to_string(i));
    }
    const auto with = [&](int inserted) {
        std::vector<std::string> ops;
        for (int i = 0; i < inserted; ++i) {
            ops.push_back("read new " + std::to_string(i));
        }
        ops.insert(ops.end(), rest.begin(), rest.end());
        CompareOptions none;
        none.examples = 0;
        return aligned(rest, ops, none);
    };
    CHECK(with(1023) == "5000 matched, 0 missing, 1023 extra, 0 moved, 0 arguments\n");
    CHECK(with(1024).starts_with("0 matched, "));
    std::string told;
    CompareOptions options;
    options.progress = [&](uint64_t done) { told += std::to_string(done) + " "; };
    std::vector<std::string> other = rest;
    other[4000] = "rename f g";  // two ops without a partner
    aligned(rest, other, options);
    CHECK(told == "4096 ");
}
