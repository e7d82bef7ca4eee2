// SPDX-License-Identifier: MIT
// zstd behind two calls that never trust sizes.
#pragma once

#include <memory>

#include "formats/support/bytes.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace reprise {

class Compressor {
public:
    explicit Compressor(int level);
    ~Compressor();
    Compressor(Compressor&&) noexcept;

    /// Appends the compressed bytes to `out`; returns how many there are.
    size_t compress(ByteView raw, Bytes& out);
    /// For bytes without repetitions: entropy coding only, no match search.
    size_t compress_noise(ByteView raw, Bytes& out);

private:
    size_t run(ZSTD_CCtx_s* context, ByteView raw, Bytes& out);
    struct Free {
        void operator()(ZSTD_CCtx_s*) const;
    };
    std::unique_ptr<ZSTD_CCtx_s, Free> context_, noise_;
};

class Decompressor {
public:
    Decompressor();
    ~Decompressor();
    Decompressor(Decompressor&&) noexcept;

    /// Fills exactly `raw`; throws Corrupt where the bytes are anything else.
    void decompress(ByteView stored, std::span<uint8_t> raw);

private:
    struct Free {
        void operator()(ZSTD_DCtx_s*) const;
    };
    std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

/// A blob: its raw size, stored size and bytes; stored raw where compression does not pay.
void put_blob(Bytes& out, ByteView raw, Compressor& compressor);
/// Reads a blob of at most `limit` raw bytes.
Bytes get_blob(ByteReader& in, Decompressor& decompressor, size_t limit);

}  // namespace reprise
