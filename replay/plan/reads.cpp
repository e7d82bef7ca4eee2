// SPDX-License-Identifier: MIT
#include "replay/plan/reads.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"

namespace reprise {
namespace {

uint64_t not_negative(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

class ReadGatherer {
public:
    ReadGatherer(const LogReader& log, const std::function<bool(FileId)>& wanted)
        : log_(log), tables_(log.tables()), wanted_(tables_.files.size()) {
        for (FileId file = 1; file < wanted_.size(); ++file) {
            wanted_[file] = wanted(file);
        }
    }

    FileReads run() {
        std::vector<BlockInfo> with_touches = first_pass();
        if (!set_direct_.empty()) {
            with_touches = first_pass();  // some of these were used in blocks before
        }
        OpBlock block;
        // A mapping may be made in a block behind that of its touches: by another task.
        for (const BlockInfo& where : with_touches) {
            log_.decode(where, block);
            second_pass(block);
            log_.forget(where);
        }
        return std::move(out_);
    }

private:
    /// Returns the blocks that touch mappings.
    std::vector<BlockInfo> first_pass() {
        const FileRanges none(tables_.files.size());
        out_ = FileReads{none, none, none, none, none, {}};
        mappings_.clear();
        made_at_.clear();
        std::vector<BlockInfo> with_touches;
        OpBlock block;
        for (const BlockInfo& where : log_.blocks()) {
            log_.decode(where, block);
            if (first_pass(block)) {
                with_touches.push_back(where);
            }
            log_.forget(where);
        }
        return with_touches;
    }
    /// Whether the block touches mappings.
    bool first_pass(const OpBlock& block) {
        bool touches = false;
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            if (kind == OpKind::touch || kind == OpKind::madvise) {
                touches = true;
            } else if (kind == OpKind::mmap && block.handle[i] != 0 && block.result[i] >= 0) {
                map(block, i);
            } else if (block.result[i] >= 0 && (kind == OpKind::readahead ||
                                                (kind == OpKind::fadvise && block.arg[i] == POSIX_FADV_WILLNEED))) {
                advise(block.handle[i], not_negative(block.offset[i]), not_negative(block.size[i]));
            } else if (kind == OpKind::fadvise && block.arg[i] == POSIX_FADV_DONTNEED) {
                out_.drops = true;
            } else if (info(kind).is(Trait::submits)) {
                submit(block, i);
            } else if (kind == OpKind::fcntl) {
                if (block.arg[i] == F_SETFL && (block.flags[i] & kOpenDirect) != 0) {
                    set_direct_.insert(block.handle[i]);
                }
            } else if (kind == OpKind::rename || kind == OpKind::link) {
                if (block.result[i] >= 0 && block.file[i] != 0 && block.file2[i] != 0) {
                    constexpr int64_t kExchange = 2;  // RENAME_EXCHANGE
                    const bool exchange = kind == OpKind::rename && (block.flags[i] & kExchange) != 0;
                    out_.renames.push_back({block.file[i], block.file2[i], exchange});
                }
            } else {
                note_uncached(block, i);
                move_data(block, i);
                resize(block, i);
            }
        }
        return touches;
    }

    void move_data(const OpBlock& block, size_t i) {
        const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
        const uint64_t offset = not_negative(block.offset[i]), moved = not_negative(block.result[i]);
        const Time time = time_of(block, i);
        if (row.is(Trait::reads)) {
            read(block.handle[i], offset, moved, time);
            if (row.is(Trait::writes)) {
                write(block.handle2[i], not_negative(block.offset2[i]), moved, time);
            }
        } else if (row.is(Trait::writes)) {
            write(block.handle[i], offset, moved, time);
        }
    }
    /// What is cut off or punched is on no device any more.
    void resize(const OpBlock& block, size_t i) {
        const auto kind = static_cast<OpKind>(block.kind[i]);
        const int64_t end = time_of(block, i).end;
        const bool cuts = kind == OpKind::open ? (block.flags[i] & int64_t{O_TRUNC}) != 0
                                               : kind == OpKind::truncate || kind == OpKind::ftruncate;
        if (block.result[i] < 0) {
            return;
        }
        if (cuts) {
            const FileId file = block.file[i] != 0 ? block.file[i] : file_of(block.handle[i]);
            make(file, kind == OpKind::open ? 0 : not_negative(block.size[i]), UINT64_MAX, end);
        } else if (kind == OpKind::fallocate &&
                   (block.flags[i] & int64_t{FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE}) != 0) {
            const uint64_t from = not_negative(block.offset[i]);
            make(file_of(block.handle[i]), from, from + not_negative(block.size[i]), end);
        } else if (kind == OpKind::fallocate &&
                   (block.flags[i] & int64_t{FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE}) != 0) {
            add_to(out_.shifted, file_of(block.handle[i]), not_negative(block.offset[i]), UINT64_MAX);
        }
    }
    /// RWF_DONTCACHE: what it brings into memory leaves it again.
    void note_uncached(const OpBlock& block, size_t i) {
        constexpr int64_t kDontCache = 0x80;
        const auto kind = static_cast<OpKind>(block.kind[i]);
        out_.drops |= (kind == OpKind::preadv || kind == OpKind::pwritev) && (block.flags[i] & kDontCache) != 0;
    }
    struct Time {
        int64_t begin = 0, end = 0;  // ns
    };
    static Time time_of(const OpBlock& block, size_t i) {
        return {block.begin[i], end_of(block.begin[i], block.duration[i])};
    }
    void read(HandleId handle, uint64_t offset, uint64_t bytes, Time time) {
        const bool now_and_then = set_direct_.contains(handle);
        if (is_direct(handle) || now_and_then) {
            beside(bytes);
        }
        if (!is_direct(handle)) {
            add(file_of(handle), offset, bytes, time.begin);
        }
    }
    void write(HandleId handle, uint64_t offset, uint64_t bytes, Time time) {
        if (!is_direct(handle) && !set_direct_.contains(handle) && bytes != 0) {
            make(file_of(handle), offset, offset + bytes, time.end);
        }
        const auto is_part = [](uint64_t at) { return at % RangeSet::kPage != 0; };
        const FileId file = file_of(handle);
        const FileRow& row = tables_.files[file];
        if (!wanted_[file] || row.origin == Origin::created || !(is_part(offset) || is_part(offset + bytes))) {
            return;
        }
        beside(2 * RangeSet::kPage);
        // Of a page that is written in part the rest is read first, if it is data.
        const auto read_page = [&](uint64_t at) {
            add(file, at / RangeSet::kPage * RangeSet::kPage, RangeSet::kPage, time.begin);
        };
        if (is_direct(handle) || bytes == 0 || !row.size_exact) {
            return;
        }
        if (is_part(offset) && offset / RangeSet::kPage * RangeSet::kPage < row.size) {
            read_page(offset);
        }
        if (is_part(offset + bytes) && offset + bytes < row.size) {
            read_page(offset + bytes);
        }
    }
    /// Whole pages of [from, to), and the last one of the file.
    void make(FileId file, uint64_t from, uint64_t to, int64_t end) {
        if (file == 0 || file >= wanted_.size() || !wanted_[file]) {
            return;
        }
        const FileRow& row = tables_.files[file];
        const uint64_t first = from > UINT64_MAX - RangeSet::kPage ? from : whole(from);
        const uint64_t last = row.size_exact && to >= row.size ? std::max(to, whole(row.size)) : to;
        if (first < last / RangeSet::kPage * RangeSet::kPage) {
            out_.made.of(file).add(first, last / RangeSet::kPage * RangeSet::kPage);
            int64_t& made = made_at_.try_emplace(file, end).first->second;
            made = std::max(made, end);
        }
    }
    static uint64_t whole(uint64_t bytes) { return (bytes + RangeSet::kPage - 1) / RangeSet::kPage * RangeSet::kPage; }
    void beside(uint64_t bytes) { out_.beside_bytes += std::min(bytes, UINT64_MAX - out_.beside_bytes); }

    void map(const OpBlock& block, size_t i) {
        const FileId file = file_of(block.handle[i]);
        const uint64_t offset = not_negative(block.offset[i]);
        mappings_[block.map[i]] = {file, offset};
        constexpr int64_t kAccess = PROT_READ | PROT_WRITE | PROT_EXEC;
        const bool populates = (block.flags[i] & MAP_POPULATE) != 0 && (block.flags[i] & MAP_NONBLOCK) == 0;
        if (populates && (block.mode[i] & kAccess) != 0) {
            add(file, offset, not_negative(block.size[i]), block.begin[i]);
        }
    }

    void submit(const OpBlock& block, size_t i) {
        const AsyncRequest asked = async_request(block, i);
        if (asked.reads()) {
            read(block.handle[i], not_negative(asked.offset), not_negative(asked.size), time_of(block, i));
        } else if (asked.writes()) {
            write(block.handle[i], not_negative(asked.offset), not_negative(asked.size), time_of(block, i));
        } else if (asked.does == AsyncRequest::Does::advise && asked.own_flags == POSIX_FADV_WILLNEED) {
            advise(block.handle[i], not_negative(asked.offset), not_negative(asked.size));
        }
    }

    void second_pass(const OpBlock& block) {
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            const auto found = mappings_.find(block.map[i]);
            if ((kind != OpKind::touch && kind != OpKind::madvise) || block.result[i] < 0 || found == mappings_.end()) {
                continue;
            }
            const FileId file = found->second.file;
            const uint64_t offset = found->second.offset;
            if (kind == OpKind::touch) {
                each_touched(block.offset[i], block.size[i], block.list_of(i), [&](int64_t at, int64_t bytes) {
                    add(file, offset + not_negative(at), not_negative(bytes), block.begin[i]);
                    add_to(out_.touched, file, offset + not_negative(at), not_negative(bytes));
                });
                continue;
            }
            const uint64_t from = offset + not_negative(block.offset[i]), bytes = not_negative(block.size[i]);
            if (block.arg[i] == MADV_POPULATE_READ || block.arg[i] == MADV_POPULATE_WRITE) {
                add(file, from, bytes, block.begin[i]);
            } else if (block.arg[i] == MADV_WILLNEED) {
                add_to(out_.advised, file, from, bytes);
            } else if (block.arg[i] == MADV_PAGEOUT) {
                out_.drops = true;
            }
        }
    }

    FileId file_of(HandleId handle) const {
        const FileId file = handle < tables_.handles.size() ? tables_.handles[handle].file : 0;
        return file < tables_.files.size() ? file : 0;
    }
    bool is_direct(HandleId handle) const {
        return handle < tables_.handles.size() && (tables_.handles[handle].flags & kOpenDirect) != 0;
    }
    /// Not past the end of the file.
    void add_to(FileRanges& to, FileId file, uint64_t from, uint64_t bytes) {
        if (file == 0 || file >= wanted_.size() || !wanted_[file]) {
            return;
        }
        const FileRow& row = tables_.files[file];
        const uint64_t end = bytes <= UINT64_MAX - from ? from + bytes : UINT64_MAX;
        to.of(file).add(from, row.size_exact ? std::min(end, std::max(row.size, from)) : end);
    }
    /// What is made later does not count, nor what is made meanwhile: tasks and blocks are not in the order of time.
    void add(FileId file, uint64_t from, uint64_t bytes, int64_t begin) {
        const auto made = made_at_.find(file);
        if (made == made_at_.end() || made->second > begin || bytes > UINT64_MAX - from) {
            add_to(out_.reads, file, from, bytes);
            return;
        }
        const uint64_t end = from + bytes;
        for (const auto& [first, last] : out_.made[file].ranges_from(from)) {
            if (first >= end) {
                break;
            }
            if (from < first) {
                add_to(out_.reads, file, from, first - from);
            }
            from = std::max(from, last);
        }
        if (from < end) {
            add_to(out_.reads, file, from, end - from);
        }
    }
    /// By direct I/O or not, advice is about the page cache. `bytes` 0: to the end of the file.
    void advise(HandleId handle, uint64_t from, uint64_t bytes) {
        const FileId file = file_of(handle);
        const uint64_t size = tables_.files[file].size;
        add_to(out_.advised, file, from, bytes == 0 ? std::max(size, from) - from : bytes);
    }

    const LogReader& log_;
    const Tables& tables_;
    FileReads out_;
    std::vector<bool> wanted_;
    std::unordered_set<HandleId> set_direct_;  // by F_SETFL, for a part of their use
    struct Mapped {
        FileId file = 0;
        uint64_t offset = 0;
    };
    std::unordered_map<uint32_t, Mapped> mappings_;
    std::unordered_map<FileId, int64_t> made_at_;  // ns: when the last of it was
};

}  // namespace

Holes holes_at_first(const LogReader& log, const FileReads& reads) {
    Holes holes = recorded_holes(log);
    for (auto& [file, ranges] : holes) {
        ranges = ranges.without(reads.made[file]).without(reads.shifted[file]);
    }
    for (auto& [file, before] : holes_before(log)) {
        holes.insert_or_assign(file, std::move(before));
    }
    std::erase_if(holes, [](const auto& one) { return one.second.empty(); });
    return holes;
}

Holes holes_at_first(const LogReader& log) {
    const Holes after = recorded_holes(log);
    if (after.empty()) {
        return holes_at_first(log, FileReads());
    }
    return holes_at_first(log, gather_reads(log, [&](FileId file) { return after.contains(file); }));
}

FileReads gather_reads(const LogReader& log, const std::function<bool(FileId)>& wanted) {
    return ReadGatherer(log, wanted).run();
}

}  // namespace reprise
