// SPDX-License-Identifier: MIT
// What the reads of a verified replay should return, known before it begins: by the order of the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "replay/content/file_model.h"
#include "replay/plan/plan.h"

namespace reprise {

struct VerifyPlan {
    std::vector<uint64_t> prepared;  // by handle: content_seed() of its file; 0: not known
    /// By key(): what a read should return where that is not what was prepared; empty: it is not checked.
    std::unordered_map<uint64_t, std::vector<Extent>> reads;
    int findings = -1;  // descriptor to which engines append VerifyRows

    static uint64_t key(TaskId task, uint64_t op) { return uint64_t{task} << 40 | op; }
    /// What [from, to) of a read should be; empty: not checked.
    std::vector<Extent> expected(TaskId task, uint64_t op, HandleId handle, uint64_t from, uint64_t to) const;
};

/// What an engine has to say: bytes that a read returned and that are not what they should be, or, with `op` kSums,
/// what a task checked.
struct VerifyRow {
    static constexpr uint64_t kSums = UINT64_MAX;
    TaskId task = 0;
    HandleId handle = 0;
    uint64_t op = 0;
    uint64_t offset = 0, bytes = 0;     // in the file; kSums: bytes that were checked
    uint64_t reads = 0, unchecked = 0;  // kSums
    uint8_t want = 0, got = 0;          // the first of these bytes
};

/// Adds to a model what lies in the root before the first op.
using BeginModel = std::function<void(FileModel&)>;

/// Reads the whole log once.
VerifyPlan plan_verification(const Plan& plan, const BeginModel& begin);

}  // namespace reprise
