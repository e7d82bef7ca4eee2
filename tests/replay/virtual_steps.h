// SPDX-License-Identifier: MIT
// Calls of a prediction from begin to end, where no other task is at work.
#pragma once

#include "replay/predict/virtual_calls.h"

namespace reprise::test {

/// When the call that begins at `now` is over, ns.
inline int64_t perform(VirtualCalls& calls, const OpBlock& b, size_t i, int64_t now) {
    VirtualCall call;
    int64_t end = calls.start(call, b, i, now);
    while (!call.done) {
        end = calls.go_on(call, end);
    }
    return end;
}

/// When a walk is over.
inline int64_t walk_to_end(VirtualStorage& storage, PageWalk walk, int64_t now) {
    while (!walk.done) {
        now = storage.go_on(walk, now);
    }
    return now;
}

inline int64_t read(VirtualStorage& storage, FileId file, int64_t offset, int64_t bytes, int64_t size, int64_t now) {
    return walk_to_end(storage, storage.reading(file, file, offset, bytes, size), now);
}

}  // namespace reprise::test
