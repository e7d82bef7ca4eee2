// SPDX-License-Identifier: MIT
#include "capture/memory_samples.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "capture/context_records.h"

namespace reprise {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeast = kMiB / 4;          // changes told
constexpr uint64_t kWorthReading = 4 * kMiB;   // less is not worth a walk
constexpr uint64_t kShareAge = 2'000'000'000;  // ns
// ns that walks may take, and their share of the time: again, and of new processes.
constexpr uint64_t kFirst = 50'000'000, kOneIn = 100, kOneInNew = 20;

bool differs(uint64_t a, uint64_t b, uint64_t least, uint64_t part) {
    const uint64_t by = std::max(a, b) - std::min(a, b);
    return by >= std::max(least, std::max(a, b) / part) || (by != 0 && (a == 0 || b == 0));
}

double ratio(uint64_t part, uint64_t of) {
    return of == 0 ? 1.0 : std::min(static_cast<double>(part) / static_cast<double>(of), 1.0);
}

uint64_t scaled(uint64_t bytes, double by) { return static_cast<uint64_t>(static_cast<double>(bytes) * by); }

}  // namespace

bool MemorySamples::is_due(const process_memory& now, const Process& process, uint64_t time, bool changed) const {
    const uint64_t held = now.anonymous + now.shared;
    const uint64_t one_in = process.read_at == 0 ? kOneInNew : kOneIn;
    if (held < kWorthReading || spent_ns_ > kFirst + (time - begin_) / one_in) {
        return false;
    }
    return process.read_at == 0 || changed || time - process.read_at >= kShareAge ||
           differs(held, process.read_anonymous + process.read_shared, kWorthReading, 20);
}

void MemorySamples::read_shares(const process_memory& now, Process& process) {
    constexpr uint64_t kKiB = 1024;
    const uint64_t begin = monotonic_ns();
    std::ifstream in("/proc/" + std::to_string(now.pid) + "/smaps_rollup");
    uint64_t anonymous = 0, shared = 0;
    bool any = false;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t value = 0;
        if (!(words >> name >> value)) {
            continue;
        }
        if (name == "Pss_Anon:") {
            anonymous = value * kKiB;
            any = true;
        } else if (name == "Pss_Shmem:") {
            shared = value * kKiB;
        }
    }
    if (any) {  // else it ended, or is of another PID namespace
        process.anonymous_part = ratio(anonymous, now.anonymous);
        process.shared_part = ratio(shared, now.shared);
    }
    process.read_anonymous = now.anonymous;
    process.read_shared = now.shared;
    const uint64_t end = monotonic_ns();
    process.read_at = end;
    spent_ns_ += end - begin;
}

uint64_t MemorySamples::like_another(const process_memory& now, const std::vector<process_memory>& all) {
    const bool alike = std::any_of(all.begin(), all.end(), [&](const process_memory& other) {
        return other.pid != now.pid && now.anonymous >= kWorthReading && now.anonymous >= other.anonymous / 5 * 4 &&
               now.anonymous <= other.anonymous / 10 * 11;
    });
    return alike ? now.anonymous : 0;
}

void MemorySamples::sample(BpfPrograms& bpf, RawWriter& to) {
    const uint64_t time = monotonic_ns();
    begin_ = begin_ == 0 ? time : begin_;
    ++samples_;
    const std::vector<process_memory> all = bpf.memory();
    // A fork or an exit changes what the others have alone.
    bool changed = all.size() != processes_.size();
    for (const process_memory& now : all) {
        changed |= !processes_.contains(now.pid);
    }
    // A large process among small ones shares nothing worth telling.
    const bool several = std::count_if(all.begin(), all.end(), [](const process_memory& now) {
                             return now.anonymous + now.shared >= kWorthReading;
                         }) > 1;
    for (const process_memory& now : all) {
        const auto [at, added] = processes_.try_emplace(now.pid);
        Process& process = at->second;
        process.seen = samples_;
        if (added && samples_ > 1) {
            process.forked = like_another(now, all);
        }
        if (!several) {
            process.anonymous_part = process.shared_part = 1.0;
            process.forked = 0;
        } else if (is_due(now, process, time, changed)) {
            read_shares(now, process);
            process.forked = 0;
        }
        const uint64_t own = now.anonymous - std::min(now.anonymous, process.forked);
        const uint64_t anonymous = scaled(own, process.anonymous_part),
                       shared = scaled(now.shared, process.shared_part);
        if (differs(anonymous, process.anonymous, kLeast, 100) || differs(shared, process.shared, kLeast, 100)) {
            process.anonymous = anonymous;
            process.shared = shared;
            raw_memory record{};
            record.head.pid = now.pid;
            record.head.tid = now.pid;
            record.anonymous = anonymous;
            record.shared = shared;
            user_record(to, RAW_MEMORY, record);
        }
    }
    std::erase_if(processes_, [&](const auto& entry) { return entry.second.seen != samples_; });
}

}  // namespace reprise
