// SPDX-License-Identifier: MIT
// The bytes that prepared files hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace reprise {

/// Unit in which content is generated; any unit can be made without the ones before it.
inline constexpr size_t kContentUnit = size_t{64} << 10;

/// Number that stands for a file: a hash of its path relative to the root.
uint64_t content_seed(std::string_view relative_path);

/// Bytes [offset, offset + out.size()) of the random content of a file. They pass for noise: they do not compress, and
/// no two units of any files are alike, so that storage cannot fold them. A function of seed and offset only.
/// `offset` must be a multiple of kContentUnit.
void fill_random(uint64_t seed, uint64_t offset, std::span<std::byte> out);

}  // namespace reprise
