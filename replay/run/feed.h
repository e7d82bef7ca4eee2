// SPDX-License-Identifier: MIT
// The decoding of blocks ahead of the tasks of one worker process, so that the border between two blocks costs
// nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/run/shared.h"

namespace reprise {

class BlockFeed;

/// One helper thread; begun with the first request. Never destroyed: a worker process ends by _exit.
class BlockDecoder {
public:
    BlockDecoder() = default;
    BlockDecoder(const BlockDecoder&) = delete;
    BlockDecoder& operator=(const BlockDecoder&) = delete;

private:
    friend class BlockFeed;
    void request(BlockFeed& feed);
    void run();

    std::mutex mutex_;
    std::condition_variable wanted_, decoded_;
    std::deque<BlockFeed*> queue_;
    bool started_ = false;
};

/// The blocks of one task, in order, with room for the results of each made ready.
class BlockFeed {
public:
    /// `rows`: where the result of op 0 of the task goes. `decoder` may be null: decodes when asked.
    BlockFeed(const LogReader& log, const std::vector<BlockInfo>& blocks, SpoolRow* rows, BlockDecoder* decoder);

    /// Decodes the first block, so that next() returns at once.
    void prepare();
    /// nullptr after the last. The block before it is gone. Throws Error (bad_input).
    const OpBlock* next();

private:
    friend class BlockDecoder;
    enum class Spare : uint8_t { empty, asked_for, ready, broken };
    void decode(size_t index, OpBlock& into);

    const LogReader& log_;
    const std::vector<BlockInfo>& blocks_;
    SpoolRow* rows_;
    BlockDecoder* decoder_;
    OpBlock current_, spare_block_;
    size_t next_ = 0;             // index of the block that next() returns
    Spare spare_ = Spare::empty;  // guarded by the decoder's mutex
    size_t spare_index_ = 0;
    std::string broken_;
};

}  // namespace reprise
