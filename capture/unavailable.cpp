// SPDX-License-Identifier: MIT
// What `reprise capture` is where it was built without libbpf or clang: the sentence that says so.
#include "capture/capture.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr const char* kWhy =
    "this reprise was built without the recorder (it needs libbpf-dev and clang at build time)";

}  // namespace

CaptureResult capture(const CaptureOptions& /*options*/) { throw machine_error(kWhy, capture_fallback()); }

CaptureCheck check_capture() { return {kWhy, {}, {}}; }

}  // namespace reprise
