// SPDX-License-Identifier: MIT
#include "replay/run/feed.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

#include "formats/support/error.h"

namespace reprise {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void BlockDecoder::request(BlockFeed& feed) {
    const std::lock_guard guard(mutex_);
    if (!started_) {
        started_ = true;
        std::thread([this] { run(); }).detach();
    }
    feed.spare_ = BlockFeed::Spare::asked_for;
    queue_.push_back(&feed);
    wanted_.notify_one();
}

void BlockDecoder::run() {
    // The helper needs no descriptors. Without this the process would count as one whose threads share them, and every
    // call of a single recorded thread would pay for it (about 5 % of a cached pread).
    if (unshare(CLONE_FILES) == 0) {
        syscall(SYS_close_range, 0u, ~0u, 0u);
    }
    std::unique_lock lock(mutex_);
    for (;;) {
        wanted_.wait(lock, [&] { return !queue_.empty(); });
        BlockFeed* const feed = queue_.front();
        queue_.pop_front();
        lock.unlock();
        BlockFeed::Spare outcome = BlockFeed::Spare::ready;
        try {
            feed->decode(feed->spare_index_, feed->spare_block_);
        } catch (const std::exception& error) {
            feed->broken_ = error.what();
            outcome = BlockFeed::Spare::broken;
        }
        lock.lock();
        feed->spare_ = outcome;
        decoded_.notify_all();
    }
}

BlockFeed::BlockFeed(const LogReader& log, const std::vector<BlockInfo>& blocks, SpoolRow* rows, BlockDecoder* decoder)
    : log_(log), blocks_(blocks), rows_(rows), decoder_(decoder) {}

void BlockFeed::decode(size_t index, OpBlock& into) {
    const BlockInfo& where = blocks_[index];
    log_.decode(where, into);
    log_.forget(where);
    if (index + 2 >= blocks_.size()) {
        into.drop_scratch();  // mostly the last one here; processes that this one forks would inherit it
    }
    // Page faults on the rows are taken here rather than between two ops.
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t from = reinterpret_cast<uintptr_t>(rows_ + where.first) & ~(page - 1);
    const uintptr_t to = reinterpret_cast<uintptr_t>(rows_ + where.first + where.ops);
    madvise(reinterpret_cast<void*>(from), to - from, MADV_POPULATE_WRITE);
}

void BlockFeed::prepare() {
    if (next_ == 0 && spare_ == Spare::empty && !blocks_.empty()) {
        decode(0, spare_block_);
        spare_ = Spare::ready;
        spare_index_ = 0;
    }
}

const OpBlock* BlockFeed::next() {
    if (next_ == blocks_.size()) {
        return nullptr;
    }
    bool have = false;
    if (decoder_ != nullptr) {
        std::unique_lock lock(decoder_->mutex_);
        decoder_->decoded_.wait(lock, [&] { return spare_ != Spare::asked_for; });
    }
    if (spare_ == Spare::broken) {
        throw Error(ExitCode::bad_input, "", broken_, "");
    }
    have = spare_ == Spare::ready && spare_index_ == next_;
    if (have) {
        std::swap(current_, spare_block_);
    } else {
        decode(next_, current_);
    }
    spare_ = Spare::empty;
    ++next_;
    if (next_ < blocks_.size() && decoder_ != nullptr) {
        spare_index_ = next_;
        decoder_->request(*this);
    }
    return &current_;
}

}  // namespace reprise
