// SPDX-License-Identifier: MIT
// How long the calls of a log take in a prediction.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/cached_pages.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/access.h"
#include "replay/plan/plan.h"
#include "replay/plan/reads.h"
#include "replay/predict/cold_names.h"
#include "replay/predict/virtual_data.h"
#include "replay/predict/virtual_storage.h"

namespace reprise {

/// What bears on storage and is not modelled: such ops take their recorded time, requests that of a call.
enum class Unmodelled : uint8_t { drops, sizes, listings, attributes, requests };
inline constexpr size_t kUnmodelledKinds = 5;
/// "cache drop"; an s makes it the plural.
std::string_view unmodelled_name(Unmodelled what);

/// A call that takes its time in steps: others get at the device, or bring pages that it needs, in between.
struct VirtualCall {
    bool done = false;

    struct Write {
        HandleId handle = 0;
        int64_t offset = 0, bytes = 0, own_flags = 0;
    };
    /// One of several reads, one after the other (Plan::access).
    struct Piece {
        HandleId handle = 0;
        int64_t offset = 0, bytes = 0;
    };
    PageWalk walk;
    int64_t least_end = 0;       // it is not over before
    std::optional<Write> after;  // what it read goes where
    std::vector<Piece> pieces;   // still to be read, the last one first
    bool at_piece = false;       // the next one begins
    bool by_ring = false;        // nobody waits for it at once
};

class VirtualCalls {
public:
    /// `plan` and `model` outlive it.
    VirtualCalls(const Plan& plan, const StorageModel& model, bool warm, std::optional<PageCachePolicy> policy = {})
        : plan_(plan),
          tables_(plan.log->tables()),
          model_(model),
          warm_(warm),
          limited_(policy.has_value()),
          storage_(model, warm, policy),
          data_(tables_),
          named_(tables_.files.size()),
          listed_(tables_.files.size()),
          fetched_(tables_.files.size()) {
        for (auto& [file, holes] : holes_at_first(*plan.log)) {
            first_holes_.insert_or_assign(data_.of(file), std::move(holes));
        }
        storage_.holes().begin_with([this](FileId file) { return first_holes(file); });
        if (!warm && model.open_cold_ns > 0) {
            cold_names_.emplace(*plan.log, model.file_system);
        }
    }

    /// False for what a replay does not perform either: it takes its recorded time.
    bool performs(const OpBlock& b, size_t i) const;
    /// A call begins at `now`. When it is over if `done`, else when to go on with it. Calls of start() and go_on() come
    /// in the order of `now`, of all tasks.
    int64_t start(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t go_on(VirtualCall& call, int64_t now);
    /// The same of an asynchronous request (replay/plan/requests.h); it goes on by go_on().
    int64_t start_request(VirtualCall& call, HandleId handle, const AsyncRequest& asked, int64_t now);
    /// Whether the call that submits a request returns only when that is done: libaio without O_DIRECT.
    bool waits_in_submit(const OpBlock& b, size_t i) const;
    /// Whether the page cache has it all, so that the call that submits it copies it.
    static bool was_cached(const VirtualCall& call) { return call.done && !call.walk.fetched && call.walk.done; }

    /// Of a call whose time is not asked for here.
    void count_moved(const OpBlock& b, size_t i);
    void count_moved(const AsyncRequest& asked);
    const VirtualStorage& storage() const { return storage_; }
    void limit_cache(int64_t bytes, int64_t now) { storage_.limit(bytes, now); }
    uint64_t bytes_read = 0, bytes_written = 0, touched_pages = 0;
    uint64_t scattered_reads = 0;  // blocks of inodes and directories read for files that lie among others
    std::array<uint64_t, kUnmodelledKinds> unmodelled{};  // ops, by Unmodelled

private:
    /// Of hostile durations the sum must not overflow.
    static int64_t recorded(const OpBlock& b, size_t i) {
        return std::clamp<int64_t>(b.duration[i], 0, int64_t{1} << 50);
    }
    FileId file_of(uint32_t handle) const;
    FileId data_of(uint32_t handle) const { return data_.of(file_of(handle)); }
    int64_t size_of(FileId file) const;
    bool is_storage(uint32_t handle) const;
    bool clones(const OpBlock& b, size_t i, int64_t moved) const;
    int64_t open_flags(uint32_t handle) const;
    struct Mapping {
        FileId file = 0;  // its row
        HandleId handle = 0;
        int64_t offset = 0;                   // where it begins in the file, bytes
        std::map<int64_t, MapAdvice> advice;  // from this offset in the mapping on, bytes
    };
    int64_t without_steps(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t sync(const OpBlock& b, size_t i, int64_t now);
    int64_t find_name(FileId file, int64_t now);
    int64_t list(const OpBlock& b, size_t i);
    bool was_fetched(const OpBlock& b, size_t i);
    void name(const OpBlock& b, size_t i, int64_t now);
    void forget_replaced(FileId by);
    /// What calls do to the data of files (virtual_files.cpp):
    std::optional<RangeSet> first_holes(FileId file) const;
    void make_empty(FileId file);
    void truncate(FileId file, int64_t size, int64_t now);
    void allocate(FileId file, int64_t from, int64_t bytes, int64_t mode);
    void clone(const OpBlock& b, size_t i, int64_t moved);
    int64_t data(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t read(VirtualCall& call, HandleId handle, int64_t offset, int64_t bytes, int64_t now);
    void note_size(HandleId handle, int64_t offset, int64_t bytes);
    int64_t write(HandleId handle, int64_t offset, int64_t bytes, int64_t own_flags, int64_t now,
                  VirtualDevice::By by = VirtualDevice::By::call);
    int64_t map(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t advise(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    void drop(FileId file, int64_t offset, int64_t bytes, int64_t now);
    int64_t touch(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t touch_warm(const Mapping& mapping, const OpBlock& b, size_t i, int64_t now);
    int64_t populate(VirtualCall& call, const Mapping& mapping, const OpBlock& b, size_t i, int64_t now);
    /// With Plan::access (virtual_access.cpp):
    uint8_t access_of(HandleId handle) const { return plan_.access ? plan_.access->handle(handle) : uint8_t{0}; }
    bool reads_map(uint32_t map) const { return plan_.access && plan_.access->reads_map(map); }
    int64_t read_blocks(HandleId handle, int64_t offset, int64_t bytes, int64_t now,
                        VirtualDevice::By by = VirtualDevice::By::call);
    int64_t read_mapped(VirtualCall& call, HandleId handle, int64_t offset, int64_t bytes, int64_t now);
    int64_t prefetch(HandleId handle, int64_t now);
    int64_t on_read_map(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    bool add_pieces(VirtualCall& call, const Mapping& mapping, int64_t at, int64_t bytes) const;
    std::optional<int64_t> next_piece(VirtualCall& call, int64_t now);
    int64_t asynchronous(VirtualCall& call, const OpBlock& b, size_t i, int64_t now);
    int64_t perform_request(VirtualCall& call, HandleId handle, const AsyncRequest& asked, int64_t now);
    void add_range(PageWalk& walk, const Mapping& mapping, int64_t at, int64_t bytes) const;
    bool writes_file(uint32_t map) const {
        return map < plan_.map_flags.size() && (plan_.map_flags[map] & kMapWritesFile) != 0;
    }
    void note_unmodelled(const OpBlock& b, size_t i);
    void note_unmodelled(Unmodelled what) { ++unmodelled[static_cast<size_t>(what)]; }

    const Plan& plan_;
    const Tables& tables_;
    const StorageModel& model_;
    const bool warm_, limited_;
    VirtualStorage storage_;
    std::optional<ColdNames> cold_names_;  // none: names are cached, or what finding one takes is not known
    VirtualData data_;
    Holes first_holes_;          // by VirtualData::of()
    std::vector<bool> named_;    // files whose name is cached
    std::vector<bool> listed_;   // directories that are cached
    std::vector<bool> fetched_;  // files of which something was fetched since their attributes were asked for
    std::unordered_map<uint32_t, int64_t> direct_;  // of instances whose O_DIRECT was set anew: 0 or O_DIRECT
    std::unordered_map<uint32_t, Mapping> maps_;
    std::unordered_map<uint64_t, RunCursor> cursors_;   // by AccessPlan::key()
    std::unordered_map<uint64_t, int64_t> touched_to_;  // likewise: where the last touch ended
};

}  // namespace reprise
