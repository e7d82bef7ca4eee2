// SPDX-License-Identifier: MIT
// One file of strace's output as whole calls in the order of their effect: halves joined, time stamps on one line.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "formats/import/strace/lexer.h"
#include "formats/support/input.h"

namespace reprise {

/// A call, or the end of a task (text "+++ ...").
struct StraceRecord {
    int32_t tid = 0;
    int64_t begin = 0;       // ns on the clock of the file
    int64_t joined_at = -1;  // ns: when its second half was written; -1: it is one line
    std::string_view text;   // valid until the next record
    uint64_t line = 0;
};

/// What went wrong with lines, over all files of a run.
struct StraceLineFaults {
    uint64_t lines = 0, good = 0;
    uint64_t malformed = 0;
    std::string first_malformed;  // "file:line"
    uint64_t set_back = 0;        // times the clock went back
    std::string first_set_back;   // "by 3 ms at file:line"
    uint64_t unfinished = 0;      // calls whose second half never came
    uint64_t orphans = 0;         // second halves without a first
    uint64_t forced = 0;          // calls taken out of order because a close took too long
    uint64_t cut = 0;             // last lines that no newline ends
};

class StraceSource {
public:
    /// `tid` for lines without a pid column.
    StraceSource(const std::filesystem::path& path, int32_t tid, StraceLineFaults& faults);

    /// False at the end of the file. Throws Error (bad_input) for a file without usable time stamps.
    bool next();
    const StraceRecord& record() const { return record_; }
    /// When the record takes effect, never before the one before it; for merging files.
    int64_t effect_time() const { return effect_time_; }
    uint64_t bytes() const { return reader_.bytes(); }
    StraceLine::Clock clock() const { return clock_; }
    /// Sets this file's clock forward, the record included: a file of times of day that begins behind midnight.
    void add_to_clock(int64_t ns);
    std::string where() const { return reader_.where(); }
    const std::filesystem::path& path() const { return reader_.path(); }
    std::string name() const { return reader_.path().filename().string(); }

private:
    struct Entry {
        StraceRecord record;
        std::string text;
        bool ready = true;
    };
    struct Half {
        int64_t begin = 0;
        uint64_t line = 0;
        std::string text;
        bool queued = false;
        uint64_t number = 0;  // in the queue
    };
    bool take_line(std::string_view line);
    bool give(int32_t tid, int64_t begin, int64_t joined_at, std::string_view text, uint64_t line);
    bool pop();
    int32_t tid_of(const StraceLine& line);
    std::optional<int64_t> time_of(const StraceLine& line);
    void check_stamp(const StraceLine& line) const;
    void note_step(int64_t time);
    void begin_call(const StraceLine& line, int32_t tid, int64_t time);
    bool join_call(const StraceLine& line, int32_t tid, int64_t time);
    void drop_half(int32_t tid);
    void malformed();  // counts the line last read

    LineReader reader_;
    int32_t default_tid_;
    StraceLineFaults& faults_;
    std::unordered_map<int32_t, Half> halves_;  // by tid
    std::deque<Entry> queue_;                   // behind a call that frees a number and is not complete
    uint64_t queue_begin_ = 0;                  // number of the first entry
    bool at_end_ = false;
    /// Output to a terminal names pids only while there are several: the first task has no number before.
    bool unnumbered_ = false;
    int32_t main_tid_ = -1;
    std::unordered_set<int32_t> spawned_;
    StraceLine::Clock clock_ = StraceLine::Clock::none;
    int64_t day_ = 0, last_time_ = INT64_MIN;  // without jumps; of the last line
    StraceRecord record_;
    std::string joined_;  // text of the record, where it is not a line
    int64_t effect_time_ = INT64_MIN;
};

/// close, munmap, clone...: what they free or make can be used by others before they return.
bool strace_call_acts_at_begin(std::string_view text);

}  // namespace reprise
