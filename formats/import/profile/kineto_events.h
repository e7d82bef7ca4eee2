// SPDX-License-Identifier: MIT
// The events of a profile that say what accelerators did and how the host drove them, and the reader of PyTorch's
// profiles (Kineto's Chrome trace JSON); formats/import/profile/nsys_events.h reads those of Nsight Systems.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::kineto {

/// Times are ns: as stamped plus baseTimeNanoseconds where the file has one.
struct Span {
    int64_t begin = 0, duration = 0;
    int64_t end() const { return begin + duration; }
};

struct Work : Span {  // a kernel, copy or fill on a device
    int64_t device = 0, stream = 0;
    uint64_t correlation = 0;  // of the host's call; 0: not known
    uint32_t name = 0;         // in Events::names
};

struct HostCall : Span {  // a call of the CUDA or HIP runtime or driver
    int32_t pid = 0, tid = 0;
    uint64_t correlation = 0;
    uint32_t name = 0;
    int64_t stream = -1;  // -1: not recorded
    int64_t device = -1;  // likewise
};

struct Step : Span {  // ProfilerStep#N
    int32_t pid = 0, tid = 0;
    int64_t number = 0;
};

struct Events {
    std::vector<Work> work;
    std::vector<HostCall> calls;
    std::vector<Step> steps;
    std::vector<HostCall> blocked;  // calls of the system's libraries that wait
    std::vector<std::string> names{""};
    uint64_t events = 0;                     // in the file
    uint64_t malformed = 0;                  // of them
    uint64_t os_calls = 0;                   // known by name only
    uint64_t lost = 0;                       // that the profiler itself dropped
    std::vector<int64_t> clock_differences;  // of each file that records it: wall clock less the clock of its events
    std::string first_malformed;
    bool cut = false;  // the JSON ends too early
    std::string host;

    uint32_t name_of(std::string_view name);

private:
    std::unordered_map<std::string, uint32_t> ids_;
};

/// Adds the events of one file. Throws Error (bad_input) for what is not such a profile.
void read_events(const std::filesystem::path& path, Events& into, const std::function<void(uint64_t)>& progress);

/// "1623142623529248.125" us to ns, exactly; false where it is not such a number or beyond 64 bits of ns.
bool microseconds_to_ns(std::string_view text, int64_t& ns);

}  // namespace reprise::kineto
