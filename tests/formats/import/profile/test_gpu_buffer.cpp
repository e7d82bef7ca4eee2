// SPDX-License-Identifier: MIT
// What the collector leaves, as events and as a log; files that are cut or none of its.
#include "formats/import/profile/gpu_buffer.h"

#include <cstring>

#include "formats/import/profile/profile_log.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kBoot = 5'000'000'000, kWall = 1'700'000'000'000'000'000;

// A file as the collector writes it; times are us since kBoot.
class Buffer {
public:
    explicit Buffer(uint32_t pid) {
        gpu_file_head head{};
        std::memcpy(head.magic, GPU_BUFFER_MAGIC, sizeof head.magic);
        head.bytes = sizeof head;
        head.pid = pid;
        head.monotonic = kBoot;
        head.realtime = kWall;
        bytes.assign(reinterpret_cast<const char*>(&head), sizeof head);
    }
    Buffer& add(uint32_t type, int64_t begin, int64_t end, uint32_t correlation, uint32_t device, uint32_t stream,
                std::string_view name = {}, uint32_t tid = 0) {
        gpu_record record{};
        record.type = type;
        record.begin = kBoot + begin * 1000;
        record.end = kBoot + end * 1000;
        record.device = device;
        record.stream = stream;
        record.correlation = correlation;
        record.tid = tid;
        record.name_bytes = static_cast<uint32_t>(name.size());
        record.bytes = static_cast<uint32_t>((sizeof record + name.size() + 7) / 8 * 8);
        bytes.append(reinterpret_cast<const char*>(&record), sizeof record).append(name);
        bytes.append(record.bytes - sizeof record - name.size(), '\0');
        return *this;
    }
    Buffer& call(int64_t begin, int64_t end, uint32_t correlation, std::string_view name, uint32_t tid = 21) {
        return add(GPU_RECORD_CALL, begin, end, correlation, GPU_BUFFER_NONE, GPU_BUFFER_NONE, name, tid);
    }
    Buffer& kernel(int64_t begin, int64_t end, uint32_t correlation, uint32_t stream, uint32_t device = 0) {
        return add(GPU_RECORD_KERNEL, begin, end, correlation, device, stream, "gemm");
    }
    std::string bytes;
};

LogReader log_of(const TempDir& dir) {
    kineto::Events events;
    read_gpu_buffers(dir.path(), events);
    REQUIRE(!events.work.empty());
    ImportOptions how;
    how.writer.sync = false;
    write_profile_log(events, "cupti", dir / "out.oplog", how);
    return LogReader(dir / "out.oplog");
}

std::string work(const LogReader& log) {
    std::string text;
    for (const Row& row : rows(log)) {
        const TaskRow& task = log.tables().tasks[row.task];
        text += std::to_string(log.tables().processes[task.process].pid) + "." + std::to_string(task.tid) + " " +
                std::to_string(row.op.begin / 1000) + "+" + std::to_string(row.op.duration / 1000) + " " +
                std::string(info(row.op.kind).name) + " " + std::to_string(row.op.arg) + "/" +
                std::to_string(row.op.flags) + " #" + std::to_string(row.op.size / 1000) + " " +
                std::string(log.tables().strings[row.op.text]) + "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("gpu buffers: kernels, copies and fills of two devices and several streams, and the calls that wait") {
    TempDir dir;
    Buffer buffer(20);
    buffer.call(0, 1, 1, "cudaLaunchKernel_v7000").kernel(10, 500, 1, 7);
    buffer.call(2, 3, 2, "cudaLaunchKernel_ptsz_v7000").kernel(20, 300, 2, 13);
    buffer.call(4, 5, 3, "cuLaunchKernel").kernel(30, 900, 3, 7, 1);
    buffer.call(6, 7, 4, "cudaMemcpyAsync_v3020").add(GPU_RECORD_COPY, 1000, 1100, 4, 0, 7);
    buffer.add(GPU_RECORD_FILL, 2000, 2010, 0, 0, 7);
    // Waits for stream 13 alone, then, without a stream, for all of the device that works.
    buffer.add(GPU_RECORD_SYNC, 40, 300, 5, GPU_BUFFER_NONE, 13).call(40, 301, 5, "cudaStreamSynchronize_ptsz_v7000");
    buffer.call(400, 1101, 6, "cudaDeviceSynchronize_v3020");
    write_file(dir / "20.1.gpu", buffer.bytes);
    const LogReader log = log_of(dir);
    CHECK(work(log) ==
          "20.21 0+0 gpu_submit 0/7 #490 gemm\n"
          "20.21 2+0 gpu_submit 0/13 #280 gemm\n"
          "20.21 4+0 gpu_submit 1/7 #870 gemm\n"
          "20.21 6+0 gpu_submit 0/7 #100 memcpy\n"
          "20.21 40+261 gpu_wait 0/13 #0 \n"
          "20.21 400+701 gpu_wait 0/7 #0 \n"
          "0.8 2000+0 gpu_submit 0/7 #10 memset\n");
    CHECK(log.header().source == "cupti");
    CHECK(log.header().extra.at("accelerator.source") == "cupti");
    CHECK(log.header().origin_unix_ns == kWall);
    CHECK(counter(log, "work_without_launch") == 1);
    CHECK(counter(log, "malformed_events") == 0);
    CHECK(counter(log, "inputs_cut") == 0);
}

TEST_CASE("gpu buffers: processes count their calls each for itself, and overlaps and losses are counted") {
    TempDir dir;
    write_file(dir / "20.1.gpu", Buffer(20).call(0, 1, 1, "cudaLaunchKernel_v7000").kernel(10, 500, 1, 7).bytes);
    Buffer other(30);
    other.call(100, 101, 1, "cudaLaunchKernel_v7000", 31).kernel(110, 400, 1, 7, 1);
    other.call(105, 106, 2, "cudaLaunchKernel_v7000", 31).kernel(300, 600, 2, 7, 1);
    other.add(GPU_RECORD_LOST, 0, 0, 5, 0, 0);
    write_file(dir / "30.1.gpu", other.bytes);
    write_file(dir / "notes.txt", "not read");
    const LogReader log = log_of(dir);
    CHECK(work(log) ==
          "20.21 0+0 gpu_submit 0/7 #490 gemm\n"
          "30.31 100+0 gpu_submit 1/7 #490 gemm\n");
    CHECK(counter(log, "work_overlapping") == 1);
    CHECK(counter(log, "work_merged") == 1);
    CHECK(counter(log, "work_lost") == 5);
}

TEST_CASE("gpu buffers: a file cut anywhere is read to its last whole record") {
    Buffer buffer(20);
    const size_t head = buffer.bytes.size();
    buffer.call(0, 1, 1, "cudaLaunchKernel_v7000");
    const size_t first = buffer.bytes.size();
    buffer.kernel(10, 500, 1, 7);
    for (size_t length = 0; length <= buffer.bytes.size(); ++length) {
        TempDir dir;
        write_file(dir / "20.1.gpu", std::string_view(buffer.bytes).substr(0, length));
        kineto::Events events;
        CHECK(read_gpu_buffers(dir.path(), events) == 1);
        CHECK(events.malformed == (length < head));
        CHECK(events.calls.size() == (length >= first));
        CHECK(events.work.size() == (length == buffer.bytes.size()));
        CHECK(events.cut == (length > head && length != first && length != buffer.bytes.size()));
        CHECK(events.clock_differences.size() == (length >= head));
    }
}

TEST_CASE("gpu buffers: what is no such file, and records that make no sense, are counted and placed") {
    const auto read = [](std::string_view bytes) {
        TempDir dir;
        write_file(dir / "20.1.gpu", bytes);
        kineto::Events events;
        read_gpu_buffers(dir.path(), events);
        CHECK(events.work.empty());
        CHECK(events.calls.empty());
        CHECK(events.malformed == 1);
        return events.first_malformed;
    };
    Buffer none(20);
    none.kernel(0, 1, 1, 7).bytes[0] = 'X';
    CHECK(read(none.bytes) == "byte 0 of 20.1.gpu");
    CHECK(read(std::string(4096, 'a')) == "byte 0 of 20.1.gpu");
    const std::string at = "byte " + std::to_string(sizeof(gpu_file_head)) + " of 20.1.gpu";
    CHECK(read(Buffer(20).kernel(500, 10, 1, 7).bytes) == at);              // ends before it begins
    CHECK(read(Buffer(20).kernel(-9'000'000, 10, 1, 7).bytes) == at);       // before the clock's begin
    CHECK(read(Buffer(20).kernel(0, 10, 1, GPU_BUFFER_NONE).bytes) == at);  // no stream
    CHECK(read(Buffer(20).add(99, 0, 10, 1, 0, 7).bytes) == at);            // no such type
    for (const uint32_t bytes : {0U, 8U, 61U}) {                            // lengths that lead nowhere
        Buffer bad(20);
        bad.kernel(0, 10, 1, 7);
        std::memcpy(bad.bytes.data() + sizeof(gpu_file_head), &bytes, sizeof bytes);
        CHECK(read(bad.bytes) == at);
    }
    TempDir dir;
    kineto::Events events;
    CHECK(read_gpu_buffers(dir / "nowhere", events) == 0);
}
