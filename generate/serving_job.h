// SPDX-License-Identifier: MIT
// Serving a language model, as far as its key-value cache goes to storage.
#pragma once

#include <cstdint>
#include <optional>

#include "generate/arrivals.h"
#include "generate/distribution.h"

namespace reprise {

/// A section with workload=kv-cache: one rank of an inference server, whose blocks of the key-value cache are kept on
/// storage and loaded from there for prompts that begin as earlier ones did.
struct KvCacheJob {
    uint64_t layers = 0, kv_heads = 0, head_dim = 0, dtype_bytes = 2;  // of the rank
    uint64_t block_tokens = 256;
    int64_t capacity = 0;         // bytes of the storage tier
    bool file_per_block = false;  // else slots of one file
    uint64_t hit_percent = 0;     // of a prompt's blocks
    Distribution prompt_tokens, output_tokens;
    int64_t prefill_ns = 0, decode_ns = 0;  // of the accelerator for a token; until the next token
    bool save_decode = false;               // blocks of new tokens are stored, too
    bool direct = false, uring = false;
    uint64_t depth = 1;  // blocks in flight of a request
    Arrivals arrivals;
    std::optional<uint64_t> requests;
    uint64_t servers = 16;  // requests at a time

    /// Keys and values of a block's tokens in all layers; with O_DIRECT whole pages.
    int64_t block_bytes() const {
        constexpr uint64_t kPage = 4096;
        const uint64_t bytes = 2 * layers * kv_heads * head_dim * dtype_bytes * block_tokens;
        return static_cast<int64_t>(direct ? (bytes + kPage - 1) / kPage * kPage : bytes);
    }
    /// Blocks that the tier holds.
    uint64_t slots() const { return static_cast<uint64_t>(capacity / block_bytes()); }
};

}  // namespace reprise
