// SPDX-License-Identifier: MIT
#include "calibrate/work_units.h"

#include <isa-l/igzip_lib.h>

#include <cstring>
#include <stdexcept>

namespace reprise {
namespace {

constexpr size_t kText = 64 << 10;
constexpr size_t kCopy = 8 << 20;
constexpr int kIntegerTurns = 200'000;

uint64_t next(uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

}  // namespace

WorkUnits::WorkUnits() : text_(kText), from_(kCopy, 1), to_(kCopy) {
    // Words of a small vocabulary: about as compressible as text.
    uint64_t state = 7;
    for (size_t at = 0; at < kText;) {
        uint64_t word = next(state) % 512;
        for (int letter = 0; letter < 6 && at < kText; ++letter, word /= 3) {
            text_[at++] = static_cast<uint8_t>('a' + (word * 7 + static_cast<uint64_t>(letter)) % 23);
        }
        if (at < kText) {
            text_[at++] = ' ';
        }
    }
    packed_.resize(2 * kText);
    isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.next_in = text_.data();
    stream.avail_in = static_cast<uint32_t>(text_.size());
    stream.next_out = packed_.data();
    stream.avail_out = static_cast<uint32_t>(packed_.size());
    stream.end_of_stream = 1;
    if (isal_deflate_stateless(&stream) != COMP_OK) {
        throw std::logic_error("text of the calibration does not compress");
    }
    packed_.resize(stream.total_out);
}

uint64_t WorkUnits::run_integer() {
    uint64_t state = seed_;
    for (int turn = 0; turn < kIntegerTurns; ++turn) {
        state = next(state) * 0x9e3779b97f4a7c15ULL | 1;
    }
    return seed_ = state;
}

uint64_t WorkUnits::run_inflate() {
    inflate_state state;
    isal_inflate_init(&state);
    state.next_in = packed_.data();
    state.avail_in = static_cast<uint32_t>(packed_.size());
    state.next_out = text_.data();
    state.avail_out = static_cast<uint32_t>(text_.size());
    if (isal_inflate_stateless(&state) != ISAL_DECOMP_OK || state.total_out != kText) {
        throw std::logic_error("text of the calibration does not decompress");
    }
    return text_[seed_ % kText];
}

uint64_t WorkUnits::run_memcpy() {
    std::memcpy(to_.data(), from_.data(), kCopy);
    from_.swap(to_);
    return from_[seed_ % kCopy];
}

}  // namespace reprise
