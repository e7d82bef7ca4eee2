// SPDX-License-Identifier: MIT
// The BPF programs as compiled at build time.
#pragma once

#include <span>

namespace reprise {

/// An ELF file: the programs as tp_btf, or as raw tracepoints.
std::span<const unsigned char> bpf_object(bool raw_tracepoints);

}  // namespace reprise
