// SPDX-License-Identifier: MIT
// The what-if logs that a replay runs in place of the recorded one: several data-parallel copies of the job, other
// step times of its accelerators.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "transform/accelerator_model.h"

namespace reprise {

/// How many copies of the recorded job run side by side.
struct GpuCopies {
    static constexpr uint32_t kMost = 1024;
    uint32_t count = 1;
    bool in_step = true;  // all wait for the slowest after each step, as an all-reduce makes them

    /// `8`, or `8:free` for copies that do not wait for each other. Throws Error (usage).
    static GpuCopies parse(std::string_view text);
};

struct VariantOptions {
    GpuCopies copies;
    std::optional<GpuModel> model;
    bool sync_steps = false;  // recorded ranks, and their copies, wait for the slowest after each step

    bool changes_anything() const { return copies.count != 1 || model.has_value() || sync_steps; }
};

/// The log that `options` make of `log`, which must outlive it: a log like any other, but made block by block as it is
/// read; nothing is written. Copy 0 comes first and is the recorded job; the tables' rows of copy k follow those of
/// copy k-1. What it did is in the counters. Reads the log twice; memory grows with the tables and with the
/// accelerators' steps. Throws Error where the log has no accelerator for the model, or no ranks, or no steps of one,
/// to synchronise.
LogReader make_variant(const LogReader& log, const VariantOptions& options);

}  // namespace reprise
