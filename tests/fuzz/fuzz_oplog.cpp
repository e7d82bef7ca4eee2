// SPDX-License-Identifier: MIT
// Any bytes as an op log, with and without recovery and checksums: an error or a whole read, never a crash.
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const fuzz::MemoryFile input(data, size);
    for (const bool recover : {false, true}) {
        for (const bool verify : {true, false}) {  // without checksums, mutations get past the door
            try {
                fuzz::read_all(LogReader(input.path(), {.recover = recover, .verify_checksums = verify}), false);
            } catch (const Error&) {
            }
        }
    }
    return 0;
}
