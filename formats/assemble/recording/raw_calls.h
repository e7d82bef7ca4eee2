// SPDX-License-Identifier: MIT
// The system calls a raw recording holds (formats/assemble/recording/raw_calls.def), and their arguments as an
// assembler wants them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/raw/log.h"

namespace reprise {

/// What a call means beside its arguments.
enum class RawAction : uint8_t {
    op,           // an op of the table, nothing else
    close_range,  // one close per descriptor
    fcntl,
    mmap,
    mremap,
    brk,   // no op; tells fresh memory
    make,  // the result is a descriptor of no file
    pipe,
    receive,  // may carry descriptors
    spawn,
    exec,
    exit,
    wait_child,
    wait,   // blocks
    futex,  // wakes, or blocks
    wake,   // wakes
    marker,
    chdir,
    fchdir,
    chroot,
    pivot_root,
    unshare,
    setns,
    uring_enter,
    aio_submit,
    aio_reap,
};

struct RawCallRow {
    uint16_t nr = 0;
    std::string_view name;
    OpKind kind = OpKind::wait;
    std::string_view arguments;
    RawAction action = RawAction::op;
    int64_t flags = 0;
    int64_t arg = 0;
};

std::span<const RawCallRow> all_raw_calls();
/// nullptr for a call that is not in the table.
const RawCallRow* find_raw_call(uint16_t nr);

/// What a raw_fd says, in the words of the assembler.
SeenInstance seen_instance(const raw_fd& fd);
/// As a stat call numbers devices.
uint64_t user_device(uint32_t kernel_device);

/// Fills RawCalls from records; one object for many, its memory is kept. What `out` points to is valid until the next
/// call and as long as the record.
class RawCallFiller {
public:
    /// False: a path could not be read, so that nothing can be made of the call. Times are set relative to `origin`.
    bool fill(const raw_call& record, const RawCallRow& row, int64_t origin, RawCall& out);

    /// The record's parts, found by fill().
    const raw_fd* fd_of(uint16_t which) const;
    std::span<const raw_s64> values_of(uint16_t which) const;
    std::string_view string_of(uint16_t which) const;
    const std::vector<const raw_part*>& parts() const { return parts_; }

private:
    const raw_part* part(raw_part_type type, uint16_t which) const;
    const SeenInstance* seen(uint16_t which);
    void fill_argument(const raw_call& record, char letter, uint16_t which, RawCall& out, bool& readable);

    std::vector<const raw_part*> parts_;
    std::array<SeenInstance, 8> instances_;
    size_t used_ = 0;
};

}  // namespace reprise
