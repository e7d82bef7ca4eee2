// SPDX-License-Identifier: MIT
// The compiled BPF objects, as bytes of this program.
#include "capture/bpf_object.h"

// REPRISE_BPF_OBJECT and REPRISE_RAW_BPF_OBJECT are their file names, set by the build.
// NOLINTNEXTLINE
asm(".section .rodata\n"
    ".balign 16\n"
    "reprise_bpf_begin:\n"
    ".incbin \"" REPRISE_BPF_OBJECT
    "\"\n"
    "reprise_bpf_end:\n"
    ".byte 0\n"
    ".balign 16\n"
    "reprise_raw_bpf_begin:\n"
    ".incbin \"" REPRISE_RAW_BPF_OBJECT
    "\"\n"
    "reprise_raw_bpf_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" const unsigned char reprise_bpf_begin[];
extern "C" const unsigned char reprise_bpf_end[];
extern "C" const unsigned char reprise_raw_bpf_begin[];
extern "C" const unsigned char reprise_raw_bpf_end[];

namespace reprise {

std::span<const unsigned char> bpf_object(bool raw_tracepoints) {
    if (raw_tracepoints) {
        return {reprise_raw_bpf_begin, reprise_raw_bpf_end};
    }
    return {reprise_bpf_begin, reprise_bpf_end};
}

}  // namespace reprise
