// SPDX-License-Identifier: MIT
// Which mapped pages of files the recorded processes use again, sampled: the processor marks each page that is used, in
// the page tables; the marks are read, and cleared (/proc/PID/clear_refs).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "capture/loader.h"
#include "formats/raw/log.h"

namespace reprise {

class MappedUses {
public:
    /// `bpf` has Options::mapped_uses. Throws Error (machine) where this machine does not tell.
    explicit MappedUses(BpfPrograms& bpf);

    /// RAW_USES of each process, if a sample is due. Samples are kInterval apart, or as far as keeps what they take to
    /// one part in kOneIn of the time.
    void sample(RawWriter& to);
    uint64_t spent_ns() const { return spent_ns_; }

private:
    static constexpr uint64_t kInterval = 100'000'000;  // ns
    static constexpr uint64_t kOneIn = 50;

    /// A mapping of a data file.
    struct Range {
        uint64_t end = 0, inode = 0, offset = 0;
        std::vector<uint64_t> there;  // a bit for each page that was mapped at the last sample
        uint64_t sample = 0;
    };
    struct Process {
        uint64_t since = 0;  // ns: when its marks were last cleared; 0: never
        uint64_t sample = 0;
        std::map<uint64_t, Range> ranges;  // by address
    };
    struct Found {
        std::vector<int64_t> runs;  // as in RAW_USES
        bool huge = false;          // and of huge pages, one mark for all of each
        bool any = false;           // page was there
    };

    void find_base();
    bool finds(uint64_t base, uint32_t levels, const page_root& self, uint64_t address, uint64_t frame);
    void check_marks(uint64_t address);
    bool is_used(uint64_t root, uint64_t address);
    bool find_ranges(pid_t pid, Process& process) const;
    void look(uint64_t root, uint64_t begin, Range& range, Found& found);
    void sample(const page_root& root, RawWriter& to);
    static void tell(pid_t pid, uint64_t from, uint64_t until, const Found& found, RawWriter& to);

    BpfPrograms& bpf_;
    uint64_t base_ = 0;  // where the kernel has physical address 0
    uint32_t levels_ = 4;
    std::map<pid_t, Process> processes_;
    uint64_t samples_ = 0, due_ = 0, spent_ns_ = 0;
};

}  // namespace reprise
