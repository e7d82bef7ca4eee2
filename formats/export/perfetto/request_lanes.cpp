// SPDX-License-Identifier: MIT
#include "formats/export/perfetto/request_lanes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "formats/oplog/in_flight.h"

namespace reprise {

void RequestLanes::draw(const DoneRequest& request) {
    const SeenRing& ring = matcher_.rings()[request.ring];
    const int64_t pid = ring.process < pids_.size() ? pids_[ring.process] : 0;
    // Viewers put events of one name that overlap into one lane of several rows, which has that name.
    const std::string name = ring_name(ring);
    const auto event = [&](const char* phase, int64_t at) {
        to_.event(phase, pid, pid);
        to_.text("name", name);
        to_.text("cat", "request");
        to_.number("id", request.number);
        to_.time(at);
    };
    also_(request);
    event("b", request.begin);
    to_.args();
    to_.text("does", does_name(request.what.does));
    to_.number("request", request.number);
    if (request.file != 0) {
        to_.text("file", tables_.path(request.file));
    }
    to_.number("offset", request.what.offset);
    to_.number("size", request.what.size);
    to_.number("result", request.result);
    if (request.result < 0 && request.result > -4096) {
        to_.text("error", std::strerror(static_cast<int>(-request.result)));
    }
    to_.args_end();
    to_.end();
    const int64_t end = std::max(request.begin, request.end);
    event("e", end);
    to_.end();
    if (request.what.on_storage()) {
        spans_.resize(std::max<size_t>(spans_.size(), size_t{request.ring} + 1));
        spans_[request.ring].emplace_back(request.begin, end);
    }
}

void RequestLanes::finish() {
    matcher_.finish();
    for (uint32_t ring = 0; ring < spans_.size(); ++ring) {
        const ProcessId process = matcher_.rings()[ring].process;
        const int64_t pid = process < pids_.size() ? pids_[process] : 0;
        const std::string name = "in flight, " + ring_name(matcher_.rings()[ring]);
        std::vector<int64_t> begins, ends;
        for (const auto& [begin, end] : spans_[ring]) {
            begins.push_back(begin);
            ends.push_back(end);
        }
        std::sort(begins.begin(), begins.end());
        std::sort(ends.begin(), ends.end());
        int64_t depth = 0;
        for (size_t begun = 0, ended = 0; ended < ends.size();) {
            const int64_t at = begun < begins.size() ? std::min(begins[begun], ends[ended]) : ends[ended];
            for (; ended < ends.size() && ends[ended] == at; ++ended) {
                --depth;
            }
            for (; begun < begins.size() && begins[begun] == at; ++begun) {
                ++depth;
            }
            to_.counter(pid, name, "requests", at, static_cast<double>(depth));
        }
    }
}

}  // namespace reprise
