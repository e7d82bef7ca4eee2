// SPDX-License-Identifier: MIT
// The marker file: what `prepare` leaves in a root, and without which nothing destructive runs there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "replay/plan/paths.h"
#include "replay/prepare/root_lock.h"

namespace reprise {

/// What regular files hold.
enum class Content : uint8_t {
    random,    ///< bytes that neither compress nor repeat; a function of path and offset
    zero,      ///< written zeros
    sparse,    ///< a size and nothing else
    recorded,  ///< random bytes and zeros, that compress as the recorded files do
};
std::string_view content_name(Content content);
std::optional<Content> content_by_name(std::string_view name);

enum class MarkerState : uint8_t {
    incomplete,  ///< `prepare` was cut short; it can go on
    resetting,   ///< `prepare --reset` was cut short; it must be run again
    complete,    ///< everything is as it was before the recording
    changed,     ///< a replay that changes files has begun since
};
std::string_view marker_state_name(MarkerState state);

/// Stored as JSON, so that people can read it.
struct Marker {
    MarkerState state = MarkerState::incomplete;
    std::string tool;         ///< name and version of the writer
    std::string log;          ///< path of the log as given, for people
    std::string fingerprint;  ///< of the log: log_fingerprint()
    std::string filter;       ///< OpFilter::to_string()
    Content content = Content::random;
    PathMap maps;
    uint32_t copies = 1;          ///< the most copies of the job (--gpus) for which files may lie here
    bool listing_entries = true;  ///< ListingEntries::add
    int64_t time_unix_ns = 0;     ///< when the state was written

    /// Only `prepare --reset` goes on: a replay changed files, or an earlier reset was interrupted.
    bool needs_reset() const { return state == MarkerState::changed || state == MarkerState::resetting; }

    bool operator==(const Marker&) const = default;
};

/// nullopt where the root has none. Throws Error (bad_input) where there is one that cannot be understood, Error
/// (machine) where it cannot be read. `root_name` is for messages.
std::optional<Marker> read_marker(int root, std::string_view root_name);
/// Whether a marker lies in that folder, whatever it says.
bool is_prepared(const std::filesystem::path& root);
/// Marker::needs_reset() of that folder; false where there is none, or no marker in it.
bool needs_reset(const std::filesystem::path& root);
/// Replaces the marker in one step and syncs it; `lock` then holds the new one. Where `lock` holds nothing, there was
/// no marker, and one that has appeared since is not replaced. Throws Error (machine).
void write_marker(int root, std::string_view root_name, const Marker& marker, RootLock& lock);
/// Says that a replay is about to change files. Does nothing where there is no marker; where it says so already, only
/// looks whether this user may. Throws Error (machine).
void mark_changed(int root, std::string_view root_name, RootLock& lock, uint32_t copies = 1);

/// Marker::copies of a root of that log; 1 where the root is none.
uint32_t copies_below(const std::filesystem::path& root, std::string_view fingerprint);

/// 16 hex digits that tell logs apart: a hash of the header, the file, handle, process and task tables, the number of
/// ops and the end of the last one. The same recording has the same one however it was compressed.
std::string log_fingerprint(const LogReader& log);

}  // namespace reprise
