// SPDX-License-Identifier: MIT
#include "replay/plan/access.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "replay/plan/fault_reach.h"

namespace reprise {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kFaultAround = int64_t{64} << 10;                // that a fault maps (fault_around_bytes)
constexpr int64_t kHugeFault = int64_t{2} << 20;                   // that it maps at most
constexpr uint8_t kReads = 1, kWrites = 2, kOther = 4, kMaps = 8;  // what an instance is used for

/// Finds out what each instance and each mapping is used for.
class Survey {
public:
    Survey(const Plan& plan, const AccessChange& change)
        : plan_(plan), tables_(plan.log->tables()), change_(change), uses_(tables_.handles.size()) {}

    AccessPlan run() {
        out_.change = change_;
        out_.handles.resize(uses_.size());
        out_.maps.resize(plan_.map_limit);
        OpBlock block;
        // Mappings may be touched by tasks that come before the one that made them.
        for (const bool touches : {false, true}) {
            if (touches && change_.mmap_as_read == 0) {
                break;
            }
            for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
                for (const BlockInfo& where : plan_.tasks[task].blocks) {
                    plan_.log->decode(where, block);
                    for (size_t i = 0; i < block.count(); ++i) {
                        if (keeps(plan_, block, i)) {
                            touches ? touch(task, block, i) : use(block, i);
                        }
                    }
                    plan_.log->forget(where);
                }
            }
        }
        finish_runs();
        decide();
        return std::move(out_);
    }

private:
    /// A file of the job, on storage.
    bool holds_data(HandleId handle) const {
        if (handle == 0 || handle >= tables_.handles.size() ||
            (handle < plan_.handle_flags.size() && plan_.handle_flags[handle] != 0 &&
             (plan_.handle_flags[handle] & (kHandleLeftOut | kHandleNotFile)) != 0)) {
            return false;
        }
        const FileId id = tables_.handles[handle].file;
        if (id == 0 || id >= tables_.files.size() || !plan_.keeps_file(id)) {
            return false;
        }
        const FileRow& file = tables_.files[id];
        return file.role != Role::ipc && (file.type == FileType::regular || file.type == FileType::unknown);
    }

    void note(HandleId handle, uint8_t what) {
        if (handle < uses_.size()) {
            uses_[handle] |= what;
        }
    }

    void use(const OpBlock& b, size_t i) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        const OpInfo& row = info(kind);
        if (kind == OpKind::mmap) {
            map(b, i);
        } else if (row.is(Trait::submits)) {
            const AsyncRequest asked = async_request(b, i);
            note(b.handle[i], asked.does == AsyncRequest::Does::read    ? kReads
                              : asked.does == AsyncRequest::Does::write ? kWrites
                                                                        : uint8_t{0});
        } else if (row.is(Trait::reads) && row.is(Trait::writes)) {
            note(b.handle[i], kOther);
            note(b.handle2[i], kWrites);
        } else if (row.is(Trait::reads)) {
            note(b.handle[i], kReads);
        } else if (row.is(Trait::writes) || kind == OpKind::ftruncate || kind == OpKind::fallocate) {
            note(b.handle[i], kWrites);
        } else if (kind == OpKind::fcntl && b.arg[i] == F_SETFL) {
            note(b.handle[i], kOther);
        }
    }

    void map(const OpBlock& b, size_t i) {
        const uint32_t map = b.map[i];
        const bool writes = map < plan_.map_flags.size() && (plan_.map_flags[map] & kMapWritesFile) != 0;
        note(b.handle[i], writes ? kWrites : kMaps);
        if (map < out_.maps.size() && b.result[i] >= 0 && !writes && holds_data(b.handle[i])) {
            out_.maps[map] = change_.mmap_as_read != 0 ? 1 : 0;
            begins_.resize(out_.maps.size());
            begins_[map] = std::clamp<int64_t>(b.offset[i], 0, INT64_MAX / 2);
            files_.resize(out_.maps.size());
            files_[map] = tables_.handles[b.handle[i]].file;
            has_maps_ = true;
        }
    }

    void touch(TaskId task, const OpBlock& b, size_t i) {
        const uint32_t map = b.map[i];
        if (static_cast<OpKind>(b.kind[i]) == OpKind::touch && b.flags[i] != kTouchAgain && out_.reads_map(map)) {
            std::vector<TouchRun>& runs = out_.runs[AccessPlan::key(task, map)];
            const int64_t begin = begins_[map];
            const FileId file = files_[map];
            each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
                if (at > INT64_MAX / 2 - bytes - kHugeFault) {
                    return;
                }
                if (!runs.empty() && follows(runs.back(), at, begin, file)) {
                    TouchRun& run = runs.back();
                    run.to = at >= run.last ? whole(at + begin, at - run.last) - begin : run.to;
                    run.last = std::max(run.last, at + bytes);
                } else {
                    runs.push_back({at, at + bytes, at + bytes});
                }
            });
        }
    }

    /// Whether a touch goes on with a run: what lies between came with the fault before it. `begin`: of the mapping in
    /// its file.
    bool follows(const TouchRun& run, int64_t at, int64_t begin, FileId file) const {
        return at >= run.from &&
               (at <= run.last + kFaultAround || came_with_fault(plan_, file, run.last + begin, at + begin, true));
    }

    /// As far as a fault maps whose last one left out `skipped` bytes.
    static int64_t whole(int64_t at, int64_t skipped) {
        const auto step = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(skipped + kPage)));
        const int64_t mapped = std::clamp(step, kPage, kHugeFault);
        return (at / mapped + 1) * mapped;
    }

    void finish_runs() {
        for (auto& [key, runs] : out_.runs) {
            for (TouchRun& run : runs) {
                run.to = std::max(run.to, run.last);
            }
        }
    }

    void decide() {
        bool reads = false, writes = false, opens = false;
        for (HandleId handle = 1; handle < uses_.size(); ++handle) {
            const uint8_t uses = uses_[handle];
            if (!holds_data(handle)) {
                continue;
            }
            const bool written = (uses & kWrites) != 0, read = (uses & kReads) != 0;
            const bool already = (tables_.handles[handle].flags & kOpenDirect) != 0;
            auto flags = static_cast<uint8_t>(written && change_.sync_writes ? kWritesSync : 0);
            writes = writes || written;
            const bool wanted = (read && !already) || ((uses & kMaps) != 0 && change_.mmap_as_read != 0);
            reads = reads || wanted;
            opens = opens || read || (uses & kMaps) != 0;
            // Whoever receives it has the flags of the instance, too.
            const bool passed = plan_.passed_index.contains(tables_.handles[handle].file);
            if (wanted && (written || passed || (uses & kOther) != 0)) {
                out_.also_written += change_.direct || change_.read_as_mmap ? 1 : 0;
            } else if (wanted) {
                flags |= change_.direct ? kReadsDirect : 0;
                flags |= change_.read_as_mmap && read ? kReadsMapped : 0;
            }
            if (change_.prefetch && !written && !already && (read || (uses & kMaps) != 0)) {
                flags |= kPrefetched;
            }
            out_.handles[handle] = flags;
        }
        const auto refuse = [&](bool there, const char* option, const char* what) {
            if (!there) {
                throw usage_error(std::string("--") + option + ": " + escape_line(plan_.log->path().string()) + what,
                                  "leave it out, or see what the job does: reprise info");
            }
        };
        refuse(!change_.direct || reads, "direct", " reads no data through the page cache");
        refuse(!change_.sync_writes || writes, "sync-writes", " writes no data");
        refuse(!change_.read_as_mmap || reads, "read-as-mmap", " reads no data through the page cache");
        refuse(!change_.prefetch || opens, "prefetch", " reads no data");
        refuse(change_.mmap_as_read == 0 || (has_maps_ && !out_.runs.empty()), "mmap-as-read",
               " touches no mapped data file");
    }

    const Plan& plan_;
    const Tables& tables_;
    const AccessChange change_;
    std::vector<uint8_t> uses_;
    std::vector<int64_t> begins_;  // of mappings in their files, bytes
    std::vector<FileId> files_;    // of mappings
    AccessPlan out_;
    bool has_maps_ = false;
};

std::string times(uint64_t a, uint64_t b) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b));
    return text;
}

}  // namespace

const std::vector<TouchRun>* AccessPlan::runs_of(TaskId task, uint32_t map) const {
    const auto found = runs.find(key(task, map));
    return found == runs.end() ? nullptr : &found->second;
}

AccessPlan plan_access(const Plan& plan, const AccessChange& change) { return Survey(plan, change).run(); }

std::string part_blocks_sentence(const AccessCounts& counts) {
    using enum AccessCount;
    const uint64_t reads = counts[part_reads], writes = counts[part_writes];
    if (reads + writes == 0) {
        return {};
    }
    std::string text = "this storage refuses O_DIRECT on parts of a block: ";
    if (reads != 0) {
        text += counted(reads, "read") + " took whole ones (" + format_bytes(counts[part_fetched]) + " for " +
                format_bytes(counts[part_asked]) + ")";
    }
    if (writes != 0) {
        text += (reads != 0 ? ", " : "") + counted(writes, "write") + " of " + format_bytes(counts[part_written]) +
                " went through the page cache, synced";
    }
    return text;
}

std::string waited_sentence(const AccessCounts& counts) {
    const uint64_t calls = counts[AccessCount::waited];
    return calls == 0 ? ""
                      : counted(calls, "call that was", "calls that were") +
                            " not to wait (RWF_NOWAIT) had to here: the job would go on, and have another thread wait";
}

namespace {

std::string changed_sentence(const AccessPlan& plan, const AccessCounts& counts) {
    using enum AccessCount;
    std::string text;
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
    if (plan.change.mmap_as_read != 0) {
        add(counted(counts[map_reads], "read") + " of " + format_bytes(counts[map_read_bytes]) + " in place of " +
            format_bytes(counts[touched_bytes]) + " of page faults (first uses: later ones left no trace)");
    }
    if (plan.change.read_as_mmap) {
        add(counted(counts[mapped_reads], "read") + " of " + format_bytes(counts[mapped_bytes]) + " as page faults");
    }
    if (plan.change.direct) {
        add(counted(counts[direct_reads], "read") + " with O_DIRECT, " + format_bytes(counts[direct_fetched]) +
            " fetched for " + format_bytes(counts[direct_asked]) + " (" +
            times(counts[direct_fetched], counts[direct_asked]) + " times)");
    }
    if (plan.change.sync_writes) {
        add(counted(counts[sync_writes], "write") + " of " + format_bytes(counts[sync_bytes]) + " with O_DSYNC");
    }
    if (plan.change.prefetch) {
        add(counted(counts[prefetched_files], "file") + " of " + format_bytes(counts[prefetched_bytes]) +
            " asked for when opened");
    }
    if (counts[direct_refused] + counts[unmappable] != 0) {
        add(counted(counts[direct_refused] + counts[unmappable], "open file") + " refused that (" +
            counted(counts[buffered_reads], "read") + " as recorded)");
    }
    if (plan.also_written != 0) {
        add(counted(plan.also_written, "open file is", "open files are") +
            " written or copied, too, and read as recorded");
    }
    return text;
}

}  // namespace

std::string access_sentence(const AccessPlan* plan, const AccessCounts& counts) {
    std::string text = plan == nullptr ? std::string() : changed_sentence(*plan, counts);
    for (const std::string& more : {part_blocks_sentence(counts), waited_sentence(counts)}) {
        text += (text.empty() || more.empty() ? "" : "; ") + more;
    }
    return text;
}

}  // namespace reprise
