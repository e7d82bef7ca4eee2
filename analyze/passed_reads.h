// SPDX-License-Identifier: MIT
// What a job read of files whose file system has no page cache: its storage was asked for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/open_flags.h"

namespace reprise {

class PassedReads {
public:
    PassedReads(const Tables& tables, const std::optional<FetchedPages>& fetched,
                const std::optional<CachedPages>& cached) {
        if (!fetched || !cached) {
            return;
        }
        for (const auto& [file, pages] : *cached) {
            if (passes_page_cache(*fetched, cached, file) && tables.files[file].origin == Origin::existed) {
                read_.emplace(file, 0);
            }
        }
        for (const HandleRow& handle : tables.handles) {
            if ((handle.flags & kOpenDirect) != 0) {
                read_.erase(handle.file);
            }
        }
    }

    void read(FileId file, uint64_t bytes) {
        if (const auto found = read_.find(file); found != read_.end()) {
            found->second += std::min(bytes, UINT64_MAX - found->second);
        }
    }
    /// What it reads of that is its own.
    void written(FileId file) { read_.erase(file); }
    /// use(file, bytes) of each, as often as they were read.
    template <class Use>
    void each(Use use) const {
        for (const auto& [file, bytes] : read_) {
            use(file, bytes);
        }
    }

private:
    std::unordered_map<FileId, uint64_t> read_;
};

}  // namespace reprise
