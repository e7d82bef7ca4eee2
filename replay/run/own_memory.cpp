// SPDX-License-Identifier: MIT
#include "replay/run/own_memory.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/support/sanitized.h"
#include "replay/engine/syscalls.h"

namespace reprise {
namespace {

// Sanitizers watch the memory that would be exchanged.
#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr size_t kMostRanges = 256, kMostAreas = 1024;
constexpr size_t kMapsBytes = size_t{512} << 10;
constexpr size_t kLargest = size_t{8} << 20;  // copying more costs more than the tie

struct Range {
    uintptr_t from = 0, to = 0;
};
struct Area : Range {
    bool writable = false;
};

/// What may change on the way, outside the memory that is exchanged: while that is copied, it must stay as it is.
struct Workspace {
    std::array<Area, kMostAreas> areas;
    size_t area_count = 0;
    std::array<char, kMapsBytes> maps;
};

std::array<Range, kMostRanges> segments;  // data of program and libraries, whole pages
size_t segment_count = 0;

int add_data(dl_phdr_info* info, size_t, void*) {
    constexpr uintptr_t kPage = 4096;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0 || segment_count == kMostRanges) {
            continue;
        }
        const uintptr_t from = info->dlpi_addr + segment.p_vaddr;
        segments[segment_count++] = {from & ~(kPage - 1), (from + segment.p_memsz + kPage - 1) & ~(kPage - 1)};
    }
    return 0;
}

/// Reads a hexadecimal number, and the character behind it.
uintptr_t hexadecimal(const char*& at) {
    uintptr_t value = 0;
    for (;; ++at) {
        const char c = *at;
        if (c >= '0' && c <= '9') {
            value = value * 16 + static_cast<uintptr_t>(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value * 16 + static_cast<uintptr_t>(c - 'a' + 10);
        } else {
            ++at;
            return value;
        }
    }
}

/// "7f00-7f10 rw-p ..."
void add_area(Workspace& work, const char* line) {
    Area area;
    area.from = hexadecimal(line);
    area.to = hexadecimal(line);
    area.writable = line[1] == 'w';
    if (line[0] != 'r' || line[2] != '-' || line[3] != 'p' || area.to - area.from > kLargest ||
        work.area_count == kMostAreas) {
        return;
    }
    for (size_t i = 0; i < segment_count; ++i) {
        if (area.from >= segments[i].from && area.to <= segments[i].to) {
            work.areas[work.area_count++] = area;
            return;
        }
    }
}

void find_areas(Workspace& work) {
    const auto fd = static_cast<int>(sys::aside(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return;
    }
    size_t length = 0;
    for (;;) {
        const int64_t got = sys::aside(SYS_read, fd, work.maps.data() + length, work.maps.size() - length);
        if (got <= 0) {
            break;
        }
        length += static_cast<size_t>(got);
    }
    sys::aside(SYS_close, fd);
    const char* const end = work.maps.data() + length;
    for (const char* line = work.maps.data(); line < end;) {
        const auto* next = static_cast<const char*>(std::memchr(line, '\n', static_cast<size_t>(end - line)));
        if (next == nullptr) {
            break;  // a line that is cut
        }
        add_area(work, line);
        line = next + 1;
    }
}

bool failed(int64_t result) { return result < 0 && result > -4096; }

/// Nothing is called between the copy and its exchange but the kernel.
void exchange(const Area& area) {
    const size_t bytes = area.to - area.from;
    const int64_t fresh =
        sys::aside(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(fresh)) {
        return;
    }
    std::memcpy(reinterpret_cast<void*>(fresh), reinterpret_cast<const void*>(area.from), bytes);
    if (!area.writable) {
        sys::aside(SYS_mprotect, fresh, bytes, PROT_READ);
    }
    if (failed(sys::aside(SYS_mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, area.from))) {
        sys::aside(SYS_munmap, fresh, bytes);
    }
}

}  // namespace

void give_back_memory() { ::malloc_trim(0); }

void note_program_data() {
    segment_count = 0;
    dl_iterate_phdr(add_data, nullptr);
}

void own_memory() {
    if (kSanitized) {
        return;
    }
    void* const at =
        ::mmap(nullptr, sizeof(Workspace), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return;
    }
    auto& work = *static_cast<Workspace*>(at);  // zeros are its initial state
    find_areas(work);
    for (size_t i = 0; i < work.area_count; ++i) {
        exchange(work.areas[i]);
    }
    ::munmap(at, sizeof(Workspace));
}

}  // namespace reprise
