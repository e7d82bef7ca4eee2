// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/page_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/assemble/recording/raw_calls.h"
#include "formats/oplog/syscalls.h"

namespace reprise {
namespace {

bool names(std::string_view list, std::string_view name) {
    const auto json = nlohmann::json::parse(list, nullptr, false);
    return json.is_array() && std::any_of(json.begin(), json.end(), [&](const auto& entry) {
               return entry.is_string() && entry.template get<std::string>().find(name) != std::string::npos;
           });
}

/// Whether a call brings pages into the page cache to write them.
bool is_write(uint32_t nr) {
    const Syscall* const call = find_syscall(nr);
    return call != nullptr && call->makes_op && info(call->kind).is(Trait::changes) &&
           !info(call->kind).is(Trait::reads);
}

}  // namespace

void RawPageCache::see(const raw_page_cache& record) {
    if (record.bytes == 0 || record.offset > UINT64_MAX - record.bytes) {
        return;
    }
    Pages& pages = files_[{user_device(record.device), record.inode}];
    const bool fetched = record.evicted == 0 && !is_write(record.in_nr);
    RangeSet& into = fetched ? pages.fetched : pages.others;
    const RangeSet& other = fetched ? pages.others : pages.fetched;
    RangeSet first;
    first.add(record.offset, record.offset + record.bytes);
    auto known = other.ranges().upper_bound(record.offset);
    if (known != other.ranges().begin()) {
        --known;
    }
    for (; known != other.ranges().end() && known->first < record.offset + record.bytes; ++known) {
        first.remove(known->first, known->second);
    }
    for (const auto& [from, to] : first.ranges()) {
        into.add(from, to);
    }
}

FetchedPages RawPageCache::of(const Tables& tables) const {
    FetchedPages out;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        if (row.origin == Origin::created) {
            continue;
        }
        const auto found = files_.find({row.device, row.inode});
        if (found != files_.end() && !found->second.fetched.empty()) {
            out.emplace(id, found->second.fetched);
        }
    }
    return out;
}

bool records_page_cache(std::string_view groups, std::string_view absent) {
    return names(groups, "pagecache") && !names(absent, "page_cache");
}

}  // namespace reprise
