// SPDX-License-Identifier: MIT
// Making a data set out of raw files before, or while, it is used.
#pragma once

#include <cstdint>

#include "generate/distribution.h"

namespace reprise {

/// A section with workload=convert, tokenize or decode-cache: threads that read files, compute, and write.
struct PreprocessJob {
    enum class Kind : uint8_t { convert, tokenize, decode_cache } kind = Kind::convert;
    uint64_t samples = 0, samples_per_file = 1;
    Distribution sample_size, decode;  // bytes, ns
    uint64_t output_percent = 100;     // bytes written of bytes read
    uint64_t workers = 4, epochs = 1;
    bool shuffled = false;
    int64_t bs = 1 << 20;  // of each write, and of reads of large files, bytes
    bool end_fsync = false;

    /// Of those packed or tokenized.
    uint64_t outputs() const { return (samples + samples_per_file - 1) / samples_per_file; }
};

}  // namespace reprise
