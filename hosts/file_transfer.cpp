// SPDX-License-Identifier: MIT
#include "hosts/file_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace reprise {

std::string FileTransfer::read() {
    std::string bytes(kChunk, '\0');
    mine_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(mine_.gcount()));
    return bytes;
}

/// Rank 0 announces a window when it begins to take the one before; whose file it is waits for that. The first call on
/// rank 0 announces two.
std::string FileTransfer::next() {
    const uint64_t chunk = done_++;
    if (from_ == 0) {
        return ranks_.rank() == 0 ? read() : std::string();
    }
    if (chunk == 0 && ranks_.rank() == 0) {
        ranks_.announce({});
    }
    if (chunk % kWindow == 0) {
        ranks_.announce({});
    }
    return ranks_.give(from_, ranks_.rank() == from_ ? read() : std::string());
}

size_t FileTransfer::take(std::span<uint8_t> into) {
    while (at_ == chunk_.size()) {
        if (done_ == chunks_) {
            return 0;
        }
        chunk_ = next();
        at_ = 0;
    }
    const size_t some = std::min(into.size(), chunk_.size() - at_);
    std::memcpy(into.data(), chunk_.data() + at_, some);
    at_ += some;
    return some;
}

void FileTransfer::finish() {
    while (done_ != chunks_) {
        next();
    }
    if (from_ != 0 && chunks_ != 0 && ranks_.rank() != 0) {
        ranks_.announce({});  // of the window behind the last
    }
}

}  // namespace reprise
