// SPDX-License-Identifier: MIT
#include "formats/oplog/held_memory.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kHeld = "held_memory";
constexpr uint32_t kVersion = 1;
constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kKiB = 1024;
// A year, and more memory than any machine has: beyond it the bytes are damaged.
constexpr uint64_t kMostMs = uint64_t{366} * 24 * 3600 * 1000, kMostKiB = uint64_t{1} << 44;

uint64_t part(ByteReader& in, uint64_t most) {
    const uint64_t value = in.varint();
    if (value > most) {
        throw Corrupt("memory that no process can have held");
    }
    return value;
}

}  // namespace

Derived encode_held_memory(const HeldMemories& held) {
    Derived out{std::string(kHeld), kVersion, {}};
    put_varint(out.bytes, held.size());
    ProcessId last = 0;
    for (const auto& [process, points] : held) {
        put_varint(out.bytes, process - last);
        last = process;
        put_varint(out.bytes, points.size());
        int64_t before = 0;
        for (const HeldMemory& point : points) {
            const int64_t ms = std::max(point.time_ns / kMs, before);
            put_varint(out.bytes, static_cast<uint64_t>(ms - before));
            before = ms;
            put_varint(out.bytes, point.anonymous / kKiB);
            put_varint(out.bytes, point.shared / kKiB);
        }
    }
    return out;
}

HeldMemories decode_held_memory(ByteView bytes, size_t processes) {
    ByteReader in(bytes);
    HeldMemories out;
    ProcessId process = 0;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        const uint64_t step = in.varint();
        if (step == 0 || step >= processes || process + step >= processes) {
            throw Corrupt("a process that is not in the log");
        }
        process += static_cast<ProcessId>(step);
        std::vector<HeldMemory>& points = out[process];
        uint64_t ms = 0;
        for (size_t left = in.count(in.left()); left > 0; --left) {
            ms += part(in, kMostMs);
            if (ms > kMostMs) {
                throw Corrupt("a time that no recording reaches");
            }
            HeldMemory point{static_cast<int64_t>(ms) * kMs};
            point.anonymous = part(in, kMostKiB) * kKiB;
            point.shared = part(in, kMostKiB) * kKiB;
            points.push_back(point);
        }
    }
    if (in.left() != 0) {
        throw Corrupt("bytes are left over at its end");
    }
    return out;
}

std::optional<HeldMemories> held_memory(const LogReader& log) {
    return stored_derived(log, kHeld, kVersion, "what it holds of the job's memory", "capture again",
                          [&](ByteView bytes) { return decode_held_memory(bytes, log.tables().processes.size()); });
}

std::vector<HeldTotal> total_held(const HeldMemories& held) {
    struct Change {
        int64_t time_ns;
        ProcessId process;
        uint64_t bytes;
    };
    std::vector<Change> changes;
    for (const auto& [process, points] : held) {
        for (const HeldMemory& point : points) {
            changes.push_back({point.time_ns, process, point.anonymous + point.shared});
        }
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.time_ns < b.time_ns; });
    std::vector<HeldTotal> total;
    std::map<ProcessId, uint64_t> now;
    uint64_t sum = 0;
    for (const Change& change : changes) {
        uint64_t& bytes = now[change.process];
        sum += change.bytes - bytes;
        bytes = change.bytes;
        if (total.empty() || total.back().time_ns != change.time_ns) {
            total.push_back({change.time_ns, sum});
        }
        total.back().bytes = sum;
    }
    return total;
}

uint64_t most_held(const std::vector<HeldTotal>& total) {
    uint64_t most = 0;
    for (const HeldTotal& point : total) {
        most = std::max(most, point.bytes);
    }
    return most;
}

uint64_t held_at(const std::vector<HeldTotal>& total, int64_t time_ns) {
    const auto after = std::upper_bound(total.begin(), total.end(), time_ns,
                                        [](int64_t time, const HeldTotal& point) { return time < point.time_ns; });
    return after == total.begin() ? 0 : std::prev(after)->bytes;
}

void copy_held_memory(const LogReader& from, LogWriter& to) {
    if (const std::optional<Derived> stored = from.derived(kHeld)) {
        to.keep(*stored);
    }
}

}  // namespace reprise
