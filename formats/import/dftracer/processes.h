// SPDX-License-Identifier: MIT
// Which threads of a DFTracer trace are processes of their own. DFTracer writes the rank's pid for forked workers too,
// so their descriptors look as if they shared one table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/import/dftracer/lines.h"

namespace reprise::dftracer {

/// Threads share descriptors unless the recording shows that they cannot: a fork that returned 0 in them, or an open
/// that gave a number which was open in another thread of the same pid. In a process with such a thread, only threads
/// that use each other's descriptors stay together. Equal pids of different hosts are different processes.
class Processes {
public:
    using Visit = std::function<void(const Event&)>;
    /// `each_call` calls its argument for each call in the order of effect.
    void infer(const Lines& lines, const std::function<void(const Visit&)>& each_call);

    /// Numbers for the log: unique per process and thread. `thread` is a row of Lines::threads.
    int32_t pid(uint32_t thread) const { return log_pid_[thread]; }
    int32_t tid(uint32_t thread) const { return log_tid_[thread]; }

    /// Number (pid and tid) of the process that a fork of `thread` which returned `result` made.
    int32_t child(uint32_t thread, int64_t result) const;

    std::string first_host(const Lines& lines) const;
    /// Tells hosts, commands and directories.
    void describe(const Lines& lines, Assembler& assembler) const;
    void count(LogWriter& writer) const;

private:
    struct Member {
        std::vector<StringId> open;  // path per descriptor, 0: closed
        uint32_t process = 0;
        bool first = false;   // of its process
        bool forked = false;  // fork returned 0 in it
        bool alone = false;   // has a descriptor number in common with another
        uint32_t joined = 0;  // union-find parent, a row of threads
    };
    void group_by_host(const Lines& lines);
    void look_at(const Lines& lines, const Event& event);
    void number(const Lines& lines);
    uint32_t root(uint32_t thread);

    std::vector<Member> members_;  // per row of threads; only those of `same_` are used
    std::vector<uint32_t> same_;   // per row of threads: the row that stands for (process, tid)
    std::vector<std::vector<uint32_t>> of_process_;
    std::vector<std::pair<uint32_t, uint32_t>> shared_;         // threads that used each other's descriptors
    std::map<std::pair<uint32_t, int64_t>, int32_t> children_;  // per process and fork's result
    std::vector<int32_t> log_pid_, log_tid_;
    uint64_t inferred_ = 0;
};

}  // namespace reprise::dftracer
