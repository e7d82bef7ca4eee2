// SPDX-License-Identifier: MIT
// The preparation of a root for a log: from options to a plan that can be shown, and from the plan to files.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/contents.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/unique_fd.h"
#include "replay/plan/paths.h"
#include "replay/prepare/layout.h"
#include "replay/prepare/prepare_peers.h"
#include "replay/prepare/root_marker.h"
#include "replay/prepare/survey.h"
#include "replay/prepare/write.h"

namespace reprise {

struct PrepareOptions {
    std::filesystem::path root = {};
    std::string log_name = {};  ///< for the marker and messages
    std::string tool = {};      ///< name and version, for the marker
    /// Of the recording, where the log given is a variant of it; empty: that of the log.
    std::string fingerprint = {};
    /// Not given: as the marker says where the root was prepared for this log, else random, no rules, the default
    /// filter.
    std::optional<Content> content = {};
    std::optional<PathMap> maps = {};
    std::optional<OpFilter> filter = {};
    uint32_t copies = 1;                       ///< of the recorded job, that the log runs
    std::optional<bool> listing_entries = {};  ///< lay out what makes listings as long as recorded; not given: as above
    bool reset = false;
    unsigned threads = 0;           ///< 0: default_prepare_threads()
    PreparePeers* peers = nullptr;  ///< ranks that do the same at the same time; none: this process does all
};

/// More than processors, as most of them wait for the device.
unsigned default_prepare_threads();

/// Made in three steps that the caller shows between: construct (reads the log, looks at the root, changes nothing),
/// check (refuses what must not or cannot be done), run.
class Preparation {
public:
    /// Locks the root until it is destroyed. Throws Error: machine where the root cannot be used at all or another run
    /// uses it, bad_input for a damaged log or marker.
    Preparation(const LogReader& log, PrepareOptions options);
    ~Preparation();
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

    const Layout& layout() const { return layout_; }
    const Survey& survey() const { return survey_; }
    const PrepareOptions& options() const { return options_; }
    Content content() const { return marker_.content; }
    const Marker& marker() const { return marker_; }  ///< as it will be written
    /// The one found in the root.
    const std::optional<Marker>& found_marker() const { return found_; }
    bool root_missing() const { return !root_.valid(); }
    /// Things worth saying before going on, as sentences.
    const std::vector<std::string>& remarks() const { return remarks_; }
    /// Nothing to make, remove or mend, and the marker already says so.
    bool nothing_to_do() const;

    /// Throws Error (machine) where files stand in the way, an earlier run must be reset, or it does not fit.
    void check() const;
    /// Carries it out; check() must have passed. True: complete. False: `state.stop` ended it early; the marker says so
    /// and the same command goes on.
    bool run(WriteState& state, const std::function<void()>& tick);

private:
    void open_root();
    void choose_settings();
    void look_at_root();
    bool holds_the_files() const;
    void note_unnamed_files();
    void note_recorded_files();
    void check_sizes() const;
    void make_root();
    bool leads() const { return options_.peers == nullptr || options_.peers->place() == 0; }
    bool run_alone(WriteState& state, const std::function<void()>& tick);
    bool run_together(WriteState& state, const std::function<void()>& tick);
    void mark(MarkerState state);
    WriteJob write_job() const;

    const LogReader& log_;
    PrepareOptions options_;
    std::string root_name_;
    UniqueFd root_, parent_;
    RootLock lock_;
    std::optional<Marker> found_;
    Marker marker_;
    Contents contents_;  // for Content::recorded
    OpFilter filter_;
    Layout layout_;
    Survey survey_;
    Licence licence_ = Licence::strange;
    std::vector<std::string> remarks_;
};

}  // namespace reprise
