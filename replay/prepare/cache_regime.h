// SPDX-License-Identifier: MIT
// What of the files that a replay reads is in the page cache when it begins: cold, warm, as recorded, or left alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/support/range_set.h"
#include "replay/prepare/cache_plan.h"

namespace reprise {

enum class CacheRegime : uint8_t {
    cold,      ///< nothing
    warm,      ///< all that the replay reads
    recorded,  ///< what the recording did not have to fetch
    as_is,     ///< whatever there is
};
std::string_view cache_regime_name(CacheRegime regime);
std::optional<CacheRegime> cache_regime_by_name(std::string_view name);

struct CacheChoice {
    enum class Why : uint8_t {
        asked,
        fetched,    ///< the recording read from its device
        in_memory,  ///< the recording did not
        unknown,    ///< the log does not say
    };
    CacheRegime regime = CacheRegime::as_is;
    std::optional<CacheRegime> asked;  ///< another one than `regime` where the log does not know enough
    Why why = Why::unknown;
};
std::string_view cache_why_name(CacheChoice::Why why);
/// Where none is asked for, by what the recording fetched of what it read: cold from kColdShare on, else
/// recorded. Where its pages are not known, cold or as-is.
CacheChoice choose_regime(std::optional<CacheRegime> asked, const RecordedCache& recorded);
inline constexpr double kColdShare = 0.9;
inline constexpr double kFetchedShare = 0.01;
inline constexpr double kFetchedShareEstimated = 0.5;

/// A file of which something is in memory although it should be cold.
struct StillCached {
    std::string path;
    uint64_t bytes = 0;
    std::string why;
};

struct CacheRequest {
    std::optional<CacheRegime> regime = {};  ///< none: choose_regime
    bool drop_all = false;                   ///< empty the caches of the whole machine as well
};

struct CacheReport {
    CacheChoice choice;
    RecordedCache recorded;
    bool dropped_all = false;
    uint64_t files = 0;  ///< that are there and are read
    uint64_t bytes = 0;  ///< that are read of them, each once
    /// Of these bytes in memory: as found, when the run began, when it was over. None: this user may see no file.
    std::optional<uint64_t> found, before, after;
    uint64_t unseen = 0;  ///< files that this user may not see
    uint64_t uncached_names =
        0;  ///< files not looked at before the run, as that would have brought their names into memory
    uint64_t memory_files = 0;                    ///< files on a tmpfs or the like
    uint64_t memory_file_bytes = 0;               ///< of `bytes`, those of such files
    uint64_t stayed_files = 0, stayed_bytes = 0;  ///< in memory although they should be cold
    std::vector<StillCached> stayed;              ///< the largest of these, at most kMostStayed
    uint64_t missing_bytes = 0;                   ///< not in memory although they should be
    /// Files that hold far less on their device than is read of them (sparse, compressed), and how much less.
    uint64_t sparse_files = 0, hole_bytes = 0;
    /// Data that the device can have served at most; none: it may serve some of it again and again.
    std::optional<uint64_t> data_bytes;

    static constexpr size_t kMostStayed = 3;
};

/// Puts the files of a replay into a regime and says what came of it. Opens files beneath the root only, to read.
class CacheKeeper {
public:
    /// Called about twenty times a second.
    using Tick = std::function<void(uint64_t bytes_done, uint64_t bytes_total)>;

    /// `root`: a directory descriptor, which outlives this.
    CacheKeeper(int root, CachePlan plan, unsigned threads, Tick tick = {});

    /// What the replay reads of files that are there before it, each page once, and what is mapped around page faults
    /// (RecordedCache::around_bytes). Known before apply(), which does not
    /// look at files whose names are not in memory.
    uint64_t wanted_bytes() const;
    /// Before the run. Throws Error (machine) where all caches are to be emptied and this user may not.
    void apply(const CacheRequest& request);
    /// Also before the run: what is in memory now, where a limit may have taken some of it back.
    void look_before();
    /// During the run, from any thread: the share of what the replay reads that is in memory, by at most so many files.
    /// Brings no name into memory. None: this user may not see it, or the kernel finds no name there.
    std::optional<double> resident_share(size_t most_files) const;
    /// After the run.
    void look_again();
    const CacheReport& report() const { return report_; }

private:
    /// There is one for each file, of which there may be millions.
    struct FileState {
        bool there = false, known = true, in_memory = false, uncached_name = false;
        dev_t device = 0;
        ino_t inode = 0;
        uint64_t bytes = 0;  // that are read
        uint64_t size = 0;   // of the whole file, in whole pages
        uint64_t holes = 0;  // of what is read, if that is much
        uint64_t found = 0, before = 0, after = 0;
        uint64_t left = 0;     // of the whole file, after it was dropped
        uint64_t missing = 0;  // of what should be there
    };
    void each_once(const std::function<void(const FileState&)>& visit) const;
    enum class Name : uint8_t { any, cached };
    struct Opened;

    Opened open(size_t target, Name name);
    RangeSet reads_of(size_t target, const Opened& file) const;
    uint64_t resident(size_t target, const Opened& file, const RangeSet& ranges);
    void each(const std::function<void(size_t target)>& work);
    void each_of(const std::vector<size_t>& targets, const std::function<void(size_t target)>& work);
    void in_turn(size_t count, const std::function<size_t(size_t)>& target_at,
                 const std::function<void(size_t target)>& work);
    void look(size_t target, Name name, uint64_t FileState::*into);
    bool names_are_out();
    void make_cold();
    void drop(size_t target, bool first, bool sync);
    void look_after(size_t target);
    std::vector<size_t> still_cached() const;
    void sync_devices(const std::vector<size_t>& targets);
    void fill(size_t target, const RangeSet& wanted, bool first);
    void make_warm(RangeSet CacheTarget::*what, bool first);
    void look_filled(size_t target, const RangeSet& wanted);
    uint64_t sum_up();

    const int root_;
    const CachePlan plan_;
    const unsigned threads_;
    const Tick tick_;
    std::vector<FileState> states_;
    CacheReport report_;
    std::atomic<uint64_t> done_{0};
    std::atomic<bool> stop_{false};
};

}  // namespace reprise
