// SPDX-License-Identifier: MIT
#include "replay/predict/memory_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/oplog/touched.h"

namespace reprise {
namespace {

constexpr size_t kSizes = 64;
constexpr int64_t kSlack = 10'000;          // ns
constexpr double kCopyNsPerByte = 1.0 / 3;  // where nothing is known: 3 GB/s
constexpr int64_t kCallNs = 1'000;          // of a transfer besides its copy
constexpr int64_t kSyncNs = 5'000;          // with nothing to write
constexpr int64_t kFaultNs = 4'000;         // of a page that is there, at most
constexpr int64_t kPage = 4096;
constexpr int64_t kMostNs = int64_t{1} << 50;

int64_t recorded(const OpBlock& block, size_t i) { return std::clamp<int64_t>(block.duration[i], 0, kMostNs); }

bool moves_data(OpKind kind) { return info(kind).is(Trait::reads) || info(kind).is(Trait::writes); }

/// Bytes of a transfer, else pages of a touch, else nothing.
int64_t amount_of(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    if (moves_data(kind)) {
        return std::max<int64_t>(block.result[i], 0);
    }
    int64_t bytes = 0;
    if (kind == OpKind::touch) {
        each_touched(block.offset[i], block.size[i], block.list_of(i), [&](int64_t, int64_t more) { bytes += more; });
    }
    return bytes / kPage;
}

size_t size_class(int64_t amount) { return amount <= 0 ? 0 : std::bit_width(static_cast<uint64_t>(amount)); }

}  // namespace

uint32_t MemoryTimes::key_of(const OpBlock& block, size_t i) {
    const bool fresh =
        (block.flags[i] & kFreshMemory) != 0 && info(static_cast<OpKind>(block.kind[i])).is(Trait::reads);
    return static_cast<uint32_t>((block.kind[i] * kSizes + std::min(size_class(amount_of(block, i)), kSizes - 1)) * 2 +
                                 (fresh ? 1 : 0));
}

MemoryTimes::MemoryTimes(const Plan& plan) : settled_(kOpKindLimit * kSizes * 2) {
    OpBlock block;
    for (const TaskPlan& task : plan.tasks) {
        for (const BlockInfo& where : task.blocks) {
            plan.log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                if (info(static_cast<OpKind>(block.kind[i])).is(Trait::io)) {
                    Class& of = learning_[key_of(block, i)];
                    of.recorded.add(recorded(block, i));
                    of.bytes += static_cast<uint64_t>(amount_of(block, i));
                }
            }
        }
    }
    // The fastest copy of any size of 16 KiB and more is a copy of memory, if it is as fast as one.
    constexpr int64_t kLeastBytes = 16 << 10;
    least_ns_per_byte_ = kCopyNsPerByte;
    for (const auto& [key, of] : learning_) {
        const auto kind = static_cast<OpKind>(key / 2 / kSizes);
        const double mean = static_cast<double>(of.bytes) / static_cast<double>(of.recorded.count());
        if (moves_data(kind) && mean >= kLeastBytes) {
            least_ns_per_byte_ = std::min(least_ns_per_byte_, static_cast<double>(of.recorded.percentile(0.1)) / mean);
        }
    }
    for (const auto& [key, of] : learning_) {
        settle(key, of);
    }
    learning_.clear();
}

void MemoryTimes::settle(uint32_t key, const Class& of) {
    const auto kind = static_cast<OpKind>(key / 2 / kSizes);
    const auto count = static_cast<double>(of.recorded.count());
    const double mean = static_cast<double>(of.bytes) / count;
    int64_t quick = of.recorded.percentile(0.1);
    if (moves_data(kind)) {
        // Pages of fresh memory are paid for in the call: about as much again for each byte.
        const double per_byte = std::max(least_ns_per_byte_, kCopyNsPerByte / 4) * (key % 2 == 1 ? 3 : 2);
        const auto most = static_cast<int64_t>(per_byte * mean) + 2 * kSlack;
        if (quick > most) {
            quick = static_cast<int64_t>(std::max(least_ns_per_byte_, kCopyNsPerByte) * mean) + kCallNs;
            guessed_bytes_ += of.bytes;
        }
    } else if (info(kind).is(Trait::syncs)) {
        quick = std::min(quick, kSyncNs);
    } else if (kind == OpKind::touch) {
        quick = std::min(quick, static_cast<int64_t>(kFaultNs * std::max(mean, 1.0)));
    }
    Settled& out = settled_[key];
    out.known = true;
    out.most = 2 * quick + kSlack;
    out.typical = quick;
    // The median of what memory served.
    for (int tenths = 9; tenths > 0; --tenths) {
        const double share = tenths / 10.0;
        if (of.recorded.percentile(share) <= out.most) {
            out.typical = std::max(out.typical, of.recorded.percentile(share / 2));
            break;
        }
    }
}

int64_t MemoryTimes::of(const OpBlock& block, size_t i) const {
    const int64_t took = recorded(block, i);
    if (!info(static_cast<OpKind>(block.kind[i])).is(Trait::io)) {
        return took;
    }
    const Settled& like = settled_[key_of(block, i)];
    return !like.known || took <= like.most ? took : std::min(took, like.typical);
}

}  // namespace reprise
