// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/used_again.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/touched.h"

namespace reprise {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAhead = 1 << 20;  // bytes that who reads in order may skip
constexpr uint64_t kFew = 16;         // faults that show no order
constexpr unsigned kRegion = 21;      // bits of an address: 2 MiB

}  // namespace

void RawUses::see(const raw_uses& record) {
    huge_ += (record.head.flags & RAW_FLAG_TRUNCATED) != 0 ? 1 : 0;
    std::vector<SampledUses>& samples = by_pid_[record.head.pid];
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_LIST || part.length == 0 || record.head.time <= record.from) {
            continue;
        }
        if (samples.empty() || samples.back().from != record.from) {
            samples.push_back({record.from, record.head.time, {}});
        }
        const auto runs = raw_part_numbers(part);
        samples.back().runs.insert(samples.back().runs.end(), runs.begin(), runs.end());
    }
}

UsedAgain::Process* UsedAgain::process_of(uint32_t pid) {
    const auto found = uses_.by_pid().find(pid);
    if (found == uses_.by_pid().end()) {
        return nullptr;
    }
    Process& process = processes_[pid];
    if (process.samples == nullptr) {
        process.samples = &found->second;
        for (const SampledUses& sample : found->second) {
            for (const int64_t run : sample.runs) {
                process.regions.insert(address_of(run) >> kRegion);
            }
        }
    }
    return &process;
}

void UsedAgain::faulted(uint32_t pid, uint32_t tid, uint64_t address) {
    Process* const process = process_of(pid);
    if (process && process->regions.contains(address >> kRegion)) {
        process->takers.insert(tid);
        ++process->faults;
        process->forward += address >= process->last_fault && address - process->last_fault < kAhead ? 1 : 0;
        process->last_fault = address;
    }
}

/// A sample does not tell in which order: that of the addresses for who goes through the file, else by chance.
void UsedAgain::order(Process& process) {
    if (process.faults < kFew || process.forward * 8 >= process.faults * 7) {
        return;
    }
    std::minstd_rand random(static_cast<uint32_t>(process.next) + 1);
    std::shuffle(process.pending.begin(), process.pending.end(), random);
}

void UsedAgain::give(Process& process, uint64_t pages, std::vector<int64_t>& out) {
    while (pages > 0 && process.given < process.pending.size()) {
        int64_t& run = process.pending[process.given];
        const uint64_t all = pages_of(run), some = std::min(all, pages);
        out.push_back(static_cast<int64_t>(address_of(run) | (some - 1)));
        pages -= some;
        process.pages -= some;
        if (some < all) {
            run = static_cast<int64_t>((address_of(run) + some * kPage) | (all - some - 1));
        } else {
            ++process.given;
        }
    }
}

void UsedAgain::begin_sample(Process& process, const SampledUses& sample, std::vector<int64_t>& out) {
    give(process, process.pages, out);  // what is late
    process.pending = sample.runs;
    process.given = 0;
    process.pages = 0;
    order(process);
    for (const int64_t run : process.pending) {
        process.pages += pages_of(run);
    }
    process.until = sample.until;
    process.expected = process.computed != 0 ? process.computed : sample.until - sample.from;
    process.computed = 0;
}

std::vector<int64_t> UsedAgain::take(uint32_t pid, uint32_t tid, uint64_t begin, uint64_t ns) {
    std::vector<int64_t> out;
    Process* const process = process_of(pid);
    if (!process || !(process->takers.empty() ? tid == pid : process->takers.contains(tid))) {
        return out;
    }
    const uint64_t end = begin + ns;
    for (; process->next < process->samples->size() && (*process->samples)[process->next].from < end; ++process->next) {
        begin_sample(*process, (*process->samples)[process->next], out);
    }
    const uint64_t rest = process->expected - std::min(process->expected, process->computed);
    const double share =
        end >= process->until || ns >= rest ? 1.0 : static_cast<double>(ns) / static_cast<double>(rest);
    give(*process, static_cast<uint64_t>(std::llround(static_cast<double>(process->pages) * share)), out);
    process->computed += ns;
    return out;
}

uint64_t UsedAgain::left() const {
    uint64_t pages = 0;
    for (const auto& [pid, samples] : uses_.by_pid()) {
        const auto found = processes_.find(pid);
        pages += found == processes_.end() ? 0 : found->second.pages;
        for (size_t i = found == processes_.end() ? 0 : found->second.next; i < samples.size(); ++i) {
            for (const int64_t run : samples[i].runs) {
                pages += pages_of(run);
            }
        }
    }
    return pages;
}

// They come before the computing in which they were used: a task that has to fetch them again waits first.
void RawAssembly::use_again(TaskState& task, int64_t begin, int64_t duration) {
    const uint64_t at = facts_.origin + static_cast<uint64_t>(std::max<int64_t>(begin, 0));
    for (const int64_t run : used_again_.take(task.pid, task.tid, at, static_cast<uint64_t>(duration))) {
        const auto pages = static_cast<uint32_t>(UsedAgain::pages_of(run));
        for (const Place& place : places(task.pid, UsedAgain::address_of(run), pages)) {
            Op op;
            op.kind = OpKind::touch;
            op.flags = kTouchAgain;
            op.begin = std::max(begin, task.cursor);
            op.map = place.map;
            op.offset = place.offset;
            op.size = int64_t{place.pages} * static_cast<int64_t>(kPage);
            put(task, op);
        }
    }
}

}  // namespace reprise
