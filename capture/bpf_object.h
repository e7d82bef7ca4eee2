// Owns the BPF programs as compiled at build time.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

namespace reprise {

/// An ELF file.
std::span<const unsigned char> bpf_object();

}  // namespace reprise
