// SPDX-License-Identifier: MIT
// How long the calls of a log take in a prediction.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "formats/oplog/oplog.h"
#include "replay/plan/plan.h"
#include "replay/predict/virtual_storage.h"

namespace reprise {

class VirtualCalls {
public:
    /// `plan` and `model` outlive it.
    VirtualCalls(const Plan& plan, const StorageModel& model, bool warm)
        : plan_(plan), tables_(plan.log->tables()), model_(model), warm_(warm), storage_(model, warm) {}

    /// False for what a replay does not perform either: it takes its recorded time.
    bool performs(const OpBlock& b, size_t i) const;
    /// When a call that begins at `now` is over. In the order of the begins of all tasks.
    int64_t perform(const OpBlock& b, size_t i, int64_t now);

    const VirtualStorage& storage() const { return storage_; }
    uint64_t bytes_read = 0, bytes_written = 0;

private:
    FileId file_of(uint32_t handle) const;
    int64_t size_of(FileId file) const;
    int64_t read(FileId file, int64_t offset, int64_t bytes, int64_t now);
    int64_t touch(const OpBlock& b, size_t i, int64_t now);
    int64_t asynchronous(const OpBlock& b, size_t i, int64_t now);

    const Plan& plan_;
    const Tables& tables_;
    const StorageModel& model_;
    const bool warm_;
    VirtualStorage storage_;
    std::unordered_map<uint32_t, std::pair<FileId, int64_t>>
        maps_;  // of each mapping: its file and where it begins there
};

}  // namespace reprise
