// SPDX-License-Identifier: MIT
#include "formats/import/strace/source.h"

#include <algorithm>

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr int64_t kDay = 86400LL * 1'000'000'000;
constexpr size_t kLongestQueue = 1 << 18;  // calls that wait for one close

constexpr std::string_view kActAtBegin[] = {"close(",  "close_range(", "munmap(", "clone(",
                                            "clone3(", "fork(",        "vfork("};

}  // namespace

bool strace_call_acts_at_begin(std::string_view text) {
    return std::any_of(std::begin(kActAtBegin), std::end(kActAtBegin),
                       [&](std::string_view name) { return text.starts_with(name); });
}

StraceSource::StraceSource(const std::filesystem::path& path, int32_t tid, StraceLineFaults& faults)
    : reader_(path), default_tid_(tid), faults_(faults) {}

void StraceSource::malformed() {
    if (faults_.malformed++ == 0) {
        faults_.first_malformed = at(name(), reader_.line_number());
    }
}

int32_t StraceSource::tid_of(const StraceLine& line) {
    if (line.tid < 0) {
        unnumbered_ = true;
        return default_tid_;
    }
    if (unnumbered_ && main_tid_ < 0 && !spawned_.contains(line.tid)) {
        // Either the first task, now with its number, or the child it is just making.
        const bool making = halves_.contains(default_tid_) && halves_[default_tid_].queued;
        if (!making || line.kind == StraceLine::Kind::resumed) {
            main_tid_ = line.tid;
        }
    }
    return line.tid == main_tid_ ? default_tid_ : line.tid;
}

void StraceSource::add_to_clock(int64_t ns) {
    day_ += ns;
    if (last_time_ != INT64_MIN) {
        last_time_ += ns;
    }
    record_.begin += ns;
    if (record_.joined_at >= 0) {
        record_.joined_at += ns;
    }
    effect_time_ += ns;
}

void StraceSource::check_stamp(const StraceLine& line) const {
    constexpr const char* kHow = "record with: strace -f -ttt -T -yy";
    if (line.clock == StraceLine::Clock::relative) {
        throw bad_input(reader_.where(),
                        "time stamps are relative to the line before (strace -r), so the lines of several tasks "
                        "cannot be put in order",
                        kHow);
    }
    if (line.clock == StraceLine::Clock::none) {
        throw bad_input(reader_.where(), "the line has no time stamp", kHow);
    }
    if (line.fraction_digits == 0) {
        throw bad_input(reader_.where(), "time stamps are whole seconds (strace -t), too coarse for a replay", kHow);
    }
}

// strace writes lines in the order of time; only a clock that was set goes back.
void StraceSource::note_step(int64_t time) {
    constexpr int64_t kMostBack = 1'000'000'000;
    if (time >= last_time_) {
        return;
    }
    const int64_t back = last_time_ - time;
    if (back >= kMostBack) {
        throw bad_input(reader_.where(), "the wall clock was set back by " + format_duration(back),
                        "record again; files of several runs are imported one by one");
    }
    if (++faults_.set_back == 1) {
        faults_.first_set_back = format_duration(back) + " at " + reader_.where();
    }
}

// The time stamp without jumps: a time of day goes on behind midnight. nullopt for a line that is not strace's.
std::optional<int64_t> StraceSource::time_of(const StraceLine& line) {
    if (clock_ == StraceLine::Clock::none) {
        StraceCall call;
        const bool really = line.kind != StraceLine::Kind::call || parse_strace_call(line.text, call);
        if (!really) {
            return std::nullopt;
        }
        check_stamp(line);
        clock_ = line.clock;
    }
    if (line.clock != clock_) {
        return std::nullopt;
    }
    int64_t time = line.time;
    if (line.clock == StraceLine::Clock::of_day) {
        time += day_;
        if (last_time_ != INT64_MIN && time < last_time_ - kDay / 2) {
            day_ += kDay;
            time += kDay;
        }
    }
    note_step(time);
    last_time_ = time;
    return time;
}

bool StraceSource::pop() {
    if (queue_.empty()) {
        return false;
    }
    Entry& front = queue_.front();
    if (!front.ready) {
        if (!at_end_ && queue_.size() <= kLongestQueue) {
            return false;
        }
        // Its second half will not come, or not soon.
        at_end_ ? ++faults_.unfinished : ++faults_.forced;
        halves_.erase(front.record.tid);
        front.text += ") = ?";
    }
    joined_ = std::move(front.text);
    record_ = front.record;
    record_.text = joined_;
    queue_.pop_front();
    ++queue_begin_;
    return true;
}

// Hands the call out, or puts it behind one that is not complete.
bool StraceSource::give(int32_t tid, int64_t begin, int64_t joined_at, std::string_view text, uint64_t line) {
    const StraceRecord record{tid, begin, joined_at, text, line};
    StraceCall call;
    if (unnumbered_ && (text.starts_with("clone") || text.starts_with("fork(") || text.starts_with("vfork(")) &&
        parse_strace_call(text, call)) {
        spawned_.insert(static_cast<int32_t>(call.result));
    }
    if (queue_.empty()) {
        record_ = record;
        return true;
    }
    queue_.push_back({record, std::string(text), true});
    return false;
}

void StraceSource::begin_call(const StraceLine& line, int32_t tid, int64_t time) {
    drop_half(tid);
    Half& half = halves_[tid];
    half.begin = time;
    half.line = reader_.line_number();
    half.text = line.text;
    half.queued = strace_call_acts_at_begin(line.text);
    if (!half.queued) {
        return;
    }
    half.number = queue_begin_ + queue_.size();
    queue_.push_back({{tid, time, -1, {}, half.line}, half.text, false});
}

bool StraceSource::join_call(const StraceLine& line, int32_t tid, int64_t time) {
    const auto it = halves_.find(tid);
    if (it == halves_.end()) {
        ++faults_.orphans;
        return false;
    }
    Half half = std::move(it->second);
    halves_.erase(it);
    half.text += line.text;
    if (half.queued) {
        Entry& entry = queue_[half.number - queue_begin_];
        entry.text = std::move(half.text);
        entry.record.joined_at = time;
        StraceCall call;
        if (unnumbered_ && parse_strace_call(entry.text, call)) {
            spawned_.insert(static_cast<int32_t>(call.result));
        }
        entry.ready = true;
        return pop();
    }
    joined_ = std::move(half.text);
    return give(tid, half.begin, time, joined_, half.line);
}

// The task goes on without having finished its call: it was killed, or lines are missing.
void StraceSource::drop_half(int32_t tid) {
    const auto it = halves_.find(tid);
    if (it == halves_.end()) {
        return;
    }
    ++faults_.unfinished;
    if (it->second.queued) {
        Entry& entry = queue_[it->second.number - queue_begin_];
        entry.text += ") = ?";
        entry.ready = true;
    }
    halves_.erase(it);
}

// True if a record is ready.
bool StraceSource::take_line(std::string_view text) {
    if (text.empty()) {
        return false;
    }
    // "= 16" may be what is left of "= 16384". What ends like this has lost its duration at most.
    const bool whole = text.back() == '>' || text.ends_with("+++") || text.ends_with("---");
    if (reader_.ends_in_line() && !whole) {
        ++faults_.cut;
        return false;
    }
    ++faults_.lines;
    const StraceLine line = parse_strace_line(text);
    if (line.kind == StraceLine::Kind::remark) {
        return false;
    }
    const auto time = line.kind == StraceLine::Kind::malformed ? std::nullopt : time_of(line);
    if (!time) {
        malformed();
        return false;
    }
    ++faults_.good;
    const int32_t tid = tid_of(line);
    switch (line.kind) {
        case StraceLine::Kind::unfinished: begin_call(line, tid, *time); return false;
        case StraceLine::Kind::resumed: return join_call(line, tid, *time);
        case StraceLine::Kind::ended:
        case StraceLine::Kind::call: drop_half(tid); return give(tid, *time, -1, line.text, reader_.line_number());
        case StraceLine::Kind::signal:
        case StraceLine::Kind::remark:
        case StraceLine::Kind::malformed: break;
    }
    return false;
}

bool StraceSource::next() {
    bool found = pop();
    std::string_view line;
    while (!found && !at_end_) {
        if (!reader_.next(line)) {
            at_end_ = true;
            for (auto it = halves_.begin(); it != halves_.end();) {
                const bool keep = it->second.queued;
                if (!keep) {
                    ++faults_.unfinished;
                }
                it = keep ? std::next(it) : halves_.erase(it);
            }
        } else {
            found = take_line(line);
        }
        if (!found) {
            found = pop();
        }
    }
    if (!found) {
        return false;
    }
    int64_t time = record_.begin;
    if (!strace_call_acts_at_begin(record_.text)) {
        std::string_view whole = record_.text;
        time = record_.joined_at >= 0 ? record_.joined_at : time + take_strace_duration(whole).value_or(0);
    }
    effect_time_ = std::max(effect_time_, time);
    return true;
}

}  // namespace reprise
