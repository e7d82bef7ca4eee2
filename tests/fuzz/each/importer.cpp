// SPDX-License-Identifier: MIT
// Any bytes as an input of one importer, FUZZED_IMPORTER: an error or a log that reads back, never a crash. Built for
// every row of formats/import/importers.def that has no fuzzer of its own.
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    return reprise::fuzz::import_bytes(FUZZED_IMPORTER, data, size);
}
