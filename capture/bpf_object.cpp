// The compiled BPF object, as bytes of this program.
// SPDX-License-Identifier: MIT
#include "capture/bpf_object.h"

// REPRISE_BPF_OBJECT is its file name, set by the build.
// NOLINTNEXTLINE
asm(".section .rodata\n"
    ".balign 16\n"
    "reprise_bpf_begin:\n"
    ".incbin \"" REPRISE_BPF_OBJECT
    "\"\n"
    "reprise_bpf_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" const unsigned char reprise_bpf_begin[];
extern "C" const unsigned char reprise_bpf_end[];

namespace reprise {

std::span<const unsigned char> bpf_object() { return {reprise_bpf_begin, reprise_bpf_end}; }

}  // namespace reprise
