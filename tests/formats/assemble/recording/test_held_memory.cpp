// SPDX-License-Identifier: MIT
// Samples of the recorder: what the processes held, by their number in the log.
#include "formats/assemble/recording/held_memory.h"

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

raw_memory sample(uint32_t pid, uint64_t anonymous, uint64_t shared) {
    raw_memory record{};
    record.head.pid = pid;
    record.anonymous = anonymous;
    record.shared = shared;
    return record;
}

Tables processes(const std::vector<int32_t>& pids) {
    Tables tables;
    tables.processes.resize(1);
    for (const int32_t pid : pids) {
        tables.processes.push_back({.pid = pid});
    }
    return tables;
}

}  // namespace

TEST_CASE("held memory: samples become whole milliseconds of the log, and end with the process") {
    RawHeldMemory memory;
    memory.see(sample(7, 4096, 0), 5 * kMs + 17);
    memory.see(sample(7, 8192, 4096), 105 * kMs);
    memory.see(sample(8, 1024, 0), -3);  // before the first record
    memory.ended(7, 200 * kMs + 1);
    memory.ended(9, 200 * kMs);  // never sampled
    const HeldMemories held = memory.of(processes({8, 7, 9}));
    CHECK(held ==
          HeldMemories{{1, {{0, 1024, 0}}}, {2, {{5 * kMs, 4096, 0}, {105 * kMs, 8192, 4096}, {200 * kMs, 0, 0}}}});
}

TEST_CASE("held memory: processes that are not in the log have none, and a number used again is the last one's") {
    RawHeldMemory memory;
    memory.see(sample(7, 4096, 0), 0);
    memory.see(sample(5, 4096, 0), 0);
    CHECK(memory.of(processes({7, 7})) == HeldMemories{{2, {{0, 4096, 0}}}});
}

}  // namespace reprise::test
