// SPDX-License-Identifier: MIT
// Calls of a raw recording as the assembler takes them: arguments read by the letters of formats/oplog/syscalls.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/oplog/syscalls.h"
#include "formats/raw/log.h"

namespace reprise {

/// A raw_fd as the assembler takes it.
SeenInstance seen_instance(const raw_fd& fd);
/// As a stat call numbers devices.
uint64_t user_device(uint32_t kernel_device);

/// Fills RawCalls from records; one object for many, its memory is kept. What `out` points to is valid until the next
/// call and as long as the record.
class RawCallFiller {
public:
    /// False: a path could not be read, so that nothing can be made of the call. Times are set relative to `origin`.
    bool fill(const raw_call& record, const Syscall& row, int64_t origin, RawCall& out);

    /// The record's parts, found by fill().
    const raw_fd* fd_of(uint16_t which) const;
    std::span<const raw_s64> values_of(uint16_t which) const;
    std::span<const raw_s64> list_of(uint16_t which) const;
    std::string_view string_of(uint16_t which) const;
    const std::vector<const raw_part*>& parts() const { return parts_; }

private:
    const raw_part* part(raw_part_type type, uint16_t which) const;
    const SeenInstance* seen(uint16_t which);
    void fill_clone(const raw_call& record, uint16_t which, RawCall& out);
    void fill_made(const raw_call& record, const Syscall& row, RawCall& out);
    std::optional<int64_t> position_of(const raw_call& record, const RawCall& call) const;
    void fill_argument(const raw_call& record, char letter, uint16_t which, RawCall& out, bool& readable);

    std::vector<const raw_part*> parts_;
    std::array<SeenInstance, 8> instances_;
    size_t used_ = 0;
};

}  // namespace reprise
