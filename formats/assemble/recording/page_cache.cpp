// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/page_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "formats/assemble/recording/raw_calls.h"
#include "formats/oplog/syscalls.h"
#include "formats/raw/log.h"

namespace reprise {
namespace {

bool names(std::string_view list, std::string_view name) {
    const auto json = nlohmann::json::parse(list, nullptr, false);
    return json.is_array() && std::any_of(json.begin(), json.end(), [&](const auto& entry) {
               return entry.is_string() && entry.template get<std::string>().find(name) != std::string::npos;
           });
}

/// Whether a call brings pages into the page cache to write them. One that cuts or punches reads those at its ends.
bool is_write(uint32_t nr) {
    const Syscall* const call = find_syscall(nr);
    return call != nullptr && call->makes_op && info(call->kind).is(Trait::writes) &&
           !info(call->kind).is(Trait::reads);
}

/// Whether it brings pages of one file to read and of another to write.
bool copies(uint32_t nr) {
    const Syscall* const call = find_syscall(nr);
    return call != nullptr && call->makes_op && info(call->kind).is(Trait::changes) &&
           info(call->kind).is(Trait::reads);
}

/// Of [from, to), what is in the set.
uint64_t common_bytes(const RangeSet& set, uint64_t from, uint64_t to) {
    uint64_t bytes = 0;
    for (const auto& [begin, end] : set.ranges_from(from)) {
        if (begin >= to) {
            break;
        }
        bytes += std::min(end, to) - std::min(std::max(begin, from), std::min(end, to));
    }
    return bytes;
}

}  // namespace

std::optional<RawPageCache::Written> RawPageCache::see(const raw_page_cache& record) {
    if (record.bytes == 0 || record.offset > UINT64_MAX - record.bytes) {
        return std::nullopt;
    }
    const Inode inode{user_device(record.device), record.inode};
    Pages& pages = files_[inode];
    const bool fetched = record.evicted == 0 && !is_write(record.in_nr);
    RangeSet& into = fetched ? pages.fetched : pages.others;
    const RangeSet& other = fetched ? pages.others : pages.fetched;
    if (fetched && !copies(record.in_nr)) {
        pages.again += common_bytes(pages.fetched, record.offset, record.offset + record.bytes) +
                       common_bytes(pages.others, record.offset, record.offset + record.bytes);
    }
    RangeSet first;
    first.add(record.offset, record.offset + record.bytes);
    for (const auto& [from, to] : other.ranges_from(record.offset)) {
        if (from >= record.offset + record.bytes) {
            break;
        }
        first.remove(from, to);
    }
    std::optional<Written> written;
    if (record.evicted == 0 && !fetched) {
        RangeSet all;
        all.add(record.offset, record.offset + record.bytes);
        written = Written{inode, std::move(all), first.without(into)};
    }
    for (const auto& [from, to] : first.ranges()) {
        into.add(from, to);
    }
    return written;
}

void RawPageCache::wrote(const raw_fd& fd, uint64_t from, uint64_t to, const std::vector<Written>& pages) {
    const Inode inode{user_device(fd.device), fd.inode};
    const auto opened = opened_.find(inode);
    const uint64_t size = opened != opened_.end() ? opened->second.size : fd.size;  // before the call
    if (opened != opened_.end()) {
        opened->second.size = std::max(size, to);
    }
    const auto below = backings_.find(inode);
    const auto sparse = sparse_.find(inode);
    const auto has_data = [&](uint64_t page) {
        return page < size &&
               (sparse == sparse_.end() || (sparse->second.time != 0 && !sparse->second.holes.contains(page)));
    };
    const uint64_t first = from / RangeSet::kPage * RangeSet::kPage,
                   last = (to - 1) / RangeSet::kPage * RangeSet::kPage;
    for (uint64_t page = first; page <= last; page += std::max(last - first, RangeSet::kPage)) {
        const bool is_part = page < from || page + RangeSet::kPage > to;
        if (!is_part || !has_data(page)) {
            continue;
        }
        for (const Written& written : pages) {
            const bool is_its = written.inode == inode ||
                                (below != backings_.end() && std::find(below->second.begin(), below->second.end(),
                                                                       written.inode) != below->second.end());
            if (!is_its || !written.pages.contains(page)) {
                continue;
            }
            Pages& of = files_[written.inode];
            if (written.first.contains(page)) {
                of.others.remove(page, page + RangeSet::kPage);
                of.fetched.add(page, page + RangeSet::kPage);
            } else {
                of.again += RangeSet::kPage;
            }
        }
    }
}

void RawPageCache::see(const raw_fd& fd) {
    if (fd.info & RAW_FD_TMPFS) {
        in_memory_.insert(user_device(fd.device));
    }
    if (fd.info & RAW_FD_CACHED) {
        const Inode inode{user_device(fd.device), fd.inode};
        opened_.try_emplace(inode, Opened{fd.peer_or_pages, 0}).first->second.size = fd.size;
    }
    if (fd.info & RAW_FD_SPARSE) {
        sparse_.try_emplace(Inode{user_device(fd.device), fd.inode});
    }
}

void RawPageCache::see(const raw_holes& record) {
    const auto found = sparse_.find({user_device(record.device), record.inode});
    if (found == sparse_.end() || found->second.cut) {
        return;
    }
    Look& look = found->second;
    if (look.time != 0 && look.time != record.head.time) {
        return;  // the first one is the earliest
    }
    look.time = record.head.time;
    look.size = record.size;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_LIST) {
            continue;
        }
        const std::span<const raw_s64> ends = raw_part_numbers(part);
        for (size_t i = 0; i + 1 < ends.size(); i += 2) {
            if (ends[i] >= 0 && ends[i] < ends[i + 1]) {
                look.holes.add(static_cast<uint64_t>(ends[i]), static_cast<uint64_t>(ends[i + 1]));
            }
        }
    }
}

void RawPageCache::see_cut(const raw_fd& fd) {
    const Inode inode{user_device(fd.device), fd.inode};
    if (const auto opened = opened_.find(inode); opened != opened_.end()) {
        opened->second.size = fd.size;
    }
    const auto found = sparse_.find(inode);
    if (found != sparse_.end() && found->second.time == 0) {
        found->second.cut = true;
    }
}

void RawPageCache::see(const raw_backing& record) {
    std::vector<Inode>& all = backings_[{user_device(record.device), record.inode}];
    const Inode below{user_device(record.device_below), record.below};
    // Another one once the file has been copied up.
    if (record.below != 0 && std::find(all.begin(), all.end(), below) == all.end()) {
        all.push_back(below);
    }
}

uint64_t RawPageCache::unknown(const Tables& tables) const {
    return static_cast<uint64_t>(std::count_if(tables.files.begin(), tables.files.end(), [&](const FileRow& row) {
        const auto found = backings_.find({row.device, row.inode});
        return row.origin != Origin::created && found != backings_.end() && found->second.empty();
    }));
}

FetchedPages RawPageCache::of(const Tables& tables) const {
    FetchedPages out;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        if (row.origin == Origin::created) {
            continue;
        }
        RangeSet fetched;
        const auto add = [&](const Inode& inode) {
            if (const auto found = files_.find(inode); found != files_.end()) {
                for (const auto& [from, to] : found->second.fetched.ranges()) {
                    fetched.add(from, to);
                }
            }
        };
        add({row.device, row.inode});
        if (const auto below = backings_.find({row.device, row.inode}); below != backings_.end()) {
            std::for_each(below->second.begin(), below->second.end(), add);
        }
        if (!fetched.empty()) {
            out.emplace(id, std::move(fetched));
        }
    }
    return out;
}

RefetchedPages RawPageCache::refetched(const Tables& tables) const {
    RefetchedPages out;
    std::set<Inode> counted;  // a file may have several rows, as inode numbers are used again: the last one counts
    for (FileId id = static_cast<FileId>(tables.files.size()); id-- > 1;) {
        const FileRow& row = tables.files[id];
        const auto add = [&](const Inode& inode) {
            const auto found = files_.find(inode);
            if (found != files_.end() && found->second.again != 0 && counted.insert(inode).second) {
                out[id] += found->second.again / RangeSet::kPage;
            }
        };
        add({row.device, row.inode});
        if (const auto below = backings_.find({row.device, row.inode}); below != backings_.end()) {
            std::for_each(below->second.begin(), below->second.end(), add);
        }
    }
    return out;
}

uint64_t RawPageCache::data_bytes(const RefetchedPages& pages, const Tables& tables) {
    uint64_t bytes = 0;
    for (const auto& [file, count] : pages) {
        const Role role = tables.files[file].role;
        bytes += role != Role::program && role != Role::system && role != Role::ipc ? count * RangeSet::kPage : 0;
    }
    return bytes;
}

CachedPages RawPageCache::when_opened(const Tables& tables) const {
    CachedPages out;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        const auto found = opened_.find({row.device, row.inode});
        if (row.origin != Origin::created && found != opened_.end()) {
            out.emplace(id, found->second.pages);
        }
    }
    return out;
}

Holes RawPageCache::holes_before(const Tables& tables) const {
    Holes out;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        const auto found = keeps_holes(row) ? sparse_.find({row.device, row.inode}) : sparse_.end();
        // Shorter: it was cut by then.
        if (found != sparse_.end() && found->second.time != 0 && found->second.size >= row.size) {
            RangeSet holes = found->second.holes;
            holes.clip(row.size);
            out.emplace(id, std::move(holes));
        }
    }
    return out;
}

bool records_page_cache(std::string_view groups, std::string_view absent) {
    return names(groups, "pagecache") && !names(absent, "page_cache");
}

}  // namespace reprise
