// SPDX-License-Identifier: MIT
// What a record of a raw recording says besides its numbers: as text, and as its call's row asks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/syscalls.h"
#include "formats/raw/log.h"

namespace reprise::test {

// "path1=x", "fd0=3/inode/size/position/flags/mode/info/peer", "fd0=3none": as check_raw.cpp says it.
std::string raw_part_line(const raw_part& part);

// A part that must, or may, be there.
struct WantedPart {
    uint16_t type = 0, which = 0;
    std::optional<size_t> length{};
    std::optional<int64_t> fd{};
    bool optional = false;
};

// The parts of a call as formats/oplog/syscalls.def promises them, in their order.
class PartsOfCall {
public:
    explicit PartsOfCall(const raw_call& call);
    // What is wrong with the parts the record has; empty: nothing.
    std::string differs() const;

private:
    bool done() const { return call_.result >= 0; }
    void descriptor(uint16_t which, int64_t number);
    void argument(char letter, uint16_t i);
    void some(bool there, WantedPart part);
    bool may_follow(const raw_part& part, size_t descriptors) const;
    std::string wrong_file(const raw_part& part) const;

    const raw_call& call_;
    const Syscall& row_;
    std::vector<WantedPart> wanted_;
};

// The same for a request of io_uring, submitted or completed; `asked`: the submission of a completion.
std::string wrong_parts(const raw_uring& record, const raw_uring* asked);

}  // namespace reprise::test
