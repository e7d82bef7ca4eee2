// SPDX-License-Identifier: MIT
// Which reads and writes by libcufile passed no system call. Where a driver moves the data (GPUDirect) they did, and
// the call itself is all that shows them; else the library reads and writes by system calls, from the calling thread
// or from threads of its own, and these are in the recording already. Each call and each request is looked at by
// itself: a system call of its process that moved bytes of its range, the same way, while it was under way.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/raw/log.h"

namespace reprise {

/// Of each task (raw_task_key), in the order in which its records came.
struct CufileTurns {
    /// By RAW_CUFILE_ENTER: what its thread does until the call is over is the library's, which stands for it.
    std::vector<bool> calls;
    std::vector<bool> requests;  ///< by RAW_CUFILE_ASKED: it passed no system call
};

class CufileCalls {
public:
    /// Every record, in the order of the log.
    void see(const raw_head& head);
    /// Once, after the last one.
    void finish();
    const CufileTurns* turns_of(uint64_t task) const;
    /// Of these processes some may be missing: they opened the driver before their library could be probed.
    uint64_t unseen() const;
    /// ... opened the library, which could not be probed, and no driver.
    uint64_t unprobed() const;
    /// That a probe took, ns; 0: not known.
    int64_t probe_ns() const { return probe_ns_; }

private:
    /// Of a process; inode 0: not known.
    using File = std::tuple<uint32_t, uint32_t, uint64_t>;
    /// By system calls, offsets in bytes and times in ns.
    struct Moved {
        int64_t begin = 0, end = 0;
        uint64_t from = 0, to = 0;
        bool writes = false;
    };
    struct Turn {
        uint64_t task = 0;
        size_t number = 0;
    };
    struct Asked {
        File file;
        int64_t offset = 0, size = 0;
        uint64_t from = 0, to = 0;
        bool writes = false;
        std::vector<Turn> calls;          // that stand for it, where it passed no system call
        std::vector<Turn> requests = {};  // itself
    };
    struct Process {
        uint64_t opened = 0;  // ns, the library; 0: it was not
        uint64_t since = 0;   // ns, when it was probed; 0: it was not
        uint64_t driver = 0;  // ns, when the driver was opened; 0: it was not
        bool late() const { return opened != 0 && (since == 0 || since > opened); }
    };

    void see(const raw_cufile& record);
    void see(const raw_call& call);
    void see(const raw_uring& record);
    void moved(const raw_head& head, const raw_fd& fd, int64_t offset, int64_t bytes, uint64_t from, bool writes);
    void add(const File& file, const Moved& moved);
    int64_t by_calls(const Asked& asked) const;
    void decide(const Asked& asked);
    void decide_until(uint64_t time);
    uint64_t needed_from() const;

    std::unordered_map<uint64_t, CufileTurns> turns_;
    std::unordered_map<uint64_t, std::pair<size_t, uint64_t>> open_;  // calls by task: their turn, when they began
    std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::deque<Asked>> pending_;  // by process, stream, request
    std::deque<Asked> waiting_;                                                      // by `to`, as they came
    std::map<File, std::deque<Moved>> moved_;
    std::set<uint32_t> users_;                                // processes that call the library
    std::map<uint64_t, std::pair<uint32_t, uint64_t>> told_;  // of requests to io_uring, by raw_fd::file
    std::map<std::pair<uint32_t, uint64_t>, raw_fd> files_;   // registered, by process and handle
    std::map<uint32_t, Process> processes_;
    uint64_t newest_ = 0;
    int64_t probe_ns_ = 0;
};

}  // namespace reprise
