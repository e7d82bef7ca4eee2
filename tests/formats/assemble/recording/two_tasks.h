// SPDX-License-Identifier: MIT
// A raw recording of two tasks, one of which waits for the other.
#pragma once

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

namespace reprise::test {

inline constexpr uint16_t kNobody = 0xffff;  // in place of a call's number

// Task 1 is 100, task 2 its child 200, which opened something.
struct Two : RawJob {
    Two() {
        open("/d/a", 3, 0xf1, 7);
        spawn(200, 200, 17);
        as(200, 200);
        open("/d/b", 4, 0xf2, 8);
        from = now;
    }
    uint64_t from;  // both are there, and nothing has happened since

    // Task 1 sleeps in a call until task 2, in `waker_nr` begun at `waker_enter`, wakes it 5 us later.
    RawBytes& sleeps(uint16_t nr, std::vector<uint64_t> args, int64_t result, uint16_t waker_nr, uint64_t waker_enter,
                     uint8_t flags = 0, uint16_t state = RAW_OFF_SLEEPING) {
        as(100, 100);
        const uint64_t wake = waker_enter + 5 * kUs;
        RawBytes& off = waker_nr == kNobody
                            ? this->off(from + 2 * kUs, wake, wake + kUs, nr, state)
                            : woken(from + 2 * kUs, wake, wake + kUs, nr, 200, 200, waker_nr, waker_enter);
        off.head().flags = flags;
        reinterpret_cast<raw_switch&>(off.head()).state = state;
        return call_at(from + kUs, wake + 2 * kUs, nr, std::move(args), result);
    }
    // Task 2 ends; its exit_group begins at now + 9 us.
    uint64_t ends() {
        as(200, 200);
        const uint64_t enter = now + 9 * kUs;
        exit(0);
        return enter;
    }
    void goes_on() {
        as(100, 100);
        pread(3, 0xf1, 7, 0, 10);
    }
};

using Edges = std::vector<Edge>;

inline Edges of_wait(const AssembledLog& log, size_t n = 0) {
    return edges_of(log, 1, number_of(log, 1, OpKind::wait, n));
}

inline const Op& wait_of(const AssembledLog& log, size_t n = 0) {
    return log.rows.at(1).at(number_of(log, 1, OpKind::wait, n)).op;
}

}  // namespace reprise::test
