// SPDX-License-Identifier: MIT
// Any bytes as what the collector of `capture --gpu` left, and any records in good files of two processes: read, made a
// log, and grafted onto a recording, never a crash. The first byte chooses.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "formats/import/profile/gpu_buffer.h"
#include "formats/import/profile/profile_log.h"
#include "tests/fuzz/fuzz_support.h"
#include "transform/graft.h"

namespace {

using namespace reprise;

constexpr int64_t kBoot = 5'000'000'000, kWall = 1'700'000'000'000'000'000;
constexpr uint32_t kPid = 20;

// The input as a source of small numbers.
class Bytes {
public:
    Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool empty() const { return at_ == end_; }
    uint8_t next() { return empty() ? 0 : *at_++; }

private:
    const uint8_t *at_, *end_;
};

template <class Struct>
void append(std::vector<uint8_t>& out, const Struct& value) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
}

void write_file(const std::filesystem::path& path, const uint8_t* data, size_t size) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

gpu_file_head head_of(uint32_t pid) {
    gpu_file_head head{};
    std::memcpy(head.magic, GPU_BUFFER_MAGIC, sizeof head.magic);
    head.bytes = sizeof head;
    head.pid = pid;
    head.monotonic = kBoot;
    head.realtime = kWall;
    return head;
}

// Small devices, streams and correlations meet again; now and then a number is far out.
void add_record(Bytes& in, int64_t& now, std::vector<uint8_t>& out) {
    static constexpr std::string_view kNames[] = {"",
                                                  "gemm",
                                                  "cudaLaunchKernel_v7000",
                                                  "cudaStreamSynchronize_ptsz_v7000",
                                                  "cudaDeviceSynchronize_v3020",
                                                  "_v",
                                                  "cudaMemcpy_v3020",
                                                  "hipStreamSynchronize"};
    const uint8_t how = in.next();
    gpu_record record{};
    record.type = GPU_RECORD_KERNEL + (how & 7) % GPU_RECORD_LOST;
    now += in.next() * int64_t{2000};
    record.begin = now - in.next() * int64_t{1000};
    record.end = record.begin + in.next() * int64_t{5000};
    const uint8_t where = in.next();
    record.device = where & 1;
    record.stream = where >> 1 & 3;
    if ((where & 0x38) == 0x38) {
        record.stream = GPU_BUFFER_NONE;
    }
    record.correlation = in.next() & 31;
    record.tid = kPid + 1 + (where >> 6 & 1);
    const std::string_view name = kNames[in.next() % std::size(kNames)];
    record.name_bytes = static_cast<uint32_t>(name.size());
    record.bytes = static_cast<uint32_t>((sizeof record + name.size() + 7) / 8 * 8);
    const size_t at = out.size();
    if ((how & 0xf8) == 0xf8) {  // one field of four bytes, any value
        uint8_t* const field = reinterpret_cast<uint8_t*>(&record) + in.next() % (sizeof record / 4) * 4;
        for (size_t i = 0; i < 4; ++i) {
            field[i] = in.next();
        }
    }
    append(out, record);
    out.insert(out.end(), name.begin(), name.end());
    out.resize(at + (sizeof record + name.size() + 7) / 8 * 8);
}

// The recording that is grafted onto: two threads of one process that compute, read and wait in turn.
const std::filesystem::path& job() {
    static const std::filesystem::path path = [] {
        std::filesystem::path made = fuzz::scratch() / "job.oplog";
        Header header;
        header.source = "capture";
        header.origin_unix_ns = kWall;
        WriterOptions options;
        options.sync = false;
        LogWriter writer(made, header, options);
        ProcessRow process;
        process.pid = static_cast<int32_t>(kPid);
        const ProcessId id = writer.add_process(process);
        for (int32_t tid = 1; tid <= 2; ++tid) {
            TaskRow row;
            row.process = id;
            row.tid = process.pid + tid;
            const TaskId task = writer.add_task(row);
            for (int64_t i = 0; i < 60; ++i) {
                Op op;
                op.kind = i % 3 == 0 ? OpKind::compute : i % 3 == 1 ? OpKind::wait : OpKind::read;
                op.begin = i * 200'000;
                op.duration = 200'000 - tid * 1000;
                writer.append(task, op);
            }
        }
        writer.finish();
        return made;
    }();
    return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::filesystem::path folder = fuzz::scratch() / "gpu";
    std::filesystem::create_directories(folder);
    if (data[0] & 1) {
        write_file(folder / "20.1.gpu", data + 1, size - 1);
        write_file(folder / "21.1.gpu", nullptr, 0);
    } else {
        Bytes in(data + 1, size - 1);
        std::vector<uint8_t> files[2];
        for (uint32_t i = 0; i < 2; ++i) {
            append(files[i], head_of(kPid + i));
        }
        int64_t now = kBoot;
        while (!in.empty() && files[0].size() + files[1].size() < 60'000) {
            add_record(in, now, files[in.next() & 1]);
        }
        write_file(folder / "20.1.gpu", files[0].data(), files[0].size());
        write_file(folder / "21.1.gpu", files[1].data(), files[1].size());
    }

    kineto::Events events;
    fuzz::require(read_gpu_buffers(folder, events) == 2, "all files are read");
    for (const kineto::Work& one : events.work) {
        fuzz::require(one.duration >= 0 && one.name < events.names.size(), "work has a length and a name");
    }
    for (const kineto::HostCall& one : events.calls) {
        fuzz::require(one.duration >= 0 && one.name < events.names.size(), "calls have a length and a name");
    }
    fuzz::require((events.malformed == 0) == events.first_malformed.empty(), "what is malformed is placed");
    if (events.work.empty()) {
        return 0;  // the recording stays as it is
    }

    const std::filesystem::path profile = fuzz::scratch() / "profile.oplog", whole = fuzz::scratch() / "whole.oplog";
    ImportOptions options;
    options.writer.sync = false;
    options.writer.memory_bytes = size_t{1} << 20;
    write_profile_log(events, "cupti", profile, options);
    const LogReader made(profile);
    fuzz::read_all(made, true);
    try {
        const GraftResult result = graft(LogReader(job()), made, GraftBy::clock, whole);
        const LogReader grafted(whole);
        fuzz::read_all(grafted, true);
        fuzz::require(grafted.op_count() >= result.submissions + result.waits, "what was grafted is there");
        std::filesystem::remove(whole);
    } catch (const Error&) {
        fuzz::require(!std::filesystem::exists(whole.native() + ".partial"), "a refusal leaves no .partial behind");
    }
    std::filesystem::remove(profile);
    return 0;
}
