// SPDX-License-Identifier: MIT
// `reprise capture --check`: loads and attaches everything for a moment, following nobody.
#include <algorithm>
#include <cstdlib>

#include "capture/capture.h"
#include "capture/loader.h"
#include "formats/support/error.h"

namespace reprise {

CaptureCheck check_capture() {
    CaptureCheck check;
    check.refusal = bpf_refusal();
    std::vector<std::string> absent;
    bool probes = false;
    if (check.refusal.empty()) {
        try {
            BpfPrograms::Options options;
            options.ring_bytes = 65536;
            options.cgroups = true;
            options.raw_tracepoints = std::getenv("REPRISE_CAPTURE_RAW_TRACEPOINTS") != nullptr;
            BpfPrograms programs(options);
            programs.attach();
            absent = programs.absent();
            probes = programs.probed_call_ns() >= 0;
            check.raw_because = programs.raw_because();
            check.raw_because.resize(std::min(check.raw_because.find('\n'), check.raw_because.size()));
        } catch (const Error& error) {
            check.refusal = error.what();
            check.refusal.resize(std::min(check.refusal.find('\n'), check.refusal.size()));
        }
    }
    std::string last;
    for (const BpfHook& hook : bpf_hooks()) {
        // Two programs for one hook are one row.
        if (hook.trace == last || (check.raw_because.empty() && std::string_view(hook.program) == "task_free")) {
            continue;
        }
        last = hook.trace;
        const bool granted =
            check.refusal.empty() && std::find(absent.begin(), absent.end(), hook.trace) == absent.end();
        check.hooks.push_back({hook.trace, hook.group, granted, hook.follows});
    }
    check.hooks.push_back({"uprobe", "cufile", check.refusal.empty() && probes, "calls of libcufile are not recorded"});
    return check;
}

}  // namespace reprise
