// SPDX-License-Identifier: MIT
#include "formats/support/compress.h"

#include <zstd.h>

#include <new>

namespace reprise {

void Compressor::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void Decompressor::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Compressor::Compressor(int level) : context_(ZSTD_createCCtx()), noise_(ZSTD_createCCtx()) {
    if (!context_ || !noise_) {
        throw std::bad_alloc();
    }
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    // Long minimum matches leave the bytes to the entropy coder.
    ZSTD_CCtx_setParameter(noise_.get(), ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(noise_.get(), ZSTD_c_strategy, ZSTD_fast);
    ZSTD_CCtx_setParameter(noise_.get(), ZSTD_c_minMatch, 7);
    ZSTD_CCtx_setParameter(noise_.get(), ZSTD_c_targetLength, 16);
}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;

size_t Compressor::run(ZSTD_CCtx_s* context, ByteView raw, Bytes& out) {
    const size_t before = out.size();
    out.resize(before + ZSTD_compressBound(raw.size()));
    const size_t n = ZSTD_compress2(context, out.data() + before, out.size() - before, raw.data(), raw.size());
    if (ZSTD_isError(n)) {
        throw std::bad_alloc();  // the bound leaves no other cause
    }
    out.resize(before + n);
    return n;
}

size_t Compressor::compress(ByteView raw, Bytes& out) { return run(context_.get(), raw, out); }
size_t Compressor::compress_noise(ByteView raw, Bytes& out) { return run(noise_.get(), raw, out); }

Decompressor::Decompressor() : context_(ZSTD_createDCtx()) {
    if (!context_) {
        throw std::bad_alloc();
    }
}
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;

void Decompressor::decompress(ByteView stored, std::span<uint8_t> raw) {
    const size_t n = ZSTD_decompressDCtx(context_.get(), raw.data(), raw.size(), stored.data(), stored.size());
    if (ZSTD_isError(n)) {
        throw Corrupt(std::string("zstd: ") + ZSTD_getErrorName(n));
    }
    if (n != raw.size()) {
        throw Corrupt("compressed data is shorter than its header says");
    }
}

void put_blob(Bytes& out, ByteView raw, Compressor& compressor) {
    put_varint(out, raw.size());
    Bytes packed;
    if (raw.size() > 32) {
        compressor.compress(raw, packed);
    }
    if (packed.empty() || packed.size() >= raw.size()) {
        put_varint(out, raw.size());
        out.insert(out.end(), raw.begin(), raw.end());
    } else {
        put_varint(out, packed.size());
        out.insert(out.end(), packed.begin(), packed.end());
    }
}

Bytes get_blob(ByteReader& in, Decompressor& decompressor, size_t limit) {
    const size_t raw_size = in.count(limit);
    const size_t stored_size = in.count(in.left());
    const ByteView stored = in.take(stored_size);
    if (stored_size > raw_size) {
        throw Corrupt("compressed data is larger than its content");
    }
    if (stored_size == raw_size) {
        return {stored.begin(), stored.end()};
    }
    // zstd expands at most about 2^17-fold per block; refuse sizes that cannot be honest before allocating.
    if (raw_size / 200000 > stored_size) {
        throw Corrupt("compressed data claims an impossible size");
    }
    Bytes raw(raw_size);
    decompressor.decompress(stored, raw);
    return raw;
}

}  // namespace reprise
