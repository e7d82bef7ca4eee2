// SPDX-License-Identifier: MIT
// The POSIX engine where a what-if changes how files are got at (replay/plan/access.h): the ops it names are performed
// otherwise, and have the result that the recorded call would have here. All others are the POSIX engine's.
#pragma once

#include <unordered_map>
#include <vector>

#include "replay/engine/posix.h"
#include "replay/plan/access.h"

namespace reprise {

class ChangedAccess : public PosixEngine {
public:
    /// `context.plan.access` and the process's AccessState are there.
    explicit ChangedAccess(const EngineContext& context);
    ChangedAccess(const ChangedAccess&) = delete;
    ChangedAccess& operator=(const ChangedAccess&) = delete;

    int64_t submit(const OpBlock& b, size_t i);

private:
    /// Reads and writes
    int64_t read(const OpBlock& b, size_t i, OpKind kind);
    int64_t read_direct(const OpBlock& b, size_t i, OpKind kind, int fd);
    int64_t read_blocks(int fd, int64_t offset, int64_t asked, int64_t expected, int64_t alignment);
    int64_t read_mapped(const OpBlock& b, size_t i, OpKind kind, int fd);
    AccessState::Mapped mapped(HandleId handle, int fd, int64_t end);
    int64_t alignment(HandleId handle, int fd);
    void refuse(HandleId handle, int fd);
    int64_t write(const OpBlock& b, size_t i, OpKind kind);
    int64_t copy(const OpBlock& b, size_t i);
    int64_t request(const OpBlock& b, size_t i);
    /// Instances
    int64_t open(const OpBlock& b, size_t i);
    int64_t close(const OpBlock& b, size_t i);
    int64_t exec(const OpBlock& b, size_t i);
    void prefetch(int fd);
    void unmap(HandleId handle);
    /// Mappings that are read
    int64_t map(const OpBlock& b, size_t i);
    int64_t on_map(const OpBlock& b, size_t i, OpKind kind, const AccessState::Source& source);
    int64_t touch(const OpBlock& b, size_t i, const AccessState::Source& source);
    int64_t bring(const AccessState::Source& source, int64_t at, int64_t bytes);
    bool source_of(uint32_t map, AccessState::Source* source) const;

    const AccessPlan& access_;
    AccessState& state_;
    const TaskId task_;
    std::unordered_map<uint32_t, RunCursor> cursors_;  // by mapping
};

}  // namespace reprise
