// SPDX-License-Identifier: MIT
// Job files: whatever the text is, a job that is valid, or an Error. What a valid one shows as its words is the same
// job.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/support/error.h"
#include "generate/diagram.h"
#include "generate/job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    Job job;
    try {
        job = parse_job({reinterpret_cast<const char*>(data), size}, "job.ini");
    } catch (const Error&) {
        return 0;
    }
    const std::string shown = show_job(job);
    if (show_job(parse_job(shown, "shown.ini")) != shown || diagram_of(job).empty()) {
        std::abort();
    }
    shrink(job, 1000);
    show_job(job);
    return 0;
}
