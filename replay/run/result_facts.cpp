// SPDX-License-Identifier: MIT
// What the result of a run says of itself when several of its figures are taken together.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "replay/run/runner.h"

namespace reprise {

bool device_reads_known(const ReplayResult& result) {
    constexpr std::string_view kAccounted[] = {"tmpfs", "ramfs", "overlay", "btrfs"};  // without a device of their own
    if (result.machine.is_fuse()) {
        return false;  // a process of its own reads, whatever little is counted here
    }
    return result.device_read_bytes.value_or(0) != 0 || result.device_counter ||
           std::find(std::begin(kAccounted), std::end(kAccounted), result.machine.file_system) != std::end(kAccounted);
}

std::optional<uint64_t> device_data(const ReplayResult& result) {
    if (!result.cache || !result.cache->data_bytes || result.cache->unseen != 0) {
        return std::nullopt;
    }
    if (result.memory && result.memory->group.reached != 0) {
        return std::nullopt;  // what the job wrote may have been read back
    }
    if (result.fidelity.caches_dropped > 0) {
        return std::nullopt;  // what was read before that was read again
    }
    // With much more the kernel takes pages back, and reads them again. A control group may leave less than there is.
    const uint64_t machine = std::min(result.machine.memory_bytes, result.free_memory.value_or(UINT64_MAX));
    const uint64_t most = (result.memory ? result.memory->limit : machine) / 4;
    if (*result.cache->data_bytes > most || result.bytes_written > most) {
        return std::nullopt;
    }
    // What is read past the page cache comes from the device each time.
    const uint64_t direct = result.access_counts[AccessCount::direct_fetched];
    return *result.cache->data_bytes + std::min(direct, UINT64_MAX - *result.cache->data_bytes);
}

uint64_t moved_by_others(const ReplayResult& result) {
    if (!result.device_counter || !result.device_read_bytes || !result.dirtied_bytes) {
        return 0;
    }
    const auto more = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
    // A file system that reads in threads of its own accounts nothing to the run.
    uint64_t read = *result.device_read_bytes;
    if (read == 0) {
        read = std::max(result.bytes_read, result.cache ? result.cache->bytes : uint64_t{0});
    }
    // The journal writes some of it again, and a block or two for each sync and name.
    constexpr uint64_t kJournal = 64 << 10, kAgain = 2;
    uint64_t changes = 0;
    for (const OpInfo& row : all_ops()) {
        const bool journals = row.is(Trait::syncs) || row.is(Trait::makes_name) || row.is(Trait::ends_name);
        const size_t kind = static_cast<size_t>(row.kind);
        changes += journals && kind < result.latency.size() ? result.latency[kind].count() : 0;
    }
    const uint64_t written = *result.dirtied_bytes + *result.dirtied_bytes / kAgain + changes * kJournal;
    return more(result.device_counter->read_bytes, read) + more(result.device_counter->write_bytes, written);
}

bool hides_touches(const ReplayResult& result) {
    return result.cache && result.cache->choice.regime == CacheRegime::cold && result.cache->recorded.hides_touches();
}

int64_t names_served_by_memory(const ReplayResult& result) {
    constexpr uint64_t kPart = 10, kBytesPerName = 128;  // half of an inode of ext4
    constexpr std::string_view kMemory[] = {"tmpfs", "ramfs", "hugetlbfs"};
    const bool memory =
        std::find(std::begin(kMemory), std::end(kMemory), result.machine.file_system) != std::end(kMemory);
    const bool asked = result.cache && (result.cache->dropped_all || result.cache->choice.asked == CacheRegime::warm);
    if (result.doubts.names_ns == 0 || result.machine.file_system.empty() || memory || asked ||
        result.name_waits * kPart > result.recorded_name_waits) {
        return 0;
    }
    // A compact file system has the inodes of many names in one block.
    const uint64_t data = result.cache ? result.cache->data_bytes.value_or(0) : 0;
    const bool read = result.device_read_bytes.value_or(0) > data + result.recorded_name_waits * kBytesPerName;
    return read ? 0 : result.names_cached_ns;
}

bool reads_no_data(const ReplayResult& result) {
    constexpr uint64_t kLeast = 1 << 20, kPart = 10;
    if (!result.cache || !device_reads_known(result) || result.cache->memory_files + result.cache->unseen != 0) {
        return false;
    }
    const CacheReport& cache = *result.cache;
    const uint64_t holes = std::min({cache.hole_bytes, cache.recorded.hole_bytes, cache.bytes});  // as in the job
    const uint64_t little = (cache.bytes - holes) / kPart;
    if (cache.bytes - holes < kLeast) {
        return false;
    }
    // Some file systems read in threads of their own.
    const uint64_t device = std::max(result.device_read_bytes.value_or(0),
                                     result.device_counter ? result.device_counter->read_bytes : uint64_t{0});
    // What passes the page cache by, or is taken out of it again, was read all the same.
    const bool all_read = (cache.after && *cache.after >= cache.bytes - little) ||
                          (result.reads_direct && result.bytes_read >= cache.bytes - little);
    // Others may read from the device meanwhile: files without blocks are none of it.
    const bool no_blocks = cache.hole_bytes - holes + little >= cache.bytes - holes;
    // Of a file whose name was not in memory, the pages may have been, and served it.
    const bool seen = cache.uncached_names <= cache.files / kPart;
    return cache.before.value_or(cache.bytes) <= little && (no_blocks || (all_read && seen && device <= little));
}

}  // namespace reprise
