// SPDX-License-Identifier: MIT
// The files below a root beside those that should be there: names, types, sizes, and every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replay/content/file_model.h"

namespace reprise {

/// Something that is not as it should be.
struct VerifyFinding {
    enum class What : uint8_t { missing, extra, type, size, target, content, read, unreadable };
    What what = What::content;
    std::string path;
    uint64_t offset = 0, bytes = 0;  // of content
    uint64_t want = 0, got = 0;      // sizes, or the first bytes that differ
    TaskId task = 0;                 // whose op; 0: what was prepared
    uint64_t op = 0;                 // that wrote it, or, of a read, that read it
    std::string detail;

    /// "/data/x: byte 4096 is 0x12, expected 0xed, as written by op 17 of task 3"
    std::string sentence() const;
};
std::string_view what_name(VerifyFinding::What what);

struct TreeCheck {
    uint64_t files = 0, bytes = 0;        // bytes: that were compared
    uint64_t unchecked = 0;               // bytes that may be one thing or another
    uint64_t count = 0;                   // of findings
    std::vector<VerifyFinding> findings;  // at most kMost

    static constexpr size_t kMost = 1000;
    void add(VerifyFinding finding);
};

struct TreeCheckOptions {
    bool content = false;
    /// Directories, relative to the root, in which what is too much does not count.
    std::vector<std::string> ignored = {};
    std::function<void(uint64_t bytes)> progress = {};
};

/// `root`: a directory descriptor. Opens files to read, past no limit of the root, and follows no link.
TreeCheck check_tree(int root, const FileModel& model, const TreeCheckOptions& options);

/// Adds to `out` where bytes [from, to) of an open file are not as those of `extents`; a file that ends before counts
/// as one finding. `allowed`: which extents are compared.
void check_bytes(int fd, const std::string& path, const std::vector<Extent>& extents,
                 const std::function<bool(const Source&)>& allowed, TreeCheck& out);

}  // namespace reprise
