// SPDX-License-Identifier: MIT
// Bytes of asynchronous requests: the submission says which way they go, the completion how many they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "formats/oplog/async_request.h"

namespace reprise {

/// What a request moved.
struct RequestMoved {
    bool reads = false, writes = false;
    int64_t recorded = 0, here = 0;  // bytes
    bool own_reason = false;         // it was left out on purpose
};

/// Fed with the ops of each task in their order, tasks in any. Memory: 50 bytes for each request in flight, and for
/// each completion whose submission comes later, in another task.
class RequestBytes {
public:
    /// Gives the request once both its ops were seen. `here`: 0 where the run did not perform the op.
    std::optional<RequestMoved> see(const OpBlock& block, size_t i, int64_t here, bool own_reason) {
        const uint32_t number = block.request[i];
        const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
        const bool submits = row.is(Trait::submits);
        if (number == 0 || (!submits && !row.is(Trait::completes))) {
            return std::nullopt;
        }
        const auto [at, first] = half_.try_emplace(number);
        RequestMoved& request = at->second;
        if (submits) {
            const AsyncRequest asked = async_request(block, i);
            request.reads = asked.reads();
            request.writes = asked.writes();
        } else {
            request.recorded = std::max<int64_t>(block.result[i], 0);
            request.here = std::max<int64_t>(here, 0);
            request.own_reason = own_reason;
        }
        if (first) {
            return std::nullopt;
        }
        const RequestMoved whole = request;
        half_.erase(at);
        return whole;
    }

private:
    std::unordered_map<uint32_t, RequestMoved> half_;  // of which one op was seen
};

}  // namespace reprise
