// SPDX-License-Identifier: MIT
// The units of work whose rate describes a processor.
#pragma once

#include <cstdint>
#include <vector>

namespace reprise {

/// Each call of run_* does one unit, of some tenths of a millisecond, and returns a value that depends on all of it.
class WorkUnits {
public:
    WorkUnits();
    uint64_t run_integer();
    uint64_t run_inflate();
    uint64_t run_memcpy();

private:
    uint64_t seed_ = 88172645463325252ULL;
    std::vector<uint8_t> packed_, text_;
    std::vector<uint8_t> from_, to_;
};

}  // namespace reprise
