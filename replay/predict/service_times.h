// SPDX-License-Identifier: MIT
// Service times of a recording, to be drawn for the calls of another job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// What a service time depends on.
struct ServiceKey {
    uint32_t family = 0;     // reads, writes, requests of both, or the kind of call
    uint32_t size = 0;       // of the bytes or pages that it moves: the power of two
    uint32_t time = 0;       // how often the same was done at the same place before, at most kMostTimes
    uint32_t in_flight = 0;  // reads and writes of all tasks, itself counted: the power of two

    static constexpr uint32_t kMostTimes = 3;
};

/// Finds the key of each call of a log. Calls come in the order in which they begin.
class ServiceKeys {
public:
    struct Call {
        ServiceKey key;
        int64_t amount = 0;  // bytes, of page faults pages
        bool data = false;   // counts as in flight
    };
    /// `tables`: of the log; they outlive it.
    explicit ServiceKeys(const Tables& tables) : tables_(tables) {}
    /// None: not a call on a file, or one that failed.
    std::optional<Call> of(const Op& op, int64_t now);
    /// Of an asynchronous request that reads, writes or syncs.
    std::optional<Call> of(const AsyncRequest& request, FileId file, int64_t now);
    /// The call is over then.
    void ends(const Call& call, int64_t at) {
        if (call.data) {
            ends_.push(at);
        }
    }
    /// The same where that is not known yet: from begins() to ended().
    void begins(const Call& call) { open_ += call.data ? 1 : 0; }
    void ended(const Call& call) { open_ -= call.data ? 1 : 0; }

private:
    bool on_file(const Op& op) const;
    Call found(uint32_t family, bool data, int64_t amount, uint64_t place, int64_t now);

    const Tables& tables_;
    std::unordered_map<uint64_t, uint8_t> times_;  // by place
    std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends_;
    int64_t open_ = 0;
};

/// Whether any call of the log took time: logs of fio do not say how long calls took.
bool has_service_times(const LogReader& log);

/// Times by ServiceKey. Memory: 16 bytes for each call, up to kKept of a key, and those of the places (ServiceKeys).
class ServiceTimes {
public:
    /// Reads the log once, in the order of time. Throws Error where it cannot be read.
    explicit ServiceTimes(const LogReader& log);

    /// Of one call that is like it, ns, each as likely as the other; the same for the same `draw`. Where none is, of
    /// those with the nearest size, then time, then number in flight. None: the log has no call of that family.
    /// Beyond 64 KiB a transfer takes as long as the drawn one per byte.
    std::optional<int64_t> draw(const ServiceKeys::Call& call, uint64_t draw) const;

    static constexpr size_t kKept = 4096;

private:
    struct Seen {
        int64_t amount = 0, ns = 0;
    };
    struct Calls {
        uint64_t count = 0;
        std::vector<Seen> kept;  // of `count`, drawn evenly
    };
    using ByFlight = std::map<uint32_t, Calls>;
    using ByTime = std::map<uint32_t, ByFlight>;
    using BySize = std::map<uint32_t, ByTime>;

    void add(const ServiceKeys::Call& call, int64_t ns);

    std::map<uint32_t, BySize> families_;
};

}  // namespace reprise
