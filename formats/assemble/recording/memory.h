// SPDX-License-Identifier: MIT
// Which memory of a process no call has filled since it was mapped: a read into it pays for its page faults.
#pragma once

#include <cstdint>
#include <map>

namespace reprise {

class FreshMemory {
public:
    void mapped(uint64_t address, uint64_t size) { add(address, size); }
    void unmapped(uint64_t address, uint64_t size) { remove(address, size); }
    void break_at(uint64_t address);
    /// A call filled these bytes; true where most of them were fresh. They are not any more.
    bool fill(uint64_t address, uint64_t size);
    void clear() {
        ranges_.clear();
        break_ = 0;
    }

private:
    void add(uint64_t address, uint64_t size);
    void remove(uint64_t address, uint64_t size);
    std::map<uint64_t, uint64_t> ranges_;  // begin to end, of whole pages; disjoint
    uint64_t break_ = 0;
};

}  // namespace reprise
