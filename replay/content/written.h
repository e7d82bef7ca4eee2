// SPDX-License-Identifier: MIT
// The bytes that a verified replay writes: of each write others, a function of who wrote them and of where they lie, so
// that any byte of a file can be checked by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/oplog/op.h"

namespace reprise {

/// Number that stands for one write: no two ops have the same one.
uint64_t write_seed(TaskId task, uint64_t op);

/// Bytes [offset, offset + out.size()) of the content with that number; any offset, at about the speed of memory.
void fill_written(uint64_t seed, uint64_t offset, std::span<std::byte> out);

/// Other bytes for each `key`, for the time that memory takes: they do not compress, and no two blocks are alike.
void fill_noise(uint64_t key, std::span<std::byte> out);

}  // namespace reprise
