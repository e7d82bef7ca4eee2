// SPDX-License-Identifier: MIT
// What the collector inside a job (capture/cupti) leaves for `reprise capture --gpu`: one file per process, a head and
// records. Plain structs, so that the collector needs nothing of the tool but this header.
#pragma once

#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#define GPU_BUFFER_MAGIC "RPGPU\1\0"
#define GPU_BUFFER_SUFFIX ".gpu"
#define GPU_BUFFER_NONE 0xffffffffu

/// NOLINTBEGIN(readability-identifier-naming): plain C names
/// Times of records are CLOCK_MONOTONIC, ns, as the recorder's.
struct gpu_file_head {
    char magic[8];
    uint32_t bytes;  // of this head
    uint32_t pid;
    int64_t monotonic, realtime;  // of one moment
};

enum gpu_record_type {
    GPU_RECORD_KERNEL = 1,
    GPU_RECORD_COPY = 2,
    GPU_RECORD_FILL = 3,
    GPU_RECORD_CALL = 4,  // of the host
    GPU_RECORD_SYNC = 5,  // the stream that a call waited for
    GPU_RECORD_LOST = 6,  // `correlation` records that CUPTI dropped
};

struct gpu_record {
    uint32_t bytes;  // with the name, a multiple of 8
    uint32_t type;
    int64_t begin, end;
    uint32_t device, stream;  // GPU_BUFFER_NONE: not known, or all
    uint32_t correlation;     // 0: none
    uint32_t tid;             // of a call
    uint32_t name_bytes;
    uint32_t pad;
    // the name
};
// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
#include <filesystem>

#include "formats/import/profile/kineto_events.h"

namespace reprise {

/// Adds the events of all files *.gpu in a folder; times become those of the wall clock. A file that was cut is read up
/// to its last whole record, and counted as such; one that is none is malformed. Returns how many files there were.
uint64_t read_gpu_buffers(const std::filesystem::path& folder, kineto::Events& into);

}  // namespace reprise
#endif
