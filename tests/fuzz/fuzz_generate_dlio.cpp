// SPDX-License-Identifier: MIT
// Any bytes as a workload of DLIO: an error, or a job that says itself again.
#include <string_view>

#include "generate/dlio.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const std::string_view yaml(reinterpret_cast<const char*>(data), size);
    Job job;
    try {
        job = parse_dlio(yaml, "fuzz.yaml", 2);
    } catch (const Error& error) {
        fuzz::require(error.code() == ExitCode::bad_input, "what is wrong is the input");
        return 0;
    }
    fuzz::require(!job.sections.empty(), "a job has sections");
    const std::string shown = show_job(job);
    fuzz::require(show_job(parse_job(shown, "shown.ini")) == shown, "what is shown is the job");
    return 0;
}
