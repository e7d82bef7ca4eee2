// SPDX-License-Identifier: MIT
// The POSIX engine of a verified replay: what it writes tells who wrote it and where it belongs, and what it reads is
// compared, byte by byte, with what should be there. Its times mean nothing.
#pragma once

#include <cstdint>

#include "replay/content/verify_plan.h"
#include "replay/engine/posix.h"

namespace reprise {

class VerifyingEngine : public PosixEngine {
public:
    /// `context.plan.verify` is there. Throws Error (machine) where there is no memory for the buffer.
    explicit VerifyingEngine(const EngineContext& context);
    ~VerifyingEngine();
    VerifyingEngine(const VerifyingEngine&) = delete;
    VerifyingEngine& operator=(const VerifyingEngine&) = delete;

    int64_t submit(const OpBlock& b, size_t i);

private:
    int64_t write(const OpBlock& b, size_t i);
    void check(const OpBlock& b, size_t i, uint64_t bytes);
    void report(const VerifyRow& row) const;

    const VerifyPlan& verify_;
    const TaskId task_;
    std::byte* own_ = nullptr;
    size_t own_bytes_ = 0;
    VerifyRow sums_;
    std::vector<std::byte> wanted_;
};

}  // namespace reprise
