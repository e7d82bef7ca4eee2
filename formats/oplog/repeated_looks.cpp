// SPDX-License-Identifier: MIT
#include "formats/oplog/repeated_looks.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "formats/oplog/op_fields.h"
#include "formats/oplog/tables.h"

namespace reprise {
namespace {

constexpr int64_t kMostLookRead = 64 << 10;              // bytes, by one call of it
constexpr int64_t kMostLookTime = 1'000'000;             // ns, of computing beside a look; or a tenth of the sleep
constexpr int64_t kLongestLookSleep = int64_t{1} << 42;  // ns, an hour; malformed logs have longer ones

}  // namespace

bool makes_new_name(const OpBlock& block, size_t i) {
    constexpr int64_t kNew = O_CREAT | O_EXCL;
    const auto kind = static_cast<OpKind>(block.kind[i]);
    return (kind == OpKind::open && (block.flags[i] & kNew) == kNew) || kind == OpKind::mkdir ||
           kind == OpKind::symlink || kind == OpKind::link;
}

namespace {

bool is_look(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    if (makes_new_name(block, i)) {
        return block.result[i] == -EEXIST;
    }
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
    const bool on_child = kind == OpKind::wait && wait_class(block.arg[i]) == kWaitChild;
    if (on_child && (child_ != 0 || block.arg[i] == kWaitChild + kWaitLooked)) {
        return;  // for the exec of a child made by vfork, or whether one has ended
    }
    if (child_ != 0 && kind == OpKind::join && block.result[i] >= 0) {
        if (block.peer[i] == child_) {
            slept(op, std::clamp<int64_t>(block.duration[i], 0, kLongestLookSleep), child_);
        }
        return;  // else of another one, which ended meanwhile
    }
    const bool takes_lock = makes_new_name(block, i) && block.result[i] >= 0;
    if (!is_look(block, i) && !takes_lock) {
        works();
        return;
    }
    computed_ = 0;
    const HandleId handle = block.handle[i];
    const FileId file =
        block.file[i] == 0 && handle < tables_.handles.size() ? tables_.handles[handle].file : block.file[i];
    const StringId path = file < tables_.files.size() ? tables_.files[file].path : 0;
    if (kind == OpKind::open && block.result[i] >= 0) {
        opened_[opens_++ % kMostLookOps] = handle;
    }
    // Who opens the file each time reads as far as it goes.
    const bool anywhere = handle != 0 && std::find(opened_.begin(), opened_.end(), handle) != opened_.end();
    const Call call{op, kind, path, anywhere ? 0 : block.offset[i]};
    if (asleep_ && calls_ < kMostLookOps) {
        after_[calls_] = call;
    }
    recent_[calls_++ % kMostLookOps] = call;
    if (takes_lock) {
        works();
    }
}

void RepeatedLooks::works() {
    end_look();
    forget();
    only_looks_ = false;
}

void RepeatedLooks::forget() {
    calls_ = opens_ = 0;
    opened_ = {};
    computed_ = 0;
}

void RepeatedLooks::slept(uint64_t op, int64_t ns, TaskId child) {
    end_look();
    before_calls_ = std::min(calls_, kMostLookOps);
    for (size_t i = 0; i < before_calls_; ++i) {
        before_[i] = recent_[(calls_ - before_calls_ + i) % kMostLookOps];
    }
    current_ = {op, child, ns, 0, 0, 0, only_looks_ && calls_ <= kMostLookOps};
    asleep_ = true;
    only_looks_ = true;
    forget();
}

/// What came after the last sleep is compared with what came before it.
void RepeatedLooks::end_look() {
    if (!std::exchange(asleep_, false)) {
        return;
    }
    for (size_t n = std::min(before_calls_, calls_); n > 0; --n) {
        const Call* const from = &before_[before_calls_ - n];
        if (std::equal(from, from + n, after_.begin())) {
            current_.since = before_[before_calls_ - 1].op + 1;
            current_.first = after_.front().op;
            current_.last = after_[n - 1].op;
            of_task_.sleeps.push_back(current_);
            of_task_.repeated.emplace_back(from->op, before_[before_calls_ - 1].op);
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
    forget();
    before_calls_ = 0;
    current_ = {};
    child_ = 0;
    only_looks_ = true;
    return std::exchange(of_task_, {});
}

}  // namespace reprise
