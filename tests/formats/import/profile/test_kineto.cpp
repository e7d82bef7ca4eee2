// SPDX-License-Identifier: MIT
// The importer of PyTorch profiles: work, waits and steps; both spellings; odd files; the recorded profiles.
#include "formats/import/profile/kineto_events.h"
#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::string profile(std::string_view events, std::string_view more = "") {
    return "{\n  \"schemaVersion\": 1," + std::string(more) + "\n  \"traceEvents\": [\n" + std::string(events) +
           "\n]}\n";
}
std::string kernel(std::string_view ts, std::string_view dur, int correlation, int stream = 7, int device = 0) {
    return R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": )" + std::to_string(device) + R"(, "tid": )" +
           std::to_string(stream) + R"(, "ts": )" + std::string(ts) + R"(, "dur": )" + std::string(dur) +
           R"(, "args": {"device": )" + std::to_string(device) + R"(, "stream": )" + std::to_string(stream) +
           R"(, "correlation": )" + std::to_string(correlation) + "}},\n";
}
std::string call(std::string_view name, std::string_view ts, std::string_view dur, int correlation, int tid = 21) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + std::string(name) + R"(", "pid": 20, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::string(ts) + R"(, "dur": )" + std::string(dur) +
           R"(, "args": {"cbid": 211, "correlation": )" + std::to_string(correlation) + "}},\n";
}
constexpr std::string_view kLast = R"({"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 9})";

std::string work(const LogReader& log) {
    std::string text;
    for (const Row& row : rows(log)) {
        text += std::to_string(log.tables().tasks[row.task].tid) + " " + std::to_string(row.op.begin) + "+" +
                std::to_string(row.op.duration) + " " + std::string(info(row.op.kind).name) + " " +
                std::to_string(row.op.arg) + "/" + std::to_string(row.op.flags) + " #" + std::to_string(row.op.size) +
                " " + std::string(log.tables().strings[row.op.text]) + "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("microseconds as decimals become nanoseconds exactly") {
    const auto ns = [](std::string_view text) {
        int64_t value = -1;
        return kineto::microseconds_to_ns(text, value) ? value : INT64_MIN;
    };
    CHECK(ns("1712195495520883.125") == 1712195495520883125);  // a double would not hold it
    CHECK(ns("1712195495520883.0") == 1712195495520883000);
    CHECK(ns("0.5") == 500);
    CHECK(ns("0.0006") == 1);
    CHECK(ns("-3.25") == -3250);
    CHECK(ns("12") == 12000);
    for (const char* bad : {"", ".", "1.", "a", "1.2.3", "1e9", "99999999999999999999",
                            "9223372036854775"}) {  // the last: beyond what fits
        CHECK(ns(bad) == INT64_MIN);
    }
}

TEST_CASE("work is submitted where the host launched it, and merged where it queued up") {
    TempDir dir;
    const LogReader log = import_text(
        dir, profile(call("cudaLaunchKernel", "100", "5", 1) + call("cudaLaunchKernel", "110", "5", 2) +
                     call("cudaLaunchKernel", "400", "5", 3) + kernel("150", "50", 1) + kernel("202.5", "47.5", 2) +
                     kernel("410.25", "10", 3) + call("cudaDeviceSynchronize", "120", "131", 9) + std::string(kLast)));
    CHECK(work(log) ==
          "21 0+0 gpu_submit 0/7 #100000 gemm\n"
          "21 20000+131000 gpu_wait 0/7 #0 \n"
          "21 300000+0 gpu_submit 0/7 #10000 gemm\n");
    CHECK(counter(log, "work_merged") == 1);
    CHECK(counter(log, "work_without_launch") == 0);
    CHECK(log.header().origin_unix_ns == 100'000);
    CHECK(log.header().source == "kineto");
}

TEST_CASE("work that began late because the host was late stays apart") {
    TempDir dir;
    const LogReader log =
        import_text(dir, profile(call("cudaLaunchKernel", "100", "5", 1) + kernel("110", "50", 1) +
                                 call("cudaLaunchKernel", "163", "2", 2) + kernel("166", "4", 2) + std::string(kLast)));
    CHECK(work(log) == "21 0+0 gpu_submit 0/7 #50000 gemm\n21 63000+0 gpu_submit 0/7 #4000 gemm\n");
}

TEST_CASE("older files: upper case, numbers as strings, steps, a copy that was waited for") {
    TempDir dir;
    const LogReader log = import_text(
        dir,
        profile(
            R"({"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 20, "tid": "21", "ts": 90, "dur": 5000},
{"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 20, "tid": "21", "ts": 100, "dur": 2000,
 "args": {"cbid": 41, "correlation": 4}},
{"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 1, "tid": "stream 7", "ts": 110, "dur": 1980,
 "args": {"device": 1, "stream": 7, "correlation": 4}})"));
    CHECK(work(log) ==
          "21 0+0 marker 5/1 #0 step\n"
          "21 10000+0 gpu_submit 1/7 #1980000 Memcpy HtoD\n"
          "21 10000+2000000 gpu_wait 1/7 #0 \n"
          "21 5000000+0 marker 5/2 #0 step\n");
}

TEST_CASE("times relative to a base, wherever it stands") {
    TempDir dir;
    const std::string events = call("cudaLaunchKernel", "1.5", "1", 1) + kernel("3", "1", 1) + std::string(kLast);
    const LogReader log = import_text(dir, profile(events, " \"baseTimeNanoseconds\": 1700000000000000000,"));
    CHECK(log.header().origin_unix_ns == 1'700'000'000'000'001'500);
    std::string after = profile(events);
    after.replace(after.rfind('}'), 1, ", \"baseTimeNanoseconds\": 1700000000000000000}");
    TempDir other;
    CHECK(import_text(other, after).header().origin_unix_ns == 1'700'000'000'000'001'500);
}

TEST_CASE("devices and streams are queues of their own; work without a launch has a task of its own") {
    TempDir dir;
    const LogReader log =
        import_text(dir, profile(kernel("10", "5", 0, 7, 0) + kernel("12", "5", 0, 8, 0) + kernel("12", "5", 0, 7, 1) +
                                 kernel("13", "5", 0, 7, 1) + std::string(kLast)));
    CHECK(log.op_count() == 3);
    CHECK(log.tables().tasks.size() == 4);
    CHECK(counter(log, "work_without_launch") == 3);
    CHECK(counter(log, "work_overlapping") == 1);
}

TEST_CASE("bad events are counted, a cut file is read up to the cut, anything else is refused") {
    TempDir dir;
    const std::string good = call("cudaLaunchKernel", "100", "5", 1) + kernel("150", "50", 1);
    {
        const LogReader log =
            import_text(dir, profile(good + kernel("\"x\"", "50", 2) + kernel("160", "-1", 3) +
                                     kernel("99999999999999999999", "1", 4) + "7,\n" + std::string(kLast)));
        CHECK(counter(log, "malformed_events") == 4);
        CHECK(log.op_count() == 1);
    }
    {
        const std::string whole = profile(good + kernel("300", "10", 2) + std::string(kLast));
        TempDir other;
        const LogReader log = import_text(other, whole.substr(0, whole.find("\"ts\": 300") + 3));
        CHECK(counter(log, "inputs_cut") == 1);
        CHECK(log.op_count() == 1);
    }
    const auto refused = [&](std::string_view text, const char* says) {
        TempDir other;
        CHECK_THROWS_WITH_AS(import_text(other, text, "kineto"), doctest::Contains(says), Error);
    };
    refused(profile(call("cudaLaunchKernel", "100", "5", 1) + std::string(kLast)), "no accelerator work");
    refused("{\"schemaVersion\": 1, \"other\": []}", "no list traceEvents");
    refused("[1, 2]", "not a PyTorch profile");
    refused("", "not a PyTorch profile");
}

TEST_CASE("recorded profiles of ResNet-50 on a V100") {
    struct Truth {
        const char* file;
        int64_t steps;
        double busy_ms;  // union of all intervals, counted apart
        double span_ms;
    };
    for (const Truth& truth : {Truth{"kineto/resnet50_workers0_v100.pt.trace.json.gz", 6, 603.6, 996.5},
                               Truth{"kineto/resnet50_workers4_v100.pt.trace.json.gz", 6, 614.4, 801.6},
                               Truth{"kineto/cnn_ddp_v100_ns.pt.trace.json.gz", 5, 472.5, 480.0}}) {
        REPRISE_TRACE(path, truth.file);
        TempDir dir;
        const LogReader log = import_files(dir, {path});
        int64_t busy = 0, steps = 0;
        for (const Row& row : rows(log)) {
            busy += row.op.kind == OpKind::gpu_submit ? row.op.size : 0;
            steps += row.op.kind == OpKind::marker && row.op.flags == 1;
        }
        INFO(truth.file);
        CHECK(steps == truth.steps);
        // Gaps below 10 us are the device's own: part of its busy time, and few.
        CHECK(static_cast<double>(busy) / 1e6 >= truth.busy_ms);
        CHECK(static_cast<double>(busy) / 1e6 <= truth.busy_ms * 1.02);
        CHECK(counter(log, "malformed_events") == 0);
        CHECK(counter(log, "work_without_launch") == 0);
    }
}
