// SPDX-License-Identifier: MIT
// Any op log, its checksums aside, as the recording of a training job: an Error, or a job file that can be read.
#include "analyze/job/analysis.h"
#include "fit/fit.h"
#include "generate/job.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const fuzz::MemoryFile input(data, size);
    std::string text;
    try {
        const LogReader log(input.path(), {.recover = true, .verify_checksums = false});
        analyze_job(log);
        text = fit_job(log).text("fuzz.oplog");
    } catch (const Corrupt&) {
        return 0;
    } catch (const Error&) {
        return 0;
    }
    try {
        parse_job(text, "fitted.ini");
    } catch (const Error& error) {
        fuzz::require(false, error.what());
    }
    return 0;
}
