// SPDX-License-Identifier: MIT
#include "formats/oplog/repeated_looks.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "formats/oplog/op_fields.h"
#include "formats/oplog/tables.h"

namespace reprise {
namespace {

constexpr size_t kMostLookOps = 16;                      // of a look
constexpr int64_t kMostLookRead = 64 << 10;              // bytes, by one call of it
constexpr int64_t kMostLookTime = 1'000'000;             // ns, of computing beside a look; or a tenth of the sleep
constexpr int64_t kLongestLookSleep = int64_t{1} << 42;  // ns, an hour; malformed logs have longer ones

bool is_look(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    switch (kind) {
        case OpKind::open: return (block.flags[i] & (O_CREAT | O_TRUNC)) == 0;
        case OpKind::read:
        case OpKind::pread:
        case OpKind::readv:
        case OpKind::preadv: return block.result[i] <= kMostLookRead;
        case OpKind::close:
        case OpKind::lseek:
        case OpKind::getdents:
        case OpKind::stat:
        case OpKind::fstat:
        case OpKind::statx:
        case OpKind::access:
        case OpKind::readlink:
        case OpKind::ioctl: return true;
        default: return false;
    }
}

uint64_t mixed(uint64_t hash, uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdu;
}

}  // namespace

void RepeatedLooks::see(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const uint64_t op = block.first + i;
    if (kind == OpKind::compute) {
        computed_ += std::clamp<int64_t>(block.duration[i], 0, kLongestLookSleep);
        if (computed_ > std::max(kMostLookTime, current_.ns / 10)) {
            works();
        }
        return;
    }
    if (kind == OpKind::wait && (is_lock_wait(block.arg[i]) || block.arg[i] == kWaitWokeOthers)) {
        return;
    }
    if (kind == OpKind::wait && block.arg[i] == kWaitSleep && ended_by_time(block.arg[i], block.result[i])) {
        slept(op, std::clamp<int64_t>(block.duration[i], 0, kLongestLookSleep));
        return;
    }
    if (kind == OpKind::spawn) {
        child_ = block.peer[i];
        return;
    }
    if (child_ != 0 && kind == OpKind::wait && wait_class(block.arg[i]) == kWaitChild) {
        return;  // for the exec of a child made by vfork
    }
    if (child_ != 0 && kind == OpKind::join && block.result[i] > 0) {
        if (block.peer[i] == child_) {
            slept(op, std::clamp<int64_t>(block.duration[i], 0, kLongestLookSleep), child_);
        }
        return;  // else of another one, which ended meanwhile
    }
    if (!is_look(block, i)) {
        works();
        return;
    }
    computed_ = 0;
    const HandleId handle = block.handle[i];
    const FileId file =
        block.file[i] == 0 && handle < tables_.handles.size() ? tables_.handles[handle].file : block.file[i];
    const uint64_t path = file < tables_.files.size() ? tables_.files[file].path : 0;
    if (calls_.size() == 2 * kMostLookOps) {
        // Those in the middle belong to neither look.
        calls_.erase(calls_.begin() + kMostLookOps);
        opened_.clear();
    }
    if (kind == OpKind::open && block.result[i] >= 0) {
        opened_.push_back(handle);
    }
    // Who opens the file each time reads as far as it goes.
    const bool anywhere = std::find(opened_.begin(), opened_.end(), handle) != opened_.end();
    calls_.push_back({op, mixed(mixed(block.kind[i], path), anywhere ? 0 : static_cast<uint64_t>(block.offset[i]))});
}

void RepeatedLooks::works() {
    end_look();
    calls_.clear();
    opened_.clear();
    only_looks_ = false;
}

void RepeatedLooks::slept(uint64_t op, int64_t ns, TaskId child) {
    end_look();
    before_.assign(calls_.size() > kMostLookOps ? calls_.end() - kMostLookOps : calls_.begin(), calls_.end());
    current_ = {op, child, ns, 0, 0, 0, only_looks_ && calls_.size() <= kMostLookOps};
    asleep_ = true;
    only_looks_ = true;
    calls_.clear();
    opened_.clear();
    computed_ = 0;
}

/// What came after the last sleep is compared with what came before it.
void RepeatedLooks::end_look() {
    if (!std::exchange(asleep_, false) || calls_.empty()) {
        return;
    }
    const auto same = [](const Call& a, const Call& b) { return a.what == b.what; };
    for (size_t n = std::min({before_.size(), calls_.size(), kMostLookOps}); n > 0; --n) {
        const auto from = before_.end() - static_cast<std::ptrdiff_t>(n);
        if (std::equal(from, before_.end(), calls_.begin(), same)) {
            current_.since = before_.back().op + 1;
            current_.first = calls_.front().op;
            current_.last = calls_[n - 1].op;
            of_task_.sleeps.push_back(current_);
            of_task_.repeated.emplace_back(from->op, before_.back().op);
            return;
        }
    }
}

std::vector<uint64_t> sleeps_alone(const LogReader& log, const OpSelector& keep, TaskId task) {
    std::vector<uint64_t> sleeps;
    OpBlock block;
    for (const BlockInfo& where : log.blocks_of(task)) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            const Op op = block.row(i);
            // Its descriptors of files are its parent's, until it closes them.
            const bool works = info(kind).is(Trait::io) && kind != OpKind::close && kind != OpKind::dup &&
                               kind != OpKind::fcntl && log.tables().file_of(op) != 0 && keep.keeps(op);
            if (kind == OpKind::spawn || kind == OpKind::send || works) {
                return {};
            }
            if (kind == OpKind::wait && block.arg[i] == kWaitSleep) {
                sleeps.push_back(block.first + i);
            }
        }
    }
    return sleeps;
}

void LooksOfTask::drop_other_children(const LogReader& log, const OpSelector& keep) {
    size_t kept = 0;
    bool follows = true;
    for (size_t i = 0; i < sleeps.size(); ++i) {
        const bool sleeps_only = sleeps[i].child == 0 || !sleeps_alone(log, keep, sleeps[i].child).empty();
        follows = (follows || i == 0) && sleeps[i].follows;
        if (sleeps_only) {
            sleeps[kept] = sleeps[i];
            sleeps[kept].follows = follows;
            repeated[kept++] = repeated[i];
        }
        follows = sleeps_only;
    }
    sleeps.resize(kept);
    repeated.resize(kept);
}

LooksOfTask RepeatedLooks::take() {
    end_look();
    calls_.clear();
    opened_.clear();
    before_.clear();
    current_ = {};
    child_ = 0;
    computed_ = 0;
    only_looks_ = true;
    return std::exchange(of_task_, {});
}

}  // namespace reprise
