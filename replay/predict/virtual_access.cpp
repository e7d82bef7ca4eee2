// SPDX-License-Identifier: MIT
// Predictions of a job with another access to its files (replay/plan/access.h).
#include <sys/mman.h>

#include <algorithm>

#include "formats/oplog/touched.h"
#include "replay/predict/virtual_calls.h"

namespace reprise {
namespace {

constexpr int64_t kBlock = 4096;         // of direct reads: the model names no other
constexpr int64_t kMappedFault = 1'000;  // ns: of a page fault that finds its page, with what it maps around it

}  // namespace

/// Past the page cache, in whole blocks.
int64_t VirtualCalls::read_blocks(HandleId handle, int64_t offset, int64_t bytes, int64_t now, VirtualDevice::By by) {
    const int64_t from = offset > 0 ? offset / kBlock * kBlock : 0;
    const int64_t end = std::min(offset, INT64_MAX - bytes - kBlock) + bytes;
    const int64_t blocks = bytes > 0 ? (end + kBlock - 1) / kBlock * kBlock - from : 0;
    return storage_.read_direct(storage_.data_bytes(data_of(handle), from, blocks), now, by);
}

int64_t VirtualCalls::read_mapped(VirtualCall& call, HandleId handle, int64_t offset, int64_t bytes, int64_t now) {
    const FileId file = file_of(handle);
    call.walk = storage_.reading(data_.of(file), handle, offset, bytes, size_of(file));
    if (call.walk.ranges.empty()) {
        call.walk = {};
        return now + bytes / kBlock * kMappedFault / 16;
    }
    call.walk.by = PageWalk::By::populate;
    call.walk.page_ns = kMappedFault;
    call.done = false;
    return now;
}

/// The whole file, in requests as large as the kernel takes.
int64_t VirtualCalls::prefetch(HandleId handle, int64_t now) {
    const FileId file = file_of(handle);
    const int64_t size = size_of(file);
    int64_t end = now;
    for (int64_t at = 0; at < size; at += kPrefetchPiece) {
        end += model_.call_ns + storage_.prefetch(data_.of(file), handle, at, kPrefetchPiece, size, now);
    }
    return end;
}

/// False where there is no more of the file.
bool VirtualCalls::add_pieces(VirtualCall& call, const Mapping& mapping, int64_t at, int64_t bytes) const {
    constexpr size_t kMostPieces = size_t{1} << 20;  // of one op; hostile logs name more
    int64_t from = 0, to = 0;
    if (at < 0 || bytes <= 0 || __builtin_add_overflow(mapping.offset, at, &from) ||
        __builtin_add_overflow(from, bytes, &to)) {
        return false;
    }
    const int64_t size = size_of(mapping.file);
    const int64_t end = size > 0 ? std::min(to, size) : to;
    for (; from < end && call.pieces.size() < kMostPieces; from += plan_.access->change.mmap_as_read) {
        call.pieces.push_back({mapping.handle, from, std::min(plan_.access->change.mmap_as_read, end - from)});
    }
    return end == to && from >= end;
}

/// A mapping that is read: what is touched of it is, and nothing else is done to it.
int64_t VirtualCalls::on_read_map(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (kind == OpKind::mmap) {
        maps_.insert_or_assign(b.map[i],
                               Mapping{file_of(b.handle[i]), b.handle[i], std::max<int64_t>(b.offset[i], 0), {}});
    }
    const auto found = maps_.find(b.map[i]);
    if (found == maps_.end()) {
        return now;
    }
    const Mapping& mapping = found->second;
    constexpr int64_t kMostRead = int64_t{1} << 40;  // hostile logs name more
    if (const auto* const runs = plan_.access->runs_of(b.task, b.map[i]);
        kind == OpKind::touch && b.flags[i] != kTouchAgain && runs != nullptr) {
        RunCursor& cursor = cursors_[AccessPlan::key(b.task, b.map[i])];
        each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
            cursor.bring(*runs, at, bytes, plan_.access->change.mmap_as_read,
                         [&](int64_t from, int64_t size) { return add_pieces(call, mapping, from, size); });
        });
    } else if (kind == OpKind::mmap && (b.flags[i] & MAP_POPULATE) != 0) {
        add_pieces(call, mapping, 0, std::clamp<int64_t>(b.size[i], 0, kMostRead));
    } else if (kind == OpKind::madvise && b.result[i] >= 0 &&
               (b.arg[i] == MADV_POPULATE_READ || b.arg[i] == MADV_POPULATE_WRITE)) {
        add_pieces(call, mapping, b.offset[i], std::clamp<int64_t>(b.size[i], 0, kMostRead));
    }
    std::reverse(call.pieces.begin(), call.pieces.end());
    call.at_piece = !call.pieces.empty();
    call.done = !call.at_piece;
    return now;
}

/// Begins the next read of several. None: none is due, or it walks through pages.
std::optional<int64_t> VirtualCalls::next_piece(VirtualCall& call, int64_t now) {
    if (!call.at_piece) {
        return std::nullopt;
    }
    const VirtualCall::Piece piece = call.pieces.back();
    call.pieces.pop_back();
    call.at_piece = false;
    bytes_read += static_cast<uint64_t>(piece.bytes);
    if ((access_of(piece.handle) & kReadsDirect) != 0) {
        call.at_piece = !call.pieces.empty();
        call.done = !call.at_piece;
        return read_blocks(piece.handle, piece.offset, piece.bytes, now);
    }
    const FileId file = file_of(piece.handle);
    call.walk = storage_.reading(data_.of(file), piece.handle, piece.offset, piece.bytes, size_of(file));
    return std::nullopt;
}

}  // namespace reprise
