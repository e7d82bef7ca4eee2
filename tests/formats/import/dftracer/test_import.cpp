// SPDX-License-Identifier: MIT
// The DFTracer importer: the three dialects on hand-written text, bad input, and the truths of the recorded traces.
#include <cmath>
#include <map>
#include <set>

#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::string_view path_or_text(const LogReader& log, const Op& op) { return log.tables().strings[op.text]; }

std::string refusal(const TempDir& dir, std::string_view text, std::string_view from = {}) {
    try {
        import_text(dir, text, from);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        CHECK_FALSE(std::filesystem::exists(dir / "out.oplog"));
        CHECK_FALSE(std::filesystem::exists(dir / "out.oplog.partial"));
        return error.what();
    }
    return "accepted";
}

// An event of the dialect of 2023.
std::string old_event(int id, std::string_view name, int64_t ts, int64_t dur, std::string_view args, int tid = 7,
                      std::string_view category = "POSIX") {
    return "{\"id\":\"" + std::to_string(id) + "\",\"name\":\"" + std::string(name) + "\",\"cat\":\"" +
           std::string(category) + "\",\"pid\":\"7\",\"tid\":\"" + std::to_string(tid) + "\",\"ts\":\"" +
           std::to_string(ts) + "\",\"dur\":\"" + std::to_string(dur) +
           "\",\"ph\":\"X\",\"args\":{\"hostname\":\"n1\"" + (args.empty() ? "" : ",") + std::string(args) + "}}\n";
}

}  // namespace

TEST_CASE("dialect of 2023: numbers as strings, names inline") {
    TempDir dir;
    const LogReader log = import_text(
        dir,
        "[\n" + old_event(1, "open64", 1000100, 10, R"("ret":3,"flags":0,"fname":"/d/a.npz")") +
            old_event(2, "__fxstat64", 1000120, 1, R"("fd":3,"fname":"/d/a.npz")") +
            old_event(3, "read", 1000130, 5, R"("ret":"4096","count":"8192","fd":3,"fname":"/d/a.npz")") +
            old_event(4, "lseek64", 1000140, 1, R"("ret":"100","whence":0,"offset":"100","fd":3,"fname":"/d/a.npz")") +
            old_event(5, "read", 1000150, 5, R"("ret":"50","count":"50","fd":3,"fname":"/d/a.npz")") +
            old_event(6, "close", 1000160, 2, R"("ret":0,"fd":3,"fname":"/d/a.npz")") + "]\n");
    CHECK(listing(log) ==
          "7 0+10 open /d/a.npz = 3\n"
          "7 20+1 fstat /d/a.npz fd3 = 0\n"
          "7 30+5 read /d/a.npz fd3 @0 #8192 = 4096\n"
          "7 40+1 lseek /d/a.npz fd3 @100 arg0 = 100\n"
          "7 50+5 read /d/a.npz fd3 @100 #50 = 50\n"
          "7 60+2 close /d/a.npz fd3 = 0\n");
    CHECK(log.header().origin_unix_ns == 1000100 * 1000);
    CHECK(log.header().time_unit_ns == 1000);
    CHECK(log.header().source == "dftracer");
    CHECK(log.header().host == "n1");
    CHECK(counter(log, "events") == 6);
    CHECK(counter(log, "results_not_recorded") == 1);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("dialect 1.x: integers, names behind hashes beyond 2^53, defined before or after their use") {
    TempDir dir;
    // The two hashes differ only where a double has no bits left.
    const LogReader log = import_text(dir, R"([
{"id":1,"name":"HH","cat":"dftracer","pid":5,"tid":5,"ph":"M","args":{"hhash":9509357668201227806,"name":"node9","value":9509357668201227806}}
{"id":2,"name":"SH","cat":"dftracer","pid":5,"tid":5,"ph":"M","args":{"hhash":9509357668201227806,"name":"python train.py","value":777}}
{"id":3,"name":"start","cat":"dftracer","pid":5,"tid":5,"ts":50,"dur":0,"ph":"X","args":{"hhash":9509357668201227806,"cmd_hash":777,"exec_hash":1,"version":100008,"ppid":1}}
{"id":4,"name":"FH","cat":"dftracer","pid":5,"tid":5,"ph":"M","args":{"hhash":9509357668201227806,"name":"/d/one","value":16070890475139568535}}
{"id":5,"name":"open","cat":"POSIX","pid":5,"tid":5,"ts":100,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":16070890475139568535,"ret":4,"flags":0}}
{"id":6,"name":"open","cat":"POSIX","pid":5,"tid":5,"ts":110,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":16070890475139568536,"ret":5,"flags":577,"mode":420}}
{"id":7,"name":"pread","cat":"POSIX","pid":5,"tid":5,"ts":120,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":16070890475139568535,"fd":4,"ret":8,"count":16,"offset":4294967296}}
{"id":8,"name":"write","cat":"POSIX","pid":5,"tid":5,"ts":130,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":16070890475139568536,"fd":5,"ret":7,"count":7}}
{"id":9,"name":"FH","cat":"dftracer","pid":5,"tid":5,"ph":"M","args":{"hhash":9509357668201227806,"name":"/d/two","value":16070890475139568536}}
{"id":10,"name":"rename","cat":"POSIX","pid":5,"tid":5,"ts":140,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":16070890475139568536,"newpath":16070890475139568535,"ret":0}}
{"id":11,"name":"unlink","cat":"POSIX","pid":5,"tid":5,"ts":150,"dur":1,"ph":"X","args":{"hhash":9509357668201227806,"fhash":31337}}
{"id":12,"name":"end","cat":"dftracer","pid":5,"tid":5,"ts":160,"dur":0,"ph":"X","args":{"hhash":9509357668201227806,"num_events":11}}
]
)");
    CHECK(listing(log) ==
          "5 0+1 open /d/one = 4\n"
          "5 10+1 open /d/two = 5\n"
          "5 20+1 pread /d/one fd4 @4294967296 #16 = 8\n"
          "5 30+1 write /d/two fd5 @0 #7 = 7\n"
          "5 40+1 rename /d/two -> /d/one = 0\n"
          "5 50+1 unlink /unnamed-by-dftracer/31337 = 0\n");
    CHECK(log.header().host == "node9");
    CHECK(log.header().command == "python train.py");
    CHECK(log.header().extra.at("dftracer_version") == "100008");
    CHECK(counter(log, "names_missing") == 1);
}

TEST_CASE("newest dialect: no brackets, integer phases, string hashes, no arguments") {
    TempDir dir;
    const std::string calls =
        R"({"name":"HH","cat":"dftracer","type":1,"pid":5,"tid":5,"ph":4,"args":{"hhash":"ab12","name":"node9","value":"ab12"}}
{"name":"FH","cat":"dftracer","type":1,"pid":5,"tid":5,"ph":4,"args":{"hhash":"ab12","name":"/d/one","value":"00ffee"}}
{"id":5,"name":"open","cat":"POSIX","type":3,"pid":5,"tid":5,"ts":100,"dur":1,"ph":1,"args":{"hhash":"ab12","fhash":"00ffee","ret":4,"flags":0}}
{"id":6,"name":"read","cat":"POSIX","type":3,"pid":5,"tid":5,"ts":110,"dur":1,"ph":1,"args":{"hhash":"ab12","fhash":"00ffee","fd":4,"ret":8,"count":16}}
{"id":7,"name":"epoch","cat":"pipeline","type":3,"pid":5,"tid":5,"ts":90,"dur":100,"ph":1}
)";
    const std::string sums =
        R"({"name":"read","cat":"POSIX","type":3,"ts":5000000,"ph":3,"pid":5,"tid":5,"args":{"hhash":"ab12","dft_cnt":3,"dur_sum":15}}
{"name":"cpu","cat":"sys","type":9,"ts":5000000,"ph":2,"pid":5,"tid":5,"args":{"hhash":"ab12","user":3}}
)";
    const LogReader log = import_text(dir, calls + sums);
    CHECK(listing(log) ==
          "5 0+0 marker 'epoch' arg-1 = 0\n"
          "5 10+1 open /d/one = 4\n"
          "5 20+1 read /d/one fd4 @0 #16 = 8\n"
          "5 100+0 marker 'epoch' arg-1 = 0\n");
    CHECK(counter(log, "aggregated_events") == 2);
    CHECK(log.tables().losses() == 2);
    CHECK(log.tables().processes.size() == 2);  // an event without host belongs to the only process of its pid
    TempDir other;
    const std::string message = refusal(other, sums);
    CHECK(message.find("aggregated counters (2 of them)") != std::string::npos);
    CHECK(message.find("no individual calls") != std::string::npos);
}

TEST_CASE("copies of events are dropped, equal calls at another time or by another thread are not") {
    TempDir dir;
    const std::string access = old_event(1, "access", 100, 3, R"("fname":"/x")");
    std::string many;
    for (int i = 0; i < 40; ++i) {
        many += old_event(50 + i % 20, "access", 900, 3, R"("fname":"/y")");
    }
    const LogReader log = import_text(dir, access + access + old_event(1, "access", 101, 3, R"("fname":"/x")") +
                                               old_event(1, "access", 100, 3, R"("fname":"/x")", 8) +
                                               old_event(1, "access", 100, 4, R"("fname":"/x")") +
                                               old_event(2, "access", 100, 3, R"("fname":"/x")") + access + many);
    CHECK(counter(log, "duplicates_dropped") == 2 + 20);
    CHECK(counter(log, "events") == 5 + 20);
    CHECK(log.op_count() == 25);
}

TEST_CASE("compute spans become accelerator intervals, loop spans markers") {
    TempDir dir;
    const std::string text =
        old_event(1, "DLIOBenchmark._train", 0, 1000, R"("epoch":"2","step":"9")", 7, "dlio_benchmark") +
        old_event(2, "loop.iter", 10, 90, R"("step":"1","epoch":"x")", 7, "data_loader") +
        old_event(3, "loop.yield", 100, 300, R"("step":"1")", 7, "data_loader") +
        old_event(4, "TorchFramework.compute", 110, 200, "", 7, "ai_framework") +
        old_event(5, "HDF5Reader.open", 20, 10, "", 7, "reader") +
        old_event(6, "TorchFramework.compute", 120, 20, "", 7, "ai_framework");
    {
        const LogReader log = import_text(dir, text);
        CHECK(listing(log) ==
              "7 0+0 marker 'epoch' arg2 = 0\n"
              "7 10+0 marker 'fetch' arg1 = 0\n"
              "7 100+0 marker 'fetch' arg1 = 0\n"
              "7 100+0 marker 'step' arg1 = 0\n"
              "7 110+0 gpu_submit #200000 'TorchFramework.compute' arg0 = 0\n"
              "7 110+200 gpu_wait arg0 = 0\n"
              "7 400+0 marker 'step' arg1 = 0\n"
              "7 1000+0 marker 'epoch' arg2 = 0\n");
        CHECK(counter(log, "spans_dropped") == 1);
        CHECK(counter(log, "nested_compute_spans") == 1);
    }
    ImportOptions options;
    options.compute_spans = {"reader:HDF5*"};
    options.all_spans = true;
    const LogReader log = import_text(dir, text, {}, options);
    size_t submits = 0, markers = 0;
    for (const Row& row : rows(log)) {
        submits += row.op.kind == OpKind::gpu_submit;
        markers += row.op.kind == OpKind::marker;
        if (row.op.kind == OpKind::gpu_submit) {
            CHECK(path_or_text(log, row.op) == "HDF5Reader.open");
        }
    }
    CHECK(submits == 1);
    CHECK(markers == 10);  // the two compute spans are markers now
    options.compute_spans = {"nothing*"};
    CHECK_THROWS_WITH_AS(import_text(dir, text, {}, options), doctest::Contains("matches no span"), Error);
}

TEST_CASE("fetch.block stands for compute only where there is nothing better") {
    TempDir dir;
    const std::string block = old_event(1, "fetch.block", 100, 50, R"("step":"4")", 7, "dataloader");
    CHECK(listing(import_text(dir, block)) ==
          "7 0+0 gpu_submit #50000 'fetch.block' arg0 = 0\n"
          "7 0+50 gpu_wait arg0 = 0\n"
          "7 0+0 marker 'step' arg4 = 0\n"
          "7 50+0 marker 'step' arg4 = 0\n");
    CHECK(listing(import_text(dir, block + old_event(2, "compute", 110, 20, "", 7, "compute"))) ==
          "7 0+0 marker 'step' arg4 = 0\n"
          "7 10+0 gpu_submit #20000 'compute' arg0 = 0\n"
          "7 10+20 gpu_wait arg0 = 0\n"
          "7 50+0 marker 'step' arg4 = 0\n");
}

TEST_CASE("threads share descriptors unless numbers collide") {
    TempDir dir;
    const auto open = [](int id, int64_t ts, int fd, std::string_view name, int tid) {
        return old_event(id, "open", ts, 1,
                         "\"ret\":" + std::to_string(fd) + ",\"flags\":0,\"fname\":\"" + std::string(name) + "\"", tid);
    };
    const auto read = [](int id, int64_t ts, int fd, std::string_view name, int tid) {
        return old_event(
            id, "read", ts, 1,
            "\"ret\":10,\"count\":10,\"fd\":" + std::to_string(fd) + ",\"fname\":\"" + std::string(name) + "\"", tid);
    };
    {
        const LogReader log =
            import_text(dir, open(1, 10, 3, "/a", 7) + read(2, 20, 3, "/a", 8) + read(3, 30, 3, "/a", 7));
        CHECK(log.tables().processes.size() == 2);
        CHECK(log.tables().tasks.size() == 3);
        CHECK(log.tables().handles.size() == 2);
        CHECK(rows(log).back().op.offset == 10);  // one position for both
    }
    const LogReader log = import_text(dir, open(1, 10, 3, "/a", 7) + open(2, 20, 3, "/b", 8) + open(3, 30, 3, "/c", 9) +
                                               read(4, 40, 3, "/b", 8) + read(5, 50, 3, "/c", 9) +
                                               read(6, 60, 3, "/a", 7) + read(7, 70, 3, "/b", 8));
    CHECK(log.tables().processes.size() == 4);
    CHECK(counter(log, "processes_inferred") == 2);
    CHECK(rows(log).back().path == "/b");
    CHECK(rows(log).back().op.offset == 10);
    std::set<int32_t> pids;
    for (size_t i = 1; i < log.tables().processes.size(); ++i) {
        pids.insert(log.tables().processes[i].pid);
    }
    CHECK(pids == std::set<int32_t>{7, 8, 9});
}

TEST_CASE("fork is a spawn of the parent; equal pids of two hosts are two processes") {
    TempDir dir;
    const auto event = [](int pid, int tid, int ts, std::string_view host, int ret) {
        return "{\"id\":1,\"name\":\"fork\",\"cat\":\"POSIX\",\"pid\":" + std::to_string(pid) +
               ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(ts) +
               ",\"dur\":5,\"ph\":\"X\",\"args\":{\"hhash\":\"" + std::string(host) +
               "\",\"ret\":" + std::to_string(ret) + "}}\n";
    };
    const LogReader log = import_text(dir, event(5, 5, 100, "h1", 6) + event(5, 6, 101, "h1", 0) +
                                               event(5, 5, 200, "h2", 6) + event(5, 6, 201, "h2", 0));
    CHECK(log.op_count() == 2);
    for (const Row& row : rows(log)) {
        CHECK(row.op.kind == OpKind::spawn);
    }
    CHECK(log.tables().processes.size() == 5);
    std::set<std::string> hosts;
    std::set<int32_t> pids;
    for (size_t i = 1; i < log.tables().processes.size(); ++i) {
        hosts.insert(std::string(log.tables().strings[log.tables().processes[i].host]));
        pids.insert(log.tables().processes[i].pid);
    }
    CHECK(hosts == std::set<std::string>{"h1", "h2"});
    CHECK(pids.size() == 4);
}

TEST_CASE("stdio calls stand for the calls they make") {
    TempDir dir;
    const LogReader log = import_text(
        dir, old_event(1, "fopen64", 100, 5, R"("mode":"re","fname":"/etc/x")", 7, "STDIO") +
                 old_event(2, "fread", 110, 5, R"("ret":10,"count":64,"size":4,"fname":"/etc/x")", 7, "STDIO") +
                 old_event(3, "ftell", 115, 1, R"("ret":40,"fname":"/etc/x")", 7, "STDIO") +
                 old_event(4, "fclose", 120, 5, R"("fname":"/etc/x")", 7, "STDIO"));
    const auto all = rows(log);
    REQUIRE(all.size() == 3);
    CHECK(all[0].op.kind == OpKind::open);
    CHECK(all[1].op.kind == OpKind::read);
    CHECK(all[1].op.size == 256);
    CHECK(all[1].op.result == 40);
    CHECK(all[2].op.kind == OpKind::close);
    CHECK(all[2].op.handle == all[0].op.handle);
    CHECK(counter(log, "stdio_calls") == 3);
}

TEST_CASE("calls whose essentials are not recorded are left out and counted, never half-made") {
    TempDir dir;
    const LogReader log = import_text(dir, old_event(1, "access", 100, 5, R"("fname":"/x")") +
                                               old_event(2, "fcntl", 110, 5, R"("cmd":1030,"fd":3,"fname":"/x")") +
                                               old_event(3, "dup", 120, 5, R"("fd":3,"fname":"/x")") +
                                               old_event(4, "open", 130, 5, R"("flags":0,"fname":"/x")") +
                                               old_event(5, "mkfifo", 140, 5, R"("mode":1,"fname":"/x")") +
                                               old_event(6, "rename", 150, 5, R"("fname":"/x")"));
    CHECK(log.op_count() == 1);
    CHECK(counter(log, "calls_incomplete") == 4);
    CHECK(counter(log, "calls_unknown") == 1);
    for (const Counter& c : log.tables().counters) {
        if (c.name == "calls_unknown") {
            CHECK(c.severity == Severity::loss);
            CHECK(c.meaning.find("mkfifo") != std::string::npos);
        }
    }
}

TEST_CASE("malformed lines are counted with the position of the first, the rest comes in") {
    TempDir dir;
    const std::string good = old_event(1, "access", 100, 5, R"("fname":"/x")");
    const std::pair<std::string_view, std::string_view> bad[] = {
        {R"({"id":"2","name":"open","cat":"POSIX","pid":"7","tid":"7","ts":"12","dur":"6","ph":"X","args":{"fname":"/dev/shm/FI)",
         "cut in a string"},
        {R"({"id":"2","name":"open","cat":"POSIX","pid":"7","tid":"7","ts":"12","du)", "cut in a key"},
        {R"({"id":2,"name":"open","cat":"POSIX","pid":7,"tid":7,"ts":12,"dur":6,"ph":"X","args":{"ret":3)",
         "cut in a number"},
        {R"({"id":"2","name":"access","cat":"POSIX","pid":"7","tid":"7","ts":"99999999999999999999","dur":"6","ph":"X","args":{}})",
         "beyond 64 bits"},
        {R"({"id":"2","name":"access","cat":"POSIX","pid":"7","tid":"7","ts":"9223372036854775807","dur":"9223372036854775807","ph":"X","args":{}})",
         "sum beyond 64 bits"},
        {R"({"id":"2","name":"access","cat":"POSIX","pid":"7","tid":"7","ts":"-5","dur":"6","ph":"X","args":{}})",
         "negative time"},
        {R"({"id":"2","name":"access","cat":"POSIX","pid":"7","tid":"7","dur":"6","ph":"X","args":{}})", "no time"},
        {R"({"id":"2","name":"read","cat":"POSIX","pid":"7","tid":"7","ts":"12","dur":"6","ph":"X","args":{"fd":99999999999,"count":3,"ret":3}})",
         "descriptor beyond 32 bits"},
        {R"({"id":"2","name":"read","cat":"POSIX","pid":"7","tid":"7","ts":"12","dur":"6","ph":"X","args":{"fd":3,"count":"1e400","ret":3}})",
         "count is no number"},
        {R"({"id":"2","name":"access","cat":"POSIX","pid":"7","tid":"7","ts":"12","dur":"6","ph":"Q","args":{}})",
         "unknown phase"},
        {R"([1,2,3])", "no object"},
        {"\x01\x02garbage", "binary"},
        {R"("}})", "the rest of a line"},
    };
    for (const auto& [line, why] : bad) {
        const auto& this_why = why;  // clang 14 has no capture of bindings
        CAPTURE(this_why);
        const LogReader log = import_text(
            dir, "[\n" + good + std::string(line) + "\n" + old_event(3, "access", 200, 5, R"("fname":"/z")"));
        CHECK(counter(log, "malformed_lines") == 1);
        CHECK(log.op_count() == 2);
        for (const Counter& c : log.tables().counters) {
            if (c.name == "malformed_lines") {
                CHECK(c.severity == Severity::loss);
                CHECK(c.meaning.find("input:3: ") != std::string::npos);
            }
        }
    }
}

TEST_CASE("paths are bytes: escapes, UTF-8, and what is not UTF-8") {
    TempDir dir;
    const LogReader log = import_text(dir, old_event(1, "access", 100, 1, R"("fname":"/a\nb")") +
                                               old_event(2, "access", 110, 1, "\"fname\":\"/\xc3\xa4\"") +
                                               old_event(3, "access", 120, 1, "\"fname\":\"/\xe4\xff \xc3\"") +
                                               old_event(4, "access", 130, 1, R"("fname":"/q\"u")"));
    const auto all = rows(log);
    REQUIRE(all.size() == 4);
    CHECK(all[0].path == "/a\nb");
    CHECK(all[1].path == "/\xc3\xa4");
    CHECK(all[2].path == "/\xe4\xff \xc3");
    CHECK(all[3].path == "/q\"u");
    CHECK(counter(log, "malformed_lines") == 0);
}

TEST_CASE("inputs that hold nothing are refused with the reason") {
    TempDir dir;
    CHECK(refusal(dir, "").find("is empty") != std::string::npos);
    CHECK(refusal(dir, "[\n", "dftracer").find("holds no events") != std::string::npos);
    CHECK(refusal(dir, "hello\nworld\n").find("begins with: hello") != std::string::npos);
    CHECK(refusal(dir, "hello\nworld\n", "dftracer").find("input:1: not a JSON object") != std::string::npos);
    CHECK(refusal(dir, std::string_view("\x7f"
                                        "ELF\0\0\1",
                                        7))
              .find("is not text") != std::string::npos);
}

// --- the recorded traces (FACTS: traces)

TEST_CASE("Unet3D on HDF5, 8 ranks: counts, bytes, sizes and the accelerator's use per epoch") {
    REPRISE_TRACE(folder, "dftracer/dlio_unet3d_hdf5_8ranks");
    TempDir dir;
    const LogReader log = import_files(dir, {folder});
    CHECK(counter(log, "malformed_lines") == 0);
    CHECK(counter(log, "calls_unknown") == 0);
    CHECK(counter(log, "inherited_descriptors") == 0);

    uint64_t preads = 0, bytes = 0, spans = 0;
    std::map<uint32_t, std::vector<int64_t>> sizes_of_handle;
    struct Interval {
        int64_t begin, end;
    };
    std::vector<Interval> computes, epochs;  // of rank 0
    std::vector<double> compute_us;
    std::set<int64_t> devices;
    const int32_t rank0 = 1028567;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        const bool first_rank = log.tables().processes[log.tables().tasks[task].process].pid == rank0;
        if (op.kind == OpKind::pread) {
            ++preads;
            bytes += static_cast<uint64_t>(op.result);
            sizes_of_handle[op.handle].push_back(op.result);
        } else if (op.kind == OpKind::gpu_submit) {
            ++spans;
            devices.insert(op.arg);
            compute_us.push_back(static_cast<double>(op.size) / 1e3);
            if (first_rank) {
                CHECK(op.arg == 0);
                computes.push_back({op.begin, op.begin + op.size});
            }
        } else if (op.kind == OpKind::marker && first_rank && log.tables().strings[op.text] == "epoch") {
            if (op.flags == static_cast<int64_t>(MarkerPhase::begin)) {
                epochs.push_back({op.begin, 0});
                CHECK(op.arg == static_cast<int64_t>(epochs.size()));
            } else {
                epochs.back().end = op.begin;
            }
        }
    });
    CHECK(preads == 7200);
    CHECK(bytes == 117'265'568'800);
    CHECK(spans == 200);
    CHECK(sizes_of_handle.size() == 800);
    CHECK(devices == std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
    double mean = 0, variance = 0;
    for (const double us : compute_us) {
        mean += us / static_cast<double>(spans);
    }
    for (const double us : compute_us) {
        variance += (us - mean) * (us - mean) / static_cast<double>(spans);
    }
    CHECK(mean == doctest::Approx(1'361'780).epsilon(5e-6));
    CHECK(std::sqrt(variance) == doctest::Approx(92).epsilon(0.01));
    const std::vector<int64_t> sample{8, 16, 80, 512, 512, 544, 328, 512, 146'579'449};
    uint64_t other = 0;
    for (const auto& [handle, sizes] : sizes_of_handle) {
        other += sizes != sample;
    }
    CHECK(other == 0);

    REQUIRE(epochs.size() == 5);
    const double seconds[] = {15.77, 10.31, 9.62, 9.60, 9.63}, use[] = {45.0, 66.2, 70.9, 71.0, 70.8};
    for (size_t e = 0; e < 5; ++e) {
        CHECK(static_cast<double>(epochs[e].end - epochs[e].begin) / 1e9 ==
              doctest::Approx(seconds[e]).epsilon(0.0006));
        std::vector<Interval> mine;
        for (const Interval& c : computes) {
            if (c.begin >= epochs[e].begin && c.end <= epochs[e].end) {
                mine.push_back(c);
            }
        }
        REQUIRE(mine.size() == 5);
        int64_t busy = 0;
        for (size_t i = 1; i < mine.size(); ++i) {
            busy += mine[i].end - mine[i].begin;
        }
        CHECK(100.0 * static_cast<double>(busy) / static_cast<double>(mine.back().end - mine.front().end) ==
              doctest::Approx(use[e]).epsilon(0.0008));
    }
}

TEST_CASE("Unet3D on npz, dialect of 2023: events, duplicates, reads, lseeks") {
    REPRISE_TRACE(trace, "dftracer/dlio_unet3d_npz_lustre.pfw.gz");
    TempDir dir;
    const LogReader log = import_files(dir, {trace});
    CHECK(counter(log, "events") == 89'054);
    CHECK(counter(log, "duplicates_dropped") == 4'840);
    CHECK(log.tables().tasks.size() == 1 + 21);
    uint64_t reads = 0, bytes = 0, seeks = 0, idle_seeks = 0;
    std::set<uint32_t> read_files;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::read) {
            ++reads;
            bytes += static_cast<uint64_t>(data_bytes(op));
            read_files.insert(log.tables().file_of(op));
        }
        if (op.kind == OpKind::lseek) {
            ++seeks;
            idle_seeks += op.offset == 0 && op.arg == 1;
            // The followed position agrees with what the call said.
            if (op.arg == 0) {
                CHECK(op.result == op.offset);
            }
        }
    });
    CHECK(reads == 5'734);
    CHECK(static_cast<double>(bytes) / 1e9 == doctest::Approx(21.455).epsilon(0.0001));
    CHECK(read_files.size() == 99);
    CHECK(seeks == 81'736);
    CHECK(idle_seeks == 81'041);
}

TEST_CASE("ERA5: files of system calls and of spans become the same tasks; two lines are malformed") {
    REPRISE_TRACE(spans, "dftracer/era5_training_0.pfw.gz");
    REPRISE_TRACE(calls, "dftracer/era5_training_1.pfw.gz");
    TempDir dir;
    ImportOptions options;
    options.compute_spans = {"train-*-prop", "eval-forward-prop"};
    const LogReader log = import_files(dir, {spans, calls}, {}, options);
    CHECK(counter(log, "malformed_lines") == 2);
    CHECK(log.tables().tasks.size() == 1 + 114);
    uint64_t preads = 0, computes = 0;
    std::set<TaskId> with_fetch, with_open;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        preads += op.kind == OpKind::pread;
        computes += op.kind == OpKind::gpu_submit;
        if (op.kind == OpKind::open) {
            with_open.insert(task);
        }
        if (op.kind == OpKind::marker && log.tables().strings[op.text] == "fetch") {
            with_fetch.insert(task);
        }
    });
    CHECK(preads == 89'646);
    CHECK(computes == 170 + 170 + 16);
    for (const TaskId task : with_fetch) {
        CHECK(with_open.contains(task));
    }
    CHECK(counter(log, "inherited_descriptors") == 0);
}

TEST_CASE("CM1: integer hashes, stdio, and hashes that collide") {
    REPRISE_TRACE(folder, "dftracer/cm1");
    TempDir dir;
    const LogReader log = import_files(dir, {folder});
    CHECK(log.tables().tasks.size() == 1 + 3);
    CHECK(counter(log, "hash_collisions") == 9);
    uint64_t writes = 0;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) { writes += op.kind == OpKind::write; });
    CHECK(writes == 7'683);
    CHECK(counter(log, "names_missing") == 0);
}

TEST_CASE("aggregated counters are refused with the reason") {
    REPRISE_TRACE(trace, "dftracer/counters_not_replayable.pfw.gz");
    TempDir dir;
    CHECK_THROWS_WITH_AS(import_files(dir, {trace}), doctest::Contains("no individual calls"), Error);
    CHECK_FALSE(std::filesystem::exists(dir / "out.oplog"));
}
