// SPDX-License-Identifier: MIT
// The pass over the ops that learns what they do to files.
#include "replay/prepare/facts.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <unordered_map>

#include "formats/oplog/async_request.h"
#include "replay/prepare/refused_names.h"
#include "replay/prepare/renamed_types.h"
#include "replay/prepare/size_facts.h"

namespace reprise {

namespace {

constexpr uint64_t kEnd = FileFacts::kEnd;

uint64_t unsigned_or_zero(int64_t value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

/// offset + size without overflow; both come from the log.
uint64_t range_end(int64_t offset, int64_t size) { return unsigned_or_zero(offset) + unsigned_or_zero(size); }

class Gatherer {
public:
    Gatherer(const Tables& tables, LogFacts& facts) : tables_(tables), facts_(facts), sizes_(tables, facts.sizes) {
        facts_.files.resize(tables.files.size());
        for (const HandleRow& handle : tables.handles) {
            // Open before the recording began, so it was there.
            if (handle.inherited) {
                touch(handle.file).used = std::numeric_limits<int64_t>::min();
            }
            if (handle.kind == HandleKind::directory) {
                touch(handle.file).directory = true;
            }
        }
    }

    void op(const Op& op) {
        const OpInfo& row = info(op.kind);
        if (row.is(Trait::path) && op.file != 0) {
            named(op);
        }
        note_attribute(op, subject_id(op), facts_.attributes);
        if (op.result < 0) {
            return;
        }
        if (row.is(Trait::writes) || row.is(Trait::reads)) {
            data(op, row);
        }
        special(op);
    }
    void finish() {
        mapped_sizes_.finish();
        refused_.finish();
    }

private:
    FileFacts& touch(FileId id) { return id != 0 && id < facts_.files.size() ? facts_.files[id] : nobody_; }
    FileId file_of(HandleId handle) const { return handle < tables_.handles.size() ? tables_.handles[handle].file : 0; }
    /// The file an op without a path, or with one, is about.
    FileId subject_id(const Op& op) const { return op.file != 0 ? op.file : file_of(op.handle); }
    FileFacts& subject(const Op& op) { return touch(subject_id(op)); }

    static void earliest(int64_t& time, int64_t candidate) { time = std::min(time, candidate); }

    /// What a path-taking op says of whether the name was there.
    void named(const Op& op) {
        FileFacts& file = touch(op.file);
        if (op.result < 0) {
            if (op.kind == OpKind::rename || op.kind == OpKind::link) {
                return refused_.add(op);
            }
            // It was in the way.
            if (op.result == -EEXIST) {
                earliest(file.used, op.begin);
                const FileType type = op.file < tables_.files.size() ? tables_.files[op.file].type : FileType::unknown;
                if (op.kind == OpKind::mkdir && (type == FileType::unknown || type == FileType::directory)) {
                    file.directory = true;
                }
            } else if (op.result == -ENOENT) {
                file.missing = true;
            } else if (op.result == -ENOTDIR) {
                // Where a directory was asked for, the name itself mostly leads to something else.
                const bool asks =
                    op.kind == OpKind::rmdir || (op.kind == OpKind::open && (op.flags & O_DIRECTORY) != 0);
                earliest(asks ? file.used : file.blocked, op.begin);
            } else if (op.result == -EISDIR || (op.result == -ENOTEMPTY && op.kind == OpKind::rmdir)) {
                earliest(file.used, op.begin);
                file.directory = true;
                file.not_empty |= op.result == -ENOTEMPTY;
            } else if (op.result == -ELOOP) {
                const bool last = follows_last(op);
                earliest(last ? file.looped : file.looped_above, op.begin);
                file.is_loop |= last && !(op.kind == OpKind::open && (op.flags & O_NOFOLLOW) != 0);
            }
            return;
        }
        if (op.kind == OpKind::open) {
            opened(op, file);
            if ((op.flags & O_TRUNC) != 0 && (op.flags & O_ACCMODE) != O_RDONLY) {
                sizes_.cut(op.file, op.begin, 0);
            }
        } else if (op.kind == OpKind::mkdir || op.kind == OpKind::symlink) {
            earliest(file.made, op.begin);
        } else {
            earliest(file.used, op.begin);
            if (op.kind == OpKind::access && (op.mode & X_OK) != 0) {
                earliest(file.runnable, op.begin);
            }
        }
    }

    /// Whether a link at the end of the path is followed, or refused as O_NOFOLLOW does.
    static bool follows_last(const Op& op) {
        switch (op.kind) {
            case OpKind::open: return (op.flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
            case OpKind::stat:
            case OpKind::chown:
            case OpKind::utimens:
            case OpKind::statx: return (op.flags & AT_SYMLINK_NOFOLLOW) == 0;
            case OpKind::getxattr:
            case OpKind::setxattr:
            case OpKind::listxattr:
            case OpKind::removexattr: return (op.flags & kXattrNoFollow) == 0;
            case OpKind::access:
            case OpKind::chmod:
            case OpKind::statfs:
            case OpKind::truncate: return true;
            default: return false;
        }
    }

    void opened(const Op& op, FileFacts& file) {
        if ((op.flags & O_TMPFILE) == O_TMPFILE) {
            file.nameless = true;
            return;
        }
        earliest((op.flags & O_CREAT) != 0 ? file.made : file.used, op.begin);
        if ((op.flags & O_DIRECTORY) != 0) {
            file.directory = true;
        }
        if ((op.flags & (O_NOFOLLOW | O_PATH)) == 0) {
            file.opened = true;
        }
        if ((op.flags & O_TRUNC) != 0 && (op.flags & O_ACCMODE) != O_RDONLY) {
            file.change(0, kEnd);
        }
    }

    void data(const Op& op, const OpInfo& row) {
        const bool copies = op.handle2 != 0 && row.has(Field::handle2);
        const int64_t moved = std::max(op.size, op.result);
        if (row.is(Trait::reads)) {
            FileFacts& source = touch(file_of(op.handle));
            source.reach = std::max(source.reach, range_end(op.offset, op.result));
        }
        if (!row.is(Trait::writes)) {
            return;
        }
        const FileId id = file_of(copies ? op.handle2 : op.handle);
        FileFacts& file = touch(id);
        const int64_t offset = copies ? op.offset2 : op.offset;
        sizes_.wrote(id, op.begin, range_end(offset, op.result), unsigned_or_zero(op.result));
        file.change(unsigned_or_zero(offset), range_end(offset, moved));
        file.reach = std::max(file.reach, range_end(offset, op.result));
    }

    void special(const Op& op) {
        if (op.kind == OpKind::mmap && op.handle != 0) {
            mapped(op);
        } else if (op.kind == OpKind::touch || op.kind == OpKind::madvise) {
            mapped_sizes_.touched(op);
        } else if (op.kind == OpKind::truncate || op.kind == OpKind::ftruncate) {
            subject(op).change(unsigned_or_zero(op.size), kEnd);
            sizes_.cut(subject_id(op), op.begin, unsigned_or_zero(op.size));
        } else if (op.kind == OpKind::fallocate) {
            // Collapsing and inserting move everything behind the range.
            const bool moves = (op.flags & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
            const bool frees = (op.flags & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_PUNCH_HOLE)) != 0;
            if (frees) {
                sizes_.cut(subject_id(op), op.begin, 0);  // how much is not asked
            } else {
                sizes_.wrote(subject_id(op), op.begin, range_end(op.offset, op.size), unsigned_or_zero(op.size));
            }
            subject(op).change(unsigned_or_zero(op.offset), moves ? kEnd : range_end(op.offset, op.size));
        } else if (op.kind == OpKind::unlink || op.kind == OpKind::rmdir) {
            removed(op);
            sizes_.cut(op.file, op.begin, 0);
            if (op.kind == OpKind::rmdir) {
                touch(op.file).directory = true;
            }
        } else if (op.kind == OpKind::rename) {
            renamed(op);
        } else if (op.kind == OpKind::link) {
            earliest(touch(op.file2).made, op.begin);
            touch(op.file).change(0, kEnd);  // from now on by either name
        } else if (op.kind == OpKind::getdents) {
            listed(op);
        } else if (op.kind == OpKind::lseek) {
            listings_.erase(op.handle);
        } else if (op.kind == OpKind::chmod || op.kind == OpKind::setxattr || op.kind == OpKind::removexattr) {
            earliest(subject(op).attributes_at, op.begin);
        } else if (info(op.kind).is(Trait::submits)) {
            request(op);
        }
    }

    void mapped(const Op& op) {
        const HandleRow none;
        const HandleRow& handle = op.handle < tables_.handles.size() ? tables_.handles[op.handle] : none;
        // A mapping of a writable instance can be made writable later.
        const bool writable = (op.mode & PROT_WRITE) != 0 || (handle.flags & O_ACCMODE) == O_RDWR;
        if ((op.flags & MAP_SHARED) != 0 && writable) {
            mapped_sizes_.mapped(op.map, handle.file, unsigned_or_zero(op.offset));
            touch(handle.file).change(unsigned_or_zero(op.offset), range_end(op.offset, op.size));
        }
    }

    /// A listing may end early; what it returned was there.
    void listed(const Op& op) {
        FileFacts& file = touch(file_of(op.handle));
        file.directory = true;
        if (op.result == 0) {
            listings_.erase(op.handle);
            return;
        }
        Listing& listing = listings_.try_emplace(op.handle, Listing{op.begin, 0}).first->second;
        constexpr int64_t kMostListed = int64_t{1} << 20;  // of one call; more than libraries ask for
        listing.bytes += unsigned_or_zero(std::min({op.result, op.size > 0 ? op.size : kMostListed, kMostListed}));
        if (listing.bytes > file.listed) {
            file.listed = listing.bytes;
            file.listed_at = listing.begin;
        }
    }

    void removed(const Op& op) {
        FileFacts& file = touch(op.file);
        earliest(file.removed, op.begin);
        file.gone = true;
        file.change(0, kEnd);
    }

    /// Both were there, and both names have something else now.
    void exchanged(const Op& op) {
        for (const FileId id : {op.file, op.file2}) {
            FileFacts& file = touch(id);
            earliest(file.used, op.begin);
            file.gone = true;
            file.change(0, kEnd);
        }
        facts_.renames.push_back({op.begin, op.file, op.file2, true});
    }

    void renamed(const Op& op) {
        if (op.file == op.file2) {  // two names of one file: both stay
            return earliest(touch(op.file).used, op.begin);
        }
        if ((op.flags & RENAME_EXCHANGE) != 0) {
            return exchanged(op);
        }
        removed(op);
        FileFacts& to = touch(op.file2);
        earliest(to.made, op.begin);
        to.change(0, kEnd);
        facts_.renames.push_back({op.begin, op.file, op.file2});
        sizes_.moved(op.file, op.file2, op.begin);
    }

    /// Requests other than plain reads and waits are taken to change all they name.
    void request(const Op& op) {
        using Does = AsyncRequest::Does;
        FileFacts& file = subject(op);
        const AsyncRequest asked = async_request(op);
        switch (asked.does) {
            case Does::write:
                file.change(unsigned_or_zero(asked.offset), range_end(asked.offset, asked.size));
                sizes_.wrote(subject_id(op), op.begin, range_end(asked.offset, asked.size),
                             unsigned_or_zero(asked.size));
                break;
            case Does::allocate:
            case Does::splice: file.change(0, kEnd); break;
            case Does::end_name: removed(op); break;
            case Does::open:
            case Does::stat: earliest(file.used, op.begin); break;
            case Does::make_name: earliest(file.made, op.begin); break;
            case Does::nothing:
            case Does::read:
            case Does::sync:
            case Does::sync_data:
            case Does::sync_range:
            case Does::advise:
            case Does::close:
            case Does::advise_memory:
            case Does::other: break;
        }
    }

    const Tables& tables_;
    LogFacts& facts_;
    SizeFacts sizes_;
    MappedSizes mapped_sizes_{sizes_};
    RefusedNames refused_{tables_, facts_.files};
    struct Listing {
        int64_t begin;
        uint64_t bytes;
    };
    std::unordered_map<HandleId, Listing> listings_;  // that have not returned their end
    FileFacts nobody_;                                // stands in for ids that name nothing
};

/// Kinds the gatherer learns from; all others are skipped without making a row of them.
std::array<bool, 256> kinds_of_interest() {
    std::array<bool, 256> of_interest{};
    for (const OpInfo& row : all_ops()) {
        of_interest[static_cast<size_t>(row.kind)] =
            row.is(Trait::path) || row.is(Trait::changes) || row.is(Trait::writes) || row.is(Trait::reads) ||
            row.is(Trait::async) || row.is(Trait::memory) || row.kind == OpKind::getdents || row.kind == OpKind::lseek;
    }
    return of_interest;
}

}  // namespace

LogFacts gather_facts(const LogReader& log) {
    LogFacts facts;
    Gatherer gatherer(log.tables(), facts);
    const auto of_interest = kinds_of_interest();
    OpBlock block;
    for (const BlockInfo& place : log.blocks()) {
        log.decode(place, block);
        for (size_t i = 0; i < block.count(); ++i) {
            if (of_interest[block.kind[i]]) {
                gatherer.op(block.row(i));
            }
        }
        log.forget(place);
    }
    gatherer.finish();
    std::stable_sort(facts.renames.begin(), facts.renames.end(),
                     [](const RenameFact& a, const RenameFact& b) { return a.time < b.time; });
    find_renamed_directories(log.tables(), facts);
    std::stable_sort(facts.sizes.begin(), facts.sizes.end(),
                     [](const SizeFact& a, const SizeFact& b) { return a.time < b.time; });
    return facts;
}

}  // namespace reprise
