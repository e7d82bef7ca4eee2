// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/facts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "formats/oplog/syscall_numbers.h"

namespace reprise {
namespace {

constexpr uint64_t kCommandMask = 0x7f;  // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
constexpr uint64_t kWait = 0, kWake = 1, kRequeue = 3, kCmpRequeue = 4, kWakeOp = 5, kLockPi = 6, kWaitBitset = 9,
                   kWaitRequeuePi = 11, kWakeBitset = 10, kLockPi2 = 13;
constexpr size_t kTasksOfAWord = 8;
// Futex words tracked; a job uses a few thousand.
constexpr size_t kMostWords = size_t{1} << 20;
// The value of a glibc mutex with waiters.
constexpr uint64_t kContended = 2;
// The interpreter lock of CPython: two condition variables and two mutexes, side by side; the words of the first
// condition variable have the others within this many bytes.
constexpr uint64_t kAroundGil = 128;
constexpr uint64_t kFewestGilWaits = 8;
// A condition variable of glibc has two words to wait for, in turn, this many bytes apart.
constexpr uint64_t kConditionWords = 4;

void note(std::vector<uint32_t>& tasks, uint32_t tid) {
    if (tasks.size() < kTasksOfAWord && std::find(tasks.begin(), tasks.end(), tid) == tasks.end()) {
        tasks.push_back(tid);
    }
}

}  // namespace

bool LockWords::waits(uint64_t operation) {
    const uint64_t command = operation & kCommandMask;
    return command == kWait || command == kWaitBitset || command == kLockPi || command == kLockPi2 ||
           command == kWaitRequeuePi;
}

bool LockWords::wakes(uint64_t operation) {
    const uint64_t command = operation & kCommandMask;
    return command == kWake || command == kWakeBitset || command == kRequeue || command == kCmpRequeue ||
           command == kWakeOp;
}

bool LockWords::waits_for_mutex(const raw_u64 (&args)[6]) {
    const uint64_t command = args[1] & kCommandMask;
    if (command == kLockPi || command == kLockPi2) {
        return true;
    }
    return (command == kWait || command == kWaitBitset) && static_cast<uint32_t>(args[2]) == kContended;
}

void LockWords::see(uint32_t pid, uint32_t tid, const raw_u64 (&args)[6]) {
    const bool is_wait = waits(args[1]), is_wake = wakes(args[1]);
    if (!is_wait && !is_wake) {
        return;
    }
    Process& process = processes_[pid];
    auto it = process.words.find(args[0]);
    if (it == process.words.end()) {
        if (words_ >= kMostWords) {
            return;
        }
        ++words_;
        it = process.words.try_emplace(args[0]).first;
    }
    Word& word = it->second;
    if (is_wait) {
        word.contended += waits_for_mutex(args) ? 1 : 0;
        ++word.waits;
        word.timed += args[3] != 0;
        note(word.waiters, tid);
    } else {
        note(word.wakers, tid);
    }
}

bool LockWords::Word::waiters_wake_at(const Word& other) const {
    return std::any_of(waiters.begin(), waiters.end(), [&](uint32_t tid) {
        return std::find(other.wakers.begin(), other.wakers.end(), tid) != other.wakers.end();
    });
}

bool LockWords::Word::only_timed() const { return !mutex() && timed == waits; }

bool LockWords::Process::near_gil(uint64_t word) const {
    return gil != 0 && word + kAroundGil >= gil && word <= gil + kAroundGil;
}

void LockWords::settle() {
    for (auto& [pid, process] : processes_) {
        uint64_t most = kFewestGilWaits - 1;
        for (auto at = process.words.begin(); at != process.words.end(); ++at) {
            const auto& [address, word] = *at;
            words_dropped_ += word.mutex() ? 1 : 0;
            // Two tasks that wait in turn use a word of the condition each.
            const auto next = std::next(at);
            const bool two =
                next != process.words.end() && next->first == address + kConditionWords && next->second.only_timed();
            const Word& second = two ? next->second : word;
            const uint64_t waits = word.waits + (two ? second.waits : 0);
            // A process has one such lock: the busiest candidate.
            if (word.only_timed() && waits > most &&
                (word.waiters_wake_at(word) || word.waiters_wake_at(second) || second.waiters_wake_at(word) ||
                 second.waiters_wake_at(second))) {
                most = waits;
                process.gil = address;
            }
        }
        words_dropped_ += process.gil != 0;
    }
}

bool LockWords::is_lock(uint32_t pid, const raw_u64 (&args)[6]) const {
    const uint64_t word = args[0];
    const auto process = processes_.find(pid);
    if (process == processes_.end()) {
        return waits_for_mutex(args);  // there were too many words to remember
    }
    if (process->second.near_gil(word)) {
        return true;
    }
    const auto found = process->second.words.find(word);
    return found != process->second.words.end() ? found->second.mutex() : waits_for_mutex(args);
}

bool LockWords::is_interpreter(uint32_t pid, const raw_u64 (&args)[6]) const {
    const auto process = processes_.find(pid);
    const uint64_t gil = process == processes_.end() ? 0 : process->second.gil;
    return gil != 0 && args[0] + kConditionWords >= gil && args[0] <= gil + kConditionWords;
}

bool LockWords::may_guard(uint32_t pid, const raw_u64 (&args)[6]) const {
    const auto process = processes_.find(pid);
    if (process == processes_.end() || process->second.near_gil(args[0])) {
        return false;
    }
    const auto found = process->second.words.find(args[0]);
    return found != process->second.words.end() &&
           (found->second.mutex() || found->second.waiters_wake_at(found->second));
}

void CallGaps::see(const raw_head& head) {
    if (head.type != RAW_CALL) {
        if (head.tid != 0) {
            last_[head.tid] = 0;
        }
        return;
    }
    uint64_t& last = last_[head.tid];
    const auto& call = reinterpret_cast<const raw_call&>(head);
    if (last != 0 && call.enter > last + call.own_ns) {
        ++seen_;
        if (const uint64_t rest = call.enter - last - call.own_ns; rest < kMost) {
            ++counts_[rest / kStep];
        }
        told_ += std::min(call.own_ns, kMostTold);
    }
    last = head.time;
}

int64_t CallGaps::before() const {
    constexpr uint64_t kEnough = 1'000, kShare = 10;  // not the least: caches are rarely as warm as there
    if (seen_ < kEnough) {
        return 0;
    }
    uint64_t below = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
        below += counts_[i];
        if (below * kShare >= seen_) {
            return static_cast<int64_t>(i * kStep);
        }
    }
    return 0;
}

int64_t CallGaps::told() const { return seen_ == 0 ? 0 : static_cast<int64_t>(told_ / seen_); }

void DeferredWork::see(const raw_page_cache& record) {
    // A chain of pages takes milliseconds; what is longer is damage.
    constexpr uint64_t kMost = 60'000'000'000;
    if (record.after == 0 || record.last <= record.after || record.last - record.after > kMost) {
        return;
    }
    Work& work = works_[{record.head.tid, record.after}];
    work.until = std::max<uint64_t>(work.until, record.last);
    work.folios += record.folios;
    ++work.runs;
}

int64_t DeferredWork::after(const raw_call& call, const RecorderCosts& costs) const {
    if (works_.empty()) {
        return 0;
    }
    const auto found = works_.find({call.head.tid, call.head.time});
    if (found == works_.end()) {
        return 0;
    }
    const Work& work = found->second;
    const auto took = static_cast<int64_t>(work.until - call.head.time);
    const auto own =
        static_cast<int64_t>(work.folios) * costs.folio + static_cast<int64_t>(work.runs) * costs.folio_run;
    return std::max<int64_t>(took - own, 0);
}

namespace {

// The shorter gaps are the recorder's if the job makes some calls with nothing between them. If it computes before each
// call, part of that would be taken for the recorder's work. So the estimate is bounded by what the recorder measured:
// how much longer a call takes that it looks at without recording; a recorded call takes little more.
int64_t bounded_gap(int64_t found, const std::string& text) {
    constexpr int64_t kMost = 300, kUsual = 100;  // ns beyond
    const auto meta = nlohmann::json::parse(text, nullptr, false);
    if (!meta.is_object() || !meta.contains("more_per_call_ns") || !meta["more_per_call_ns"].is_number_integer()) {
        return found;
    }
    const int64_t more = std::clamp<int64_t>(meta["more_per_call_ns"].get<int64_t>(), 0, 10'000);
    return found == 0 ? more + kUsual : std::clamp(found, more, more + kMost);
}

RecorderCosts costs_in(const std::string& text) {
    const auto meta = nlohmann::json::parse(text, nullptr, false);
    const bool there = meta.is_object() && meta.contains("costs") && meta["costs"].is_string();
    return there ? RecorderCosts::of(meta["costs"].get<std::string>()) : RecorderCosts();
}

}  // namespace

RawFacts scan_raw(const std::filesystem::path& path, const std::function<void(uint64_t)>& progress) {
    RawReader reader(path);
    RawFacts facts;
    facts.meta = reader.meta();
    CallGaps gaps;
    uint64_t first = UINT64_MAX;
    uint64_t faults = 0, dear = 0;
    uint64_t clock_time = 0;
    int64_t clock_unix = 0;
    for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
        for (const raw_head& head : RawRecords(chunk)) {
            ++facts.records;
            gaps.see(head);
            facts.cufile.see(head);
            switch (head.type) {
                case RAW_CALL: {
                    const auto& call = reinterpret_cast<const raw_call&>(head);
                    first = std::min(first, call.enter);
                    if (call.nr == SYS_futex) {
                        facts.locks.see(head.pid, head.tid, call.args);
                    }
                    break;
                }
                case RAW_PAGE_CACHE: facts.deferred.see(reinterpret_cast<const raw_page_cache&>(head)); break;
                case RAW_SWITCH:
                    facts.has_switches = true;
                    first = std::min<uint64_t>(first, reinterpret_cast<const raw_switch&>(head).off);
                    break;
                case RAW_FAULT:
                    facts.has_faults = true;
                    first = std::min<uint64_t>(first, reinterpret_cast<const raw_fault&>(head).enter);
                    break;
                case RAW_TOUCH:
                    facts.has_faults = true;
                    first = std::min<uint64_t>(first, reinterpret_cast<const raw_touch&>(head).enter);
                    break;
                case RAW_FAULTS:
                    faults += reinterpret_cast<const raw_faults&>(head).faults;
                    dear += reinterpret_cast<const raw_faults&>(head).dear;
                    break;
                case RAW_SPAWN:
                case RAW_EXEC:
                case RAW_EXIT: first = std::min<uint64_t>(first, head.time); break;
                case RAW_CLOCK:
                    if (clock_time == 0) {
                        clock_time = head.time;
                        clock_unix = reinterpret_cast<const raw_clock&>(head).realtime;
                    }
                    break;
                case RAW_USES: facts.uses.see(reinterpret_cast<const raw_uses&>(head)); break;
                case RAW_GPU: facts.has_gpu = true; break;
                case RAW_LOSS: facts.loss = reinterpret_cast<const raw_loss&>(head); break;
                case RAW_SEED_TASK:
                case RAW_SEED_FD:
                case RAW_SEED_MAP: {
                    auto& kept = facts.seeds.emplace_back(head.size / sizeof(uint64_t));
                    std::memcpy(kept.data(), &head, head.size);
                    break;
                }
                default: break;
            }
        }
        if (progress) {
            progress(reader.offset());
        }
    }
    facts.cut = reader.cut();
    facts.origin = first == UINT64_MAX ? clock_time : first;
    if (clock_time) {
        facts.origin_unix = clock_unix + static_cast<int64_t>(facts.origin - clock_time);
    }
    facts.locks.settle();
    facts.cufile.finish();
    facts.call_gap_ns = bounded_gap(gaps.before(), facts.meta);
    facts.costs = costs_in(facts.meta);
    constexpr uint64_t kOneIn = 20;  // an interrupt makes one fault in hundreds long
    facts.dear_memory = dear != 0 && dear * kOneIn >= faults;
    facts.call_told_ns = facts.call_gap_ns != 0 ? gaps.told() : 0;
    return facts;
}

}  // namespace reprise
