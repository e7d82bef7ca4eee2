// SPDX-License-Identifier: MIT
#include "replay/engine/read_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

// Smaller ones would be faster yet by 3 %, and need more mappings, of which a process has 65,530.
constexpr size_t kRepeated = size_t{2} << 20, kWorthIt = 2 * kRepeated, kMostParts = 256;

}  // namespace

ReadBuffer::ReadBuffer(size_t bytes, bool small) : bytes_((bytes + 4095) & ~size_t{4095}), memory_(bytes_) {
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw machine_error("no memory for a buffer of " + std::to_string(bytes_) + " bytes",
                            "free memory, or raise its limit (ulimit -v)");
    }
    data_ = static_cast<std::byte*>(at);
    if (small && bytes_ > kWorthIt && bytes_ <= kMostParts * kRepeated) {
        repeat();
    }
    // A forked process has engines of its own; in a chain of forks each would inherit the buffers of all before it.
    madvise(data_, bytes_, MADV_DONTFORK);
    data_[0] = std::byte{0};  // the first page is there before the first op
}

ReadBuffer::~ReadBuffer() { munmap(data_, bytes_); }

/// Where the machine refuses it, the rest stays memory of its own.
void ReadBuffer::repeat() {
    const UniqueFd memory(memfd_create("reprise-reads", MFD_CLOEXEC));
    if (!memory.valid() || ftruncate(memory.get(), kRepeated) != 0) {
        return;
    }
    size_t done = 0;
    while (done < bytes_) {
        const size_t part = std::min(kRepeated, bytes_ - done);
        if (mmap(data_ + done, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, memory.get(), 0) ==
            MAP_FAILED) {
            break;
        }
        done += part;
    }
    memory_ = bytes_ - done + std::min(done, kRepeated);
}

}  // namespace reprise
