// SPDX-License-Identifier: MIT
// Any bytes as an export of Nsight Systems: an error or a log that reads back, never a crash.
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    return reprise::fuzz::import_bytes("nsys", data, size);
}
