// SPDX-License-Identifier: MIT
#include "formats/import/profile/gpu_buffer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/support/input.h"

namespace reprise {
namespace {

constexpr uint32_t kMostIds = 1'000'000;
constexpr int64_t kLastTime = int64_t{1} << 61;  // sums of two still fit

bool is_time(int64_t ns) { return ns >= 0 && ns < kLastTime; }

// "cudaLaunchKernel_v7000", "cudaStreamSynchronize_ptsz_v7000"
std::string_view without_version(std::string_view name) {
    if (const size_t version = name.rfind("_v"); version != name.npos && version > 0) {
        name = name.substr(0, version);
    }
    for (const std::string_view stream : {"_ptsz", "_ptds"}) {
        if (name.ends_with(stream)) {
            name.remove_suffix(stream.size());
        }
    }
    return name;
}

class Reader {
public:
    Reader(const std::string& bytes, std::string name, kineto::Events& into)
        : bytes_(bytes), name_(std::move(name)), into_(into) {}

    void run() {
        if (!take(0, head_) || std::memcmp(head_.magic, GPU_BUFFER_MAGIC, sizeof head_.magic) != 0 ||
            head_.bytes < sizeof head_ || !is_time(head_.monotonic) || !is_time(head_.realtime)) {
            malformed(0);
            return;
        }
        into_.clock_differences.push_back(head_.realtime - head_.monotonic);
        size_t at = head_.bytes;
        gpu_record record{};
        for (; take(at, record); at += record.bytes) {
            ++into_.events;
            if (record.bytes < sizeof record || record.bytes % 8 != 0 ||
                record.name_bytes > record.bytes - sizeof record) {
                malformed(at);
                return;
            }
            if (record.bytes > bytes_.size() - at) {
                break;
            }
            one(record, {bytes_.data() + at + sizeof record, record.name_bytes}, at);
        }
        into_.cut = into_.cut || at != bytes_.size();
        for (size_t i = first_call_; i < into_.calls.size(); ++i) {
            kineto::HostCall& call = into_.calls[i];
            if (const auto found = streams_.find(call.correlation); found != streams_.end()) {
                call.stream = found->second == GPU_BUFFER_NONE ? -1 : static_cast<int64_t>(found->second);
            }
        }
    }

private:
    template <class Struct>
    bool take(size_t at, Struct& into) const {
        if (at > bytes_.size() || bytes_.size() - at < sizeof into) {
            return false;
        }
        std::memcpy(&into, bytes_.data() + at, sizeof into);
        return true;
    }
    void malformed(size_t at) {
        if (into_.malformed++ == 0) {
            into_.first_malformed = "byte " + std::to_string(at) + " of " + name_;
        }
    }
    // Processes count their calls each for itself.
    uint64_t correlation(const gpu_record& record) const {
        return record.correlation == 0 ? 0 : uint64_t{head_.pid} << 32 | record.correlation;
    }

    void one(const gpu_record& record, std::string_view name, size_t at) {
        if (record.type == GPU_RECORD_LOST) {
            into_.lost += record.correlation;
            return;
        }
        kineto::Span span;
        if (!is_time(record.begin) || !is_time(record.end) || record.end < record.begin) {
            return malformed(at);
        }
        span.duration = record.end - record.begin;
        span.begin = record.begin - head_.monotonic + head_.realtime;
        switch (record.type) {
            case GPU_RECORD_KERNEL:
            case GPU_RECORD_COPY:
            case GPU_RECORD_FILL: {
                if (record.device > kMostIds || record.stream > kMostIds) {
                    return malformed(at);
                }
                kineto::Work work;
                static_cast<kineto::Span&>(work) = span;
                work.device = record.device;
                work.stream = record.stream;
                work.correlation = correlation(record);
                const std::string_view kind = record.type == GPU_RECORD_COPY   ? "memcpy"
                                              : record.type == GPU_RECORD_FILL ? "memset"
                                                                               : "kernel";
                work.name = into_.name_of(name.empty() ? kind : name);
                into_.work.push_back(work);
                return;
            }
            case GPU_RECORD_CALL: {
                kineto::HostCall call;
                static_cast<kineto::Span&>(call) = span;
                call.pid = static_cast<int32_t>(head_.pid);
                call.tid = static_cast<int32_t>(record.tid);
                call.correlation = correlation(record);
                call.name = into_.name_of(without_version(name));
                into_.calls.push_back(call);
                return;
            }
            case GPU_RECORD_SYNC:
                if (record.correlation != 0) {
                    streams_[correlation(record)] = record.stream;
                }
                return;
            default: malformed(at);
        }
    }

    const std::string& bytes_;
    const std::string name_;
    kineto::Events& into_;
    const size_t first_call_ = into_.calls.size();
    gpu_file_head head_{};
    std::unordered_map<uint64_t, uint32_t> streams_;
};

}  // namespace

uint64_t read_gpu_buffers(const std::filesystem::path& folder, kineto::Events& into) {
    std::error_code error;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        if (entry.path().extension() == GPU_BUFFER_SUFFIX && entry.is_regular_file(error)) {
            paths.push_back(entry.path());
        }
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
        const std::string bytes = read_small_file(path).value_or("");  // nothing: counted as damaged
        Reader(bytes, path.filename().string(), into).run();
    }
    return paths.size();
}

}  // namespace reprise
