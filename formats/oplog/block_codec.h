// SPDX-License-Identifier: MIT
// The ops of a section to bytes and back. Encoder and decoder are files of their own and share one table
// of predictions, block_model.h; formats/FORMAT.md explains them by an example.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"
#include "formats/support/compress.h"

namespace reprise {

/// The tables a block refers to: decoded ids must be below their sizes. An op that makes an instance takes its file and
/// flags from the instance's row.
struct TableView {
    size_t strings = 0, files = 0, tasks = 0;
    std::span<const HandleRow> handles;
};

/// Whether the op that makes this instance takes file and flags from the row. Inherited instances
/// have no such op, and their rows may change.
inline bool repeated_by_ops(const HandleRow& row) { return !row.inherited; }

/// A stretch of one task's ops within a stored section.
struct Run {
    std::span<const std::vector<Op>> chunks;  // none empty
};
struct RunInfo {
    uint32_t ops = 0;
    int64_t begin = 0;  // ns, a multiple of the unit
};

class BlockCodec {
public:
    /// Encodes runs of up to kBlockOps ops in all, times rounded down to `unit_ns`. Op spans must be valid.
    class Encoder {
    public:
        explicit Encoder(int level);
        ~Encoder();
        void encode(std::span<const Run> runs, uint32_t unit_ns, std::span<const HandleRow> handles, Bytes& out);

    private:
        struct Impl;
        std::unique_ptr<Impl> impl_;
    };

    /// Decodes all runs, one after the other. Throws Corrupt for anything that is not exactly these runs within the
    /// table sizes.
    static void decode(ByteView payload, uint32_t unit_ns, std::span<const RunInfo> runs, const TableView& tables,
                       OpBlock& into);
};

}  // namespace reprise
