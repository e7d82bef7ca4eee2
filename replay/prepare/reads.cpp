// SPDX-License-Identifier: MIT
#include "replay/prepare/reads.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

constexpr int64_t kDirect = 040000;  // O_DIRECT of the recording's machine

uint64_t not_negative(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

class ReadGatherer {
public:
    ReadGatherer(const LogReader& log, const std::function<bool(FileId)>& wanted)
        : log_(log), tables_(log.tables()), reads_(tables_.files.size()), wanted_(tables_.files.size()) {
        for (FileId file = 1; file < wanted_.size(); ++file) {
            wanted_[file] = wanted(file);
        }
    }

    std::vector<RangeSet> run() {
        std::vector<BlockInfo> with_touches;
        OpBlock block;
        for (const BlockInfo& where : log_.blocks()) {
            log_.decode(where, block);
            if (first_pass(block)) {
                with_touches.push_back(where);
            }
            log_.forget(where);
        }
        // A mapping may be made in a block behind that of its touches: by another task.
        for (const BlockInfo& where : with_touches) {
            log_.decode(where, block);
            second_pass(block);
            log_.forget(where);
        }
        return std::move(reads_);
    }

private:
    /// Whether the block touches mappings.
    bool first_pass(const OpBlock& block) {
        bool touches = false;
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            const OpInfo& row = info(kind);
            if (kind == OpKind::touch) {
                touches = true;
            } else if (kind == OpKind::mmap && block.handle[i] != 0 && block.result[i] >= 0) {
                mappings_[block.map[i]] = {file_of(block.handle[i]), not_negative(block.offset[i])};
            } else if (row.is(Trait::submits)) {
                const AsyncRequest asked = async_request(block, i);
                if (asked.reads()) {
                    add(file_through_cache(block.handle[i]), not_negative(asked.offset), not_negative(asked.size));
                }
            } else if (row.is(Trait::reads)) {
                add(file_through_cache(block.handle[i]), not_negative(block.offset[i]), not_negative(block.result[i]));
            }
        }
        return touches;
    }

    void second_pass(const OpBlock& block) {
        for (size_t i = 0; i < block.count(); ++i) {
            if (static_cast<OpKind>(block.kind[i]) != OpKind::touch || block.result[i] < 0) {
                continue;
            }
            const auto found = mappings_.find(block.map[i]);
            if (found == mappings_.end()) {
                continue;
            }
            const auto& [file, offset] = found->second;
            uint64_t at = offset + not_negative(block.offset[i]);
            const std::span<const int64_t> list = block.list_of(i);
            if (list.empty()) {
                add(file, at, not_negative(block.size[i]));
            }
            for (size_t n = 0; n + 1 < list.size(); n += 2) {
                at += not_negative(list[n]);
                add(file, at, not_negative(list[n + 1]));
                at += not_negative(list[n + 1]);
            }
        }
    }

    FileId file_of(HandleId handle) const { return handle < tables_.handles.size() ? tables_.handles[handle].file : 0; }
    /// 0 for direct I/O.
    FileId file_through_cache(HandleId handle) const {
        const bool direct = handle < tables_.handles.size() && (tables_.handles[handle].flags & kDirect) != 0;
        return direct ? 0 : file_of(handle);
    }
    void add(FileId file, uint64_t from, uint64_t bytes) {
        if (file != 0 && file < wanted_.size() && wanted_[file] && bytes <= UINT64_MAX - from) {
            reads_[file].add(from, from + bytes);
        }
    }

    const LogReader& log_;
    const Tables& tables_;
    std::vector<RangeSet> reads_;
    std::vector<bool> wanted_;
    struct Mapped {
        FileId file = 0;
        uint64_t offset = 0;
    };
    std::unordered_map<uint32_t, Mapped> mappings_;
};

}  // namespace

std::vector<RangeSet> gather_reads(const LogReader& log, const std::function<bool(FileId)>& wanted) {
    return ReadGatherer(log, wanted).run();
}

}  // namespace reprise
