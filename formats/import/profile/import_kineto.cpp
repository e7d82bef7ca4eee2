// SPDX-License-Identifier: MIT
// The importer of PyTorch profiles (torch.profiler, Kineto): accelerator work as the host submitted it, the host's
// waits for it, and its steps. A profile holds no I/O; `info` shows busy time and utilisation, a replay runs the
// accelerator.
#include "formats/import/profile/profile_log.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

bool sniff(std::string_view head) {
    const size_t first = head.find_first_not_of(" \t\r\n");
    return first != head.npos && head[first] == '{' && head.find("\"schemaVersion\"") != head.npos &&
           (head.find("\"traceEvents\"") != head.npos || head.find("\"deviceProperties\"") != head.npos);
}

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    kineto::Events events;
    uint64_t before = 0;
    for (const auto& input : inputs) {
        uint64_t here = 0;
        kineto::read_events(input, events, [&](uint64_t bytes) {
            here = bytes;
            if (options.progress) {
                options.progress(before + bytes);
            }
        });
        before += here;
    }
    if (events.work.empty()) {
        throw bad_input(inputs.front().native(), "this profile holds no accelerator work",
                        "record it with ProfilerActivity.CUDA among the activities");
    }
    write_profile_log(events, "kineto", output, options);
}

}  // namespace

extern const Importer import_kineto;
const Importer import_kineto{"kineto", "PyTorch profiles (torch.profiler, Kineto JSON): accelerator work and steps",
                             sniff, import, true};

}  // namespace reprise
