// SPDX-License-Identifier: MIT
// The timeline is valid JSON of the Trace Event Format: events nest per thread, names are there, nothing is lost.
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/export/exporter.h"
#include "formats/support/input.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;
using Json = nlohmann::json;

namespace {

Json export_json(const std::filesystem::path& folder, const std::filesystem::path& log_path,
                 ExportReport* report = nullptr) {
    const LogReader log(log_path);
    const ExportReport made = find_exporter("perfetto").write(log, folder / "out.json", {});
    if (report) {
        *report = made;
    }
    return Json::parse(test::read_file(folder / "out.json"));
}

// Microseconds with three decimals, exactly.
int64_t ns(const Json& us) { return std::llround(us.get<double>() * 1000); }

// What viewers demand: phases they know, complete events of a thread nested, begins and ends paired, names for threads.
void check_structure(const Json& trace) {
    REQUIRE(trace["traceEvents"].is_array());
    using Thread = std::pair<int64_t, int64_t>;
    std::map<Thread, std::vector<std::pair<int64_t, int64_t>>> slices;
    std::map<Thread, std::vector<int64_t>> open;
    std::map<Thread, bool> named, used;
    std::map<std::pair<std::string, int64_t>, int64_t> requests;  // by name and id: when it began
    for (const Json& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        const Thread thread{event["pid"].get<int64_t>(), event["tid"].get<int64_t>()};
        if (phase == "M") {
            if (event["name"] == "thread_name") {
                named[thread] = true;
            }
            continue;
        }
        REQUIRE(event["ts"].is_number());
        CHECK(event["ts"].get<double>() >= 0);
        if (phase == "X") {
            REQUIRE(event["dur"].is_number());
            REQUIRE(ns(event["dur"]) >= 0);
            slices[thread].emplace_back(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]));
            used[thread] = true;
        } else if (phase == "B") {
            open[thread].push_back(ns(event["ts"]));
            used[thread] = true;
        } else if (phase == "E") {
            REQUIRE_FALSE(open[thread].empty());
            CHECK(ns(event["ts"]) >= open[thread].back());
            open[thread].pop_back();
        } else if (phase == "b") {
            CHECK(requests
                      .emplace(std::pair(event["name"].get<std::string>(), event["id"].get<int64_t>()), ns(event["ts"]))
                      .second);
        } else if (phase == "e") {
            const auto begun = requests.find({event["name"].get<std::string>(), event["id"].get<int64_t>()});
            REQUIRE(begun != requests.end());
            CHECK(ns(event["ts"]) >= begun->second);
            requests.erase(begun);
        } else {
            CHECK((phase == "i" || phase == "C" || phase == "s" || phase == "f"));
        }
    }
    CHECK(requests.empty());
    for (const auto& [thread, left] : open) {
        CHECK(left.empty());
    }
    for (const auto& [thread, any] : used) {
        CHECK(named[thread]);
    }
    for (auto& [thread, list] : slices) {
        std::vector<int64_t> ends;
        for (const auto& [begin, end] : list) {  // written in the order of begin
            while (!ends.empty() && ends.back() <= begin) {
                ends.pop_back();
            }
            CHECK((ends.empty() || end <= ends.back()));
            ends.push_back(end);
        }
    }
}

Op call(OpKind kind, int64_t begin, int64_t duration) {
    Op op;
    op.kind = kind;
    op.begin = begin;
    op.duration = duration;
    return op;
}

}  // namespace

TEST_CASE("asynchronous requests have a lane for each ring, and a counter of those in flight") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_process({.pid = 100});
        log.add_task({.process = 1, .tid = 100});
        log.add_task({.process = 1, .tid = 101});
        FileRow row;
        row.path = log.intern("/data/a");
        const HandleId file = log.add_handle({.file = log.add_file(row)});
        const HandleId rings[] = {log.add_handle({.kind = HandleKind::other}),
                                  log.add_handle({.kind = HandleKind::other})};
        const auto add = [&](TaskId task, OpKind kind, int64_t begin, uint32_t request, int64_t result, auto more) {
            Op op = call(kind, begin, 0);
            op.request = request;
            op.result = result;
            more(op);
            log.append(task, op);
        };
        const auto reads = [&](Op& op) {
            op.handle = file;
            op.arg = 22;  // IORING_OP_READ
            op.offset = 8192;
            op.size = 4096;
        };
        const auto enters = [&](HandleId ring, int32_t fd) {
            return [ring, fd](Op& op) {
                op.handle = ring;
                op.fd = fd;
            };
        };
        const auto nothing = [](Op&) {};
        add(1, OpKind::uring_submit, 0, 1, 0, reads);
        add(1, OpKind::uring_submit, 0, 2, 0, reads);
        add(1, OpKind::uring_enter, 1000, 0, 2, enters(rings[0], 5));
        add(1, OpKind::uring_complete, 3000, 2, 4096, nothing);
        add(1, OpKind::uring_complete, 4000, 1, -EIO, nothing);
        add(2, OpKind::uring_submit, 500, 3, 0, reads);
        add(2, OpKind::uring_enter, 500, 0, 1, enters(rings[1], 6));
        add(2, OpKind::uring_complete, 2500, 3, 4096, nothing);
        log.finish();
    }
    const Json trace = export_json(dir.path(), dir / "a.oplog");
    check_structure(trace);
    std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> lanes, in_flight;
    std::map<int64_t, std::pair<int64_t, Json>> begun;
    for (const Json& event : trace["traceEvents"]) {
        const std::string phase = event["ph"], name = event["name"].is_string() ? event["name"] : "";
        if (phase == "b") {
            begun[event["id"].get<int64_t>()] = {ns(event["ts"]), event["args"]};
        } else if (phase == "e") {
            lanes[name].emplace_back(begun[event["id"].get<int64_t>()].first, ns(event["ts"]));
        } else if (phase == "C" && name.starts_with("in flight")) {
            in_flight[name].emplace_back(ns(event["ts"]), std::llround(event["args"]["requests"].get<double>()));
        }
    }
    using Spans = std::vector<std::pair<int64_t, int64_t>>;
    REQUIRE(lanes.size() == 2);
    CHECK(lanes["io_uring, fd 5"] == Spans{{0, 3000}, {0, 4000}});
    CHECK(lanes["io_uring, fd 6"] == Spans{{500, 2500}});
    CHECK(in_flight["in flight, io_uring, fd 5"] == Spans{{0, 2}, {3000, 1}, {4000, 0}});
    CHECK(in_flight["in flight, io_uring, fd 6"] == Spans{{500, 1}, {2500, 0}});
    CHECK(begun[1].second["error"] == std::strerror(EIO));
    CHECK(begun[2].second["does"] == "read");
    CHECK(begun[2].second["file"] == "/data/a");
    CHECK(begun[2].second["offset"] == 8192);
}

TEST_CASE("the sample's timeline has its processes, tasks, ops, markers and accelerator") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    ExportReport report;
    const Json trace = export_json(dir.path(), dir / "a.oplog", &report);
    check_structure(trace);
    CHECK(report.ops == 44);
    CHECK(report.counters.empty());
    std::map<std::string, int> phases, names;
    for (const Json& event : trace["traceEvents"]) {
        ++phases[event["ph"]];
        if (event["ph"] == "M") {
            ++names[event["args"].begin()->dump()];
        }
        if (event["ph"] != "X") {
            continue;
        }
        const std::string name = event["name"];
        if (name == "pread" && event["args"]["offset"] == 16384) {
            CHECK(event["ts"].dump() == "11000");  // the log begins at -2 ms
            CHECK(event["dur"].dump() == "20");
            CHECK(event["args"]["file"] == "/data/a b\\n\\xff\"x");
            CHECK(event["args"]["size"] == 16384);
            CHECK(event["args"]["result"] == 16384);
            CHECK(event["pid"] == 101);
            CHECK(event["tid"] == 101);
        }
        if (name == "open" && event["args"]["file"] == "/nope") {
            CHECK(event["args"]["error"] == std::strerror(ENOENT));
        }
        if (name == "touch") {
            CHECK(event["args"]["file"] == "/usr/lib/libc.so.6");
        }
    }
    CHECK(phases["X"] == 44 - 6 + 6);  // ops without markers, and the accelerator's work
    CHECK(phases["B"] == 3);
    CHECK(phases["E"] == 3);
    CHECK(phases["C"] > 0);
    CHECK(names["\"python train.py on host a\""] == 1);
    CHECK(names["\"worker\""] == 1);
    CHECK(names["\"markers of main 100\""] == 1);
    CHECK(names["\"accelerator 0\""] == 1);
    CHECK(phases["s"] == 1);
    CHECK(phases["f"] == 1);
    CHECK(trace["otherData"]["rows_malformed"] == "2: lines that could not be read");
}

TEST_CASE("throughput counters add up to the bytes moved") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const Json trace = export_json(dir.path(), dir / "a.oplog");
    std::map<std::string, std::vector<std::pair<int64_t, double>>> tracks;
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] == "C") {
            tracks[event["name"]].emplace_back(ns(event["ts"]), event["args"]["MB/s"].get<double>());
        }
    }
    const auto total = [](const auto& track) {
        double bytes = 0;
        for (size_t i = 0; i + 1 < track.size(); ++i) {
            bytes += track[i].second * 1e6 * static_cast<double>(track[i + 1].first - track[i].first) / 1e9;
        }
        return bytes;
    };
    CHECK(total(tracks["read"]) == doctest::Approx(90112).epsilon(0.001));
    CHECK(total(tracks["write"]) == doctest::Approx(8192).epsilon(0.001));
    CHECK(tracks["read"].back().second == 0);
}

TEST_CASE("overlapping calls, crossing spans and rounding still make a valid timeline") {
    const test::TempDir dir;
    {
        Header header;
        header.time_unit_ns = 1000;
        LogWriter log(dir / "a.oplog", header);
        log.add_process({7, 0, 0, 0});
        log.add_process({7, 0, 0, 0});  // the same pid twice: two hosts
        log.add_task({1, 7, 0});
        log.add_task({2, 7, 0});
        const StringId a = log.intern("a\xff"), b = log.intern("b");
        const auto mark = [&](int64_t at, StringId text, MarkerPhase phase) {
            Op op = call(OpKind::marker, at, 0);
            op.text = text;
            op.arg = -1;
            op.flags = static_cast<int64_t>(phase);
            log.append(1, op);
        };
        log.append(1, call(OpKind::fsync, 1000, 10000));
        log.append(1, call(OpKind::fsync, 4000, 2000));    // inside
        log.append(1, call(OpKind::fsync, 9000, 10000));   // overlaps by rounding
        log.append(1, call(OpKind::fsync, 14000, 20000));  // overlaps: another lane
        log.append(1, call(OpKind::fsync, 15000, 0));
        mark(40000, a, MarkerPhase::begin);
        mark(41000, b, MarkerPhase::begin);
        mark(42000, a, MarkerPhase::end);  // crosses b
        mark(43000, b, MarkerPhase::end);
        mark(44000, b, MarkerPhase::begin);  // never ends
        log.append(2, call(OpKind::read, 1000, int64_t{1'000'000'000'000}));
        log.finish();
    }
    ExportReport report;
    const Json trace = export_json(dir.path(), dir / "a.oplog", &report);
    check_structure(trace);
    uint64_t lanes = 0;
    for (const Json& event : trace["traceEvents"]) {
        lanes += event["ph"] == "M" && event["name"] == "thread_name" &&
                 event["args"]["name"].get<std::string>().find("overlap") != std::string::npos;
    }
    CHECK(lanes == 1);
    REQUIRE(report.counters.size() == 2);
    CHECK(report.counters[0].name == "markers_crossed");
    CHECK(report.counters[1].name == "markers_unmatched");
}

TEST_CASE("every op of the table can be drawn, and .gz holds the same") {
    const test::TempDir dir;
    test::write_all_ops(dir / "a.oplog");
    check_structure(export_json(dir.path(), dir / "a.oplog"));
    find_exporter("perfetto").write(LogReader(dir / "a.oplog"), dir / "out.json.gz", {});
    const std::string plain = test::read_file(dir / "out.json");
    const std::string unpacked = read_head(dir / "out.json.gz", plain.size() + 10);
    CHECK(unpacked == plain);
    CHECK(test::read_file(dir / "out.json.gz").substr(0, 2) == "\x1f\x8b");
    CHECK_FALSE(std::filesystem::exists(dir / "out.json.gz.partial"));
}

TEST_CASE("an empty log gives an empty timeline") {
    const test::TempDir dir;
    LogWriter(dir / "a.oplog", Header()).finish();
    check_structure(export_json(dir.path(), dir / "a.oplog"));
}

TEST_CASE("edges become arrows from a source's event to what it let begin, or to the end of what waited") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_process({7, 0, 0, 0});
        log.add_task({1, 7, log.intern("a")});
        log.add_task({1, 8, log.intern("b")});
        log.append(1, call(OpKind::send, 1000, 500));  // 0
        log.append(1, call(OpKind::send, 5000, 500));  // 1
        log.append(1, call(OpKind::send, 9000, 500));  // 2
        for (const auto& [at, phase] : {std::pair(10'000, MarkerPhase::begin), std::pair(11'000, MarkerPhase::end)}) {
            Op op = call(OpKind::marker, at, 0);  // 3, 4
            op.flags = static_cast<int64_t>(phase);
            log.append(1, op);
        }
        const auto after = [&](OpKind kind, int64_t begin, int64_t duration, std::vector<Edge> edges) {
            Op op = call(kind, begin, duration);
            op.edges = edges;
            log.append(2, op);
        };
        after(OpKind::receive, 2000, 100, {{1, EdgeKind::message, 100, 0}});
        after(OpKind::wait, 3000, 3000, {{1, EdgeKind::wake, 100, 1}, {1, EdgeKind::message, 100, 0}});
        after(OpKind::wait, 7000, 1000, {{1, EdgeKind::wake, 100, 2}, {1, EdgeKind::wake, 100, 77}});
        after(OpKind::receive, 12'000, 100, {{1, EdgeKind::marker, 100, 4}});
        log.finish();
    }
    ExportReport report;
    const Json trace = export_json(dir.path(), dir / "a.oplog", &report);
    check_structure(trace);
    std::string flows;
    for (const Json& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        if (phase != "s" && phase != "f" && phase != "i") {
            continue;
        }
        flows += phase + " " + event["name"].get<std::string>() + " " + event["tid"].dump() + " " +
                 std::to_string(ns(event["ts"])) + (event.contains("id") ? " #" + event["id"].dump() : "") + "\n";
        if (phase == "f") {
            CHECK(event["bp"] == "e");
        }
        if (phase == "i") {
            CHECK(event["args"]["by"] == "a 7");
        }
    }
    CHECK(flows ==
          "s message 7 1000 #1\n"
          "f message 8 2000 #1\n"
          "i released 8 6000\n"
          "f wake 8 6000 #2\n"
          "f message 8 3000 #1\n"
          "s wake 7 5000 #2\n"
          "s wake 7 9000 #3\n"
          "s marker 1 10999 #4\n"  // before the span's end
          "f marker 8 12000 #4\n");
    REQUIRE(report.counters.size() == 1);
    CHECK(report.counters[0].name == "edges_backwards");
    CHECK(report.counters[0].value == 1);

    ExportOptions only;
    only.tasks = {2};
    find_exporter("perfetto").write(LogReader(dir / "a.oplog"), dir / "one.json", only);
    const Json one = Json::parse(test::read_file(dir / "one.json"));
    for (const Json& event : one["traceEvents"]) {
        CHECK((event["ph"] == "X" || event["ph"] == "M"));
    }
}

TEST_CASE("what happened around the job becomes counters, and a header that makes no sense becomes none") {
    const test::TempDir dir;
    const auto counters = [&](const std::string& context) {
        Header header;
        header.extra["context"] = context;
        LogWriter log(dir / "a.oplog", header);
        log.add_process({7, 0, 0, 0});
        log.add_task({1, 7, 0});
        log.append(1, call(OpKind::fsync, 0, 300'000'000));
        log.finish();
        std::string text;
        const Json trace = export_json(dir.path(), dir / "a.oplog");
        for (const Json& event : trace["traceEvents"]) {
            if (event["ph"] == "C") {
                text += event["name"].get<std::string>() + " " + event["ts"].dump() + " " + event["args"].dump() + "\n";
            }
        }
        return text;
    };
    CHECK(counters(R"({"interval_ms":100,"series":{"io_some_us":[0,50000,200000],"cache_added_kib":[1024],)"
                   R"("block_reads":[0,4],"block_read_us":[0,1000],"other":[1]}})") ==
          "I/O pressure, some 0 {\"%\":0.0}\n"
          "I/O pressure, some 100000 {\"%\":50.0}\n"
          "I/O pressure, some 200000 {\"%\":100.0}\n"
          "I/O pressure, some 300000 {\"%\":0.0}\n"
          "page cache added 0 {\"MiB/s\":10.0}\n"
          "page cache added 100000 {\"MiB/s\":0.0}\n"
          "device reads 0 {\"per s\":0.0}\n"
          "device reads 100000 {\"per s\":40.0}\n"
          "device reads 200000 {\"per s\":0.0}\n"
          "device read latency 0 {\"us\":0.0}\n"
          "device read latency 100000 {\"us\":250.0}\n"
          "device read latency 200000 {\"us\":0.0}\n");
    for (const char* bad :
         {"", "7", "[]", "{", "{\"interval_ms\":100}", "{\"interval_ms\":100,\"series\":[1]}",
          R"({"interval_ms":0,"series":{"io_some_us":[1]}})", R"({"interval_ms":-1,"series":{"io_some_us":[1]}})",
          R"({"interval_ms":99999999999999,"series":{"io_some_us":[1]}})",
          R"({"interval_ms":100,"series":{"io_some_us":["a"]}})",
          R"({"interval_ms":100,"series":{"io_some_us":{}}})"}) {
        CHECK(counters(bad) == "");
    }
}
