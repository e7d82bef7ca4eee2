// SPDX-License-Identifier: MIT
// Carries out what a survey found: removing, renaming back, making directories and files, filling them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "formats/oplog/contents.h"
#include "replay/prepare/layout.h"
#include "replay/prepare/prepare_peers.h"
#include "replay/prepare/survey.h"

namespace reprise {

struct WriteJob {
    const Layout& layout;
    const Survey& survey;
    int root;                    ///< descriptor; everything happens beneath it
    std::string_view root_name;  ///< for messages
    Content content;
    const Contents& contents;  ///< how far files compress, for Content::recorded
    bool reset;
    unsigned threads;
    PreparePeers* peers = nullptr;  ///< none: everything is this process's to do
};

/// Shared with whoever watches; `stop` may be set from a signal.
struct WriteState {
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> bytes{0};    ///< of data written; what was written beside it into the edges of holes is gone
    std::atomic<uint64_t> holes{0};    ///< bytes that files have between their data, of files that were filled
    std::atomic<uint64_t> entries{0};  ///< made, remade, refilled or removed
    Examples attributes_refused;  ///< files that the file system gave none of their extended attributes, or not all
    Examples left;                ///< directories the log made that hold things it does not name: not removed
};

/// The first step of a reset: removes the files that the log makes and those that are to be made anew, so that a full
/// file system has room for the rest. Stops and throws as write_layout().
void free_room(const WriteJob& job, WriteState& state, const std::function<void()>& tick);

/// Makes everything and syncs it. `tick` is called on this thread while others work. Where `stop` was set, returns
/// early with nothing half-written left. Throws Error (machine), likewise; what was done stays, so that it can go on.
void write_layout(const WriteJob& job, WriteState& state, const std::function<void()>& tick);

}  // namespace reprise
