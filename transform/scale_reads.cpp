// SPDX-License-Identifier: MIT
#include "transform/scale_reads.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "formats/oplog/touched.h"

namespace reprise {

int64_t ScaledReads::new_size(FileId file) const {
    return static_cast<int64_t>(places_.holds(file)
                                    ? places_.size(file)
                                    : std::llround(factor_ * static_cast<double>(recorded_.files[file].size)));
}

void ScaledReads::enter(size_t passage, uint32_t epochs) {
    places_.enter(passage);
    epochs_ = epochs;
    seeks_.clear();
}

void ScaledReads::sample(Op& op, FileId opened) {
    const OpInfo& row = info(op.kind);
    if (op.handle == 0 || opened == 0) {
        return;
    }
    const FileId now = now_.handles[op.handle].file;
    const auto before = static_cast<int64_t>(recorded_.files[opened].size),
               after = static_cast<int64_t>(now_.files[now].size);
    if (before == after) {
        return;
    }
    OtherSize& size = sizes_.try_emplace(op.handle, OtherSize{before, after, 0, 0}).first->second;
    if (op.kind == OpKind::lseek && op.result >= 0) {
        if (op.arg == SEEK_END || op.result > after) {
            op.result = std::clamp<int64_t>(op.result - before + after, 0, after);
            op.offset = op.arg == SEEK_SET ? op.result : op.offset;
        }
        size.recorded = op.result;
        size.position = op.result;
        return;
    }
    if (!row.is(Trait::reads) || op.result < 0 || row.is(Trait::writes)) {
        return;
    }
    const int64_t at = op.offset == size.recorded ? size.position : std::min(op.offset, after);
    const int64_t rest = before - op.offset;
    size.recorded = op.offset + op.result;
    if (op.size == rest || op.size == rest + 1) {  // asked for all there is
        op.size = std::max<int64_t>(after - at + (op.size - rest), 0);
    }
    op.offset = at;
    op.result = std::clamp<int64_t>(after - at, 0, op.size);
    size.position = at + op.result;
}

/// Each range of a touch, whose pages belong to several records, has a place of its own.
template <class Place>
void ScaledReads::touch(PieceOp& of, Place&& place) {
    Op& op = of.op;
    if (of.list.empty()) {
        op.offset = place(op.offset, op.size);
        return;
    }
    std::vector<int64_t> ranges;
    int64_t first = 0, end = 0, last = 0;
    each_touched(op.offset, op.size, of.list, [&](int64_t recorded, int64_t bytes) {
        const int64_t at = place(recorded, bytes);
        first = ranges.empty() ? at : first;
        ranges.push_back(ranges.empty() ? 0 : at - end);
        ranges.push_back(bytes);
        end = at + bytes;
        last = std::max(last, end);
    });
    if (!ranges.empty()) {
        op.offset = first;
        op.size = last - first;
        of.list = std::move(ranges);
    }
}

bool ScaledReads::record(PieceOp& of, TaskId task, uint32_t map, FileId file) {
    Op& op = of.op;
    const auto before = static_cast<int64_t>(places_.size_before(file)), after = new_size(file);
    const auto whole = [&](int64_t size) { return size >= before - before / 8 && size <= before + 8192; };
    const uint32_t epoch = edges_.epoch_at(of.task, of.number) + epochs_;
    switch (op.kind) {
        case OpKind::mmap:
        case OpKind::munmap:
        case OpKind::madvise:
        case OpKind::fadvise:
            if (op.offset == 0 && whole(op.size)) {
                op.size += after - before;
            }
            return true;
        case OpKind::touch: {
            if (const uint32_t unit = edges_.unit_at(of.task, of.number, file); unit != ScaleRecording::kNoUnit) {
                touch(of, [&](int64_t at, int64_t bytes) {
                    return places_.place(uint64_t{op.map} << 32 | map, unit, epoch, at, bytes);
                });
            }
            return true;
        }
        case OpKind::lseek:
            if (op.result < 0) {
                return true;
            }
            if (op.arg == SEEK_END) {
                op.result += after - before;
            } else if (op.arg == SEEK_CUR && op.offset == 0) {
                const auto known = positions_.find(op.handle);
                op.result = known == positions_.end() ? op.result : known->second;
            } else {  // the read after it says where to
                seeks_[op.handle] = {task, made_.of(task).size()};
            }
            positions_[op.handle] = op.result;
            return true;
        default: return read_record(of, task, file, epoch);
    }
}

bool ScaledReads::read_record(PieceOp& of, TaskId task, FileId file, uint32_t epoch) {
    Op& op = of.op;
    const auto before = static_cast<int64_t>(places_.size_before(file)), after = new_size(file);
    const bool reads = op.kind == OpKind::read || op.kind == OpKind::readv || op.kind == OpKind::pread ||
                       op.kind == OpKind::preadv || info(op.kind).is(Trait::submits);
    if (op.kind == OpKind::readahead || !reads || op.result < 0) {
        return true;
    }
    const bool moves = info(op.kind).is(Trait::moves);
    const int64_t bytes = info(op.kind).is(Trait::submits) ? op.size : op.result;
    if (bytes == 0) {  // the end of the file, which is further off now
        const int64_t at = moves ? positions_[op.handle] : op.offset + after - before;
        op.offset = at;
        return at >= after;
    }
    const uint32_t unit = edges_.unit_at(of.task, of.number, file);
    const bool sample = unit != ScaleRecording::kNoUnit && recording_.units()[unit].bytes > 0;
    int64_t to = sample ? places_.place(op.handle, unit, epoch, op.offset, bytes) : op.offset;
    if (const FileId actual = now_.handles[op.handle].file; actual != file && moves) {
        // Another shard is open where epochs were joined: on in that one.
        to = positions_[op.handle];
        to = to + bytes > static_cast<int64_t>(now_.files[actual].size) ? 0 : to;
    }
    if (moves) {
        seek(of, task, to);
        positions_[op.handle] = to + bytes;
    }
    if (to + bytes < after && op.result < op.size && op.list.empty()) {
        op.size = bytes;  // it was short as the file ended there
    }
    op.offset = to;
    return true;
}

/// Before a read at the position: the seek that led there, or one more, leads to `to`.
void ScaledReads::seek(const PieceOp& of, TaskId task, int64_t to) {
    const auto asked = seeks_.find(of.op.handle);
    if (asked != seeks_.end() && positions_[of.op.handle] != to) {
        Op& seek = made_.of(asked->second.first)[asked->second.second].op;
        seek.arg = SEEK_SET;
        seek.offset = seek.result = to;
    } else if (positions_[of.op.handle] != to) {
        PieceOp more;
        more.task = of.task;
        more.op.kind = OpKind::lseek;
        more.op.begin = of.op.begin;
        more.op.handle = of.op.handle;
        more.op.fd = of.op.fd;
        more.op.offset = more.op.result = to;
        more.op.arg = SEEK_SET;
        made_.insert(more, task);
    }
    if (asked != seeks_.end()) {
        seeks_.erase(asked);
    }
}

void ScaledReads::index(const PieceOp& of, TaskId task) {
    const FileId file = of.op.handle < now_.handles.size() ? now_.handles[of.op.handle].file : 0;
    if (recording_.class_of(file) != SampleClass::index || !info(of.op.kind).is(Trait::reads) || of.op.result < 0) {
        return;
    }
    const auto before = static_cast<int64_t>(recorded_.files[file].size);
    const int64_t after = new_size(file);
    Op& op = made_.of(task).back().op;
    if (of.op.result == 0) {
        op.offset = std::max(after, op.offset);
        return;
    }
    if (of.op.offset + of.op.result < before) {
        if (op.offset + op.result > after) {
            op.offset = std::min(op.offset, after);
            op.result = after - op.offset;
        }
        return;
    }
    if (op.size >= before - op.offset && op.offset == 0) {
        op.size += after - before;
        op.result = after;
        op.duration = static_cast<int64_t>(static_cast<double>(op.duration) * factor_);
        return;
    }
    op.result = std::clamp<int64_t>(after - op.offset, 0, op.size);
    for (int64_t at = op.offset + op.result; at < after && of.op.size > 0; at += of.op.size) {
        PieceOp more = of;
        more.edges.clear();
        more.op.offset = at;
        more.op.result = std::min(of.op.size, after - at);
        made_.insert(more, task);
    }
}

}  // namespace reprise
