// SPDX-License-Identifier: MIT
// Asynchronous requests on a timeline: a lane for each ring with every request from submission to completion, and how
// many are in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "formats/export/perfetto/trace_events.h"
#include "formats/oplog/request_matcher.h"

namespace reprise {

/// Memory: 16 bytes for each request besides what RequestMatcher needs.
class RequestLanes {
public:
    /// `pids`: the viewer's number of each process; `also` gets every request, too. All outlive it.
    RequestLanes(const Tables& tables, TraceEvents& to, const std::vector<int64_t>& pids,
                 std::function<void(const DoneRequest&)> also)
        : tables_(tables),
          to_(to),
          pids_(pids),
          also_(std::move(also)),
          matcher_(tables, [this](const DoneRequest& request) { draw(request); }) {}
    RequestLanes(const RequestLanes&) = delete;
    RequestLanes& operator=(const RequestLanes&) = delete;

    void op(TaskId task, const Op& op) { matcher_.add(task, op); }
    void finish();

private:
    void draw(const DoneRequest& request);

    const Tables& tables_;
    TraceEvents& to_;
    const std::vector<int64_t>& pids_;
    const std::function<void(const DoneRequest&)> also_;
    RequestMatcher matcher_;
    std::vector<std::vector<std::pair<int64_t, int64_t>>> spans_;  // by ring: begin and end of those in flight
};

}  // namespace reprise
