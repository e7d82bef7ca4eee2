// SPDX-License-Identifier: MIT
// A pause between what sets a run up and its start.
#pragma once

#include <cstdint>

namespace reprise {

/// A limit in steps lets through at once what a pause between two requests has saved: Linux's block throttle until its
/// slice ends, one to two tenths of a second after the last request (blk-throttle.c; measured on Linux 6.18). What
/// setting up reads of inodes and data would have a run begin with more than the job had, which began at rest.
class SetupRest {
public:
    static constexpr int64_t kRest = 200'000'000;  // ns

    /// `wanted`: the run uses storage.
    explicit SetupRest(bool wanted) : wanted_(wanted) {}
    ~SetupRest();
    SetupRest(const SetupRest&) = delete;
    SetupRest& operator=(const SetupRest&) = delete;

    /// Whether the run may start. The pause begins with the first call, and only where this process has read from a
    /// device since it began or the last run ended.
    bool over(int64_t now);

private:
    bool wanted_;
    int64_t until_ = 0;
};

}  // namespace reprise
