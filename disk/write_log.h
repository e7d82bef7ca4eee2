// SPDX-License-Identifier: MIT
// The writes that a disk was given, in their order: what lay on it at any moment follows from its image before them and
// from as many of them as had been made by then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "formats/support/unique_fd.h"

namespace reprise {

struct DiskWrite {
    enum class Kind : uint64_t {
        write = 1,
        zero,   // without data
        flush,  // everything before it is on the medium
    };
    Kind kind = Kind::write;
    uint64_t offset = 0, bytes = 0;
    int64_t arrived = 0;   // wall clock, ns, before it was made
    uint64_t data_at = 0;  // in the log
};

/// Appends; from one thread at a time.
class WriteLogWriter {
public:
    /// Throws Error (machine).
    explicit WriteLogWriter(const std::filesystem::path& path);
    /// 0 or an errno. `data`: of writes.
    int add(DiskWrite write, std::span<const std::byte> data);

private:
    UniqueFd file_;
};

class WriteLog {
public:
    /// Throws Error (bad_input) where it is none. What a killed writer left of its last record is left out.
    explicit WriteLog(const std::filesystem::path& path);
    const std::vector<DiskWrite>& writes() const { return writes_; }
    /// Makes one of them on an image. Throws Error (machine).
    void apply(const DiskWrite& write, int image) const;

private:
    UniqueFd file_;
    std::vector<DiskWrite> writes_;
};

}  // namespace reprise
