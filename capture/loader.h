// SPDX-License-Identifier: MIT
// The BPF programs in the kernel: choosing those this machine grants, loading, attaching, seeding, counters.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bpf/shared.h"
#include "capture/capture.h"

namespace reprise {

/// One program and the group it serves.
struct BpfHook {
    const char* program;
    const char* group;  ///< "calls", "seeds" or one of capture_groups()
    const char* trace;  ///< name in BTF without its prefix
    const char* follows;
};
const std::vector<BpfHook>& bpf_hooks();

/// Why nothing can be recorded here, one sentence; empty: it can.
std::string bpf_refusal();

/// A control group as the kernel numbers it.
struct CgroupId {
    uint64_t id = 0;
    uint32_t hierarchy = 0;  ///< 0: the unified one
};

using PageCosts = std::array<page_cost, PAGE_KINDS>;

class BpfPrograms {
public:
    struct Options {
        uint64_t ring_bytes = uint64_t{32} << 20;
        std::set<std::string> without;
        bool cgroups = false;          ///< tasks may come in by control group
        bool mapped_uses = false;      ///< page tables are read
        bool probe_reads = false;      ///< do without bpf_rdonly_cast, as on kernels before 6.2
        bool raw_tracepoints = false;  ///< as where tp_btf programs are refused
        bool library_probes = true;    ///< probe() is called
    };
    /// Loads, as raw tracepoints where the kernel refuses tp_btf; nothing runs yet. Throws Error (machine).
    explicit BpfPrograms(const Options& options);
    ~BpfPrograms();
    BpfPrograms(const BpfPrograms&) = delete;
    BpfPrograms& operator=(const BpfPrograms&) = delete;

    void attach();
    /// What is a usual and a dear fault on new anonymous memory from now on, by enum page_kind; see
    /// capture/bpf/shared.h.
    void set_page_costs(const PageCosts& costs);
    /// What was counted so far is not of the recording.
    void forget_counts();
    /// Ends recording; what is in the ring stays there.
    void detach();
    /// Probes a function of a library, for whoever calls it, from now until detach(); `function` as enum
    /// probed_function. 0, or errno: ENOENT where the library has none of that name.
    int probe(const char* library, const char* name, uint32_t function);
    /// What a call takes longer that is probed, ns, by one of libc that is probed for a moment. Below 0: it cannot be.
    [[nodiscard]] int64_t probed_call_ns() const;
    /// Follows these processes with all their threads and the children they make meanwhile. How many tasks that are.
    uint64_t follow(const std::vector<pid_t>& pids);
    /// Follows what enters these control groups from now on, and those made below them. Called before attach().
    void watch_cgroups(const std::vector<CgroupId>& groups);
    /// Writes the open descriptors (and mappings) of the followed processes into the ring.
    void seed_descriptors();
    void seed_mappings();

    /// Of the followed processes that live; nothing where the kernel does not tell.
    [[nodiscard]] std::vector<process_memory> memory();

    /// Of the followed processes that live, and of this one. Only with Options::mapped_uses, as the one below.
    [[nodiscard]] std::vector<page_root> page_roots();
    /// What the walk found, until the next one; nullptr where the kernel refuses.
    const page_tables* read_page_tables(page_walk walk);

    [[nodiscard]] int ring_fd() const;
    [[nodiscard]] uint64_t ring_bytes() const;
    /// One of enum counter (capture/bpf/shared.h).
    [[nodiscard]] uint64_t counter(int which) const;
    [[nodiscard]] uint64_t recursion_misses() const;
    /// Why they are raw tracepoints and not tp_btf; empty: they are tp_btf.
    [[nodiscard]] const std::string& raw_because() const;
    /// Hooks that were asked for and are not there.
    [[nodiscard]] const std::vector<std::string>& absent() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
