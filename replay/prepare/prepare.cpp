// SPDX-License-Identifier: MIT
// The rules of preparation: what a root without, with a half-made and with a finished marker permits.
#include "replay/prepare/prepare.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/quantity.h"
#include "replay/plan/file_systems.h"
#include "replay/plan/shared_places.h"

namespace reprise {

namespace {

int64_t unix_now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string listed(const Examples& examples) {
    std::string text;
    for (const std::string& path : examples.paths) {
        text += "\n    " + path;
    }
    if (examples.count > examples.paths.size()) {
        text += "\n    ... and " + std::to_string(examples.count - examples.paths.size()) + " more";
    }
    return text;
}

}  // namespace

unsigned default_prepare_threads() { return std::clamp(2 * std::thread::hardware_concurrency(), 4u, 32u); }

Preparation::Preparation(const LogReader& log, PrepareOptions options)
    : log_(log), options_(std::move(options)), root_name_(options_.root.string()) {
    while (root_name_.size() > 1 && root_name_.ends_with('/')) {
        root_name_.pop_back();
    }
    if (options_.threads == 0) {
        options_.threads = default_prepare_threads();
    }
    open_root();
    if (root_.valid() && leads()) {
        lock_ = RootLock::take(root_.get(), root_name_, RootLock::Kind::exclusive);
    }
    if (root_.valid()) {
        found_ = read_marker(root_.get(), root_name_);
    }
    choose_settings();
    refuse_shared_places(log_.tables(), filter_, marker_.maps);
    const ListingEntries otherwise = options_.reset ? ListingEntries::remove : ListingEntries::none;
    layout_ = make_layout(log_, filter_, marker_.maps, marker_.listing_entries ? ListingEntries::add : otherwise);
    look_at_root();
    if (holds_the_files()) {
        marker_.listing_entries = false;
        layout_ = make_layout(log_, filter_, marker_.maps, ListingEntries::none);
        look_at_root();
        remarks_.emplace_back("The root holds files of the log already: no empty files are added beside them.");
    }
    note_unnamed_files();
    note_recorded_files();
}

void Preparation::look_at_root() {
    SurveyOptions survey;
    survey.licence = licence_;
    survey.content = marker_.content;
    survey.remake_data = options_.reset && found_ && found_->content != marker_.content;
    survey.threads = options_.threads;
    survey_ = survey_root(layout_, root_.get(), parent_.get(), root_name_, survey);
}

/// Whether somebody else placed files in a directory that would get empty ones: then the others lie there, too.
bool Preparation::holds_the_files() const {
    if (found_ || options_.listing_entries || survey_.listing_entries == 0) {
        return false;
    }
    std::set<uint32_t> directories;
    for (const LayoutEntry& entry : layout_.entries) {
        if (entry.listing) {
            directories.insert(entry.parent);
        }
    }
    for (uint32_t i = 0; i < layout_.entries.size(); ++i) {
        const LayoutEntry& entry = layout_.entries[i];
        if (!entry.listing && entry.type == FileType::regular && survey_.actions[i] == Action::keep &&
            directories.contains(entry.parent)) {
            return true;
        }
    }
    return false;
}

void Preparation::note_unnamed_files() {
    const uint64_t made = std::min(layout_.unnamed_files, survey_.listing_entries);
    if (made > 0) {
        remarks_.push_back(counted(made, "listing entry", "listing entries") +
                           " stand for files beside those that ops name: recorded inode numbers leave room for them.");
    }
}

void Preparation::note_recorded_files() {
    if (const int64_t holes = read_fact(log_.header(), fact::hole_bytes).value_or(0);
        holes != 0 && marker_.content != Content::sparse) {
        const auto files = static_cast<uint64_t>(read_fact(log_.header(), fact::sparse_files).value_or(0));
        remarks_.push_back(counted(files, "recorded file") + " held " + format_bytes(static_cast<uint64_t>(holes)) +
                           " compressed or sparse on the device: prepared with all of " +
                           (files == 1 ? "its" : "their") + " size.");
    }
    if (survey_.demands.size() > 1) {
        return;  // so the root has several
    }
    FileSystems recorded(log_);
    const Tables& tables = log_.tables();
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (tables.files[file].type == FileType::regular && filter_.keeps_file(tables, file)) {
            recorded.add(file, {.calls = 1, .bytes = tables.files[file].size});
        }
    }
    if (const std::string several = several_file_systems(recorded.sorted(), false); !several.empty()) {
        remarks_.push_back(several + ": all are in this root; use --not PATH or --map.");
        remarks_.back().front() = 'T';
    }
}

Preparation::~Preparation() = default;

void Preparation::open_root() {
    const auto refuse = [&](std::string_view why, std::string_view todo) {
        return machine_error("root " + escape_line(root_name_) + ": " + std::string(why), todo);
    };
    if (root_name_.empty()) {
        throw usage_error("the root is empty", "name a directory with --root");
    }
    root_.reset(::open(root_name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root_.valid() && errno == ENOTDIR) {
        throw refuse("not a directory", "name an empty or new directory");
    }
    if (!root_.valid() && errno != ENOENT) {
        throw refuse(reason(errno), remedy(errno, "name a directory that this user may read and write"));
    }
    if (root_.valid()) {
        struct stat here {};
        struct stat top {};
        if (::fstat(root_.get(), &here) == 0 && ::stat("/", &top) == 0 && here.st_dev == top.st_dev &&
            here.st_ino == top.st_ino) {
            throw refuse("this is the root of the file system", "name a dedicated directory");
        }
        return;
    }
    // A dangling link is also ENOENT, and making what it points to is not what was asked for.
    struct stat link {};
    if (::lstat(root_name_.c_str(), &link) == 0) {
        throw refuse("a dangling symbolic link", "name an existing or new directory");
    }
    const std::filesystem::path above = std::filesystem::path(root_name_).parent_path();
    parent_.reset(::open(above.empty() ? "." : above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent_.valid() && errno == EMFILE) {
        throw refuse(reason(errno), remedy(errno, {}));
    }
    if (!parent_.valid()) {
        throw refuse("neither it nor its parent directory exists",
                     "create the directory first: mkdir -p " + escape_line(root_name_));
    }
}

void Preparation::choose_settings() {
    marker_.fingerprint = options_.fingerprint.empty() ? log_fingerprint(log_) : options_.fingerprint;
    const bool same_log = found_ && found_->fingerprint == marker_.fingerprint;
    marker_.log = options_.log_name;
    marker_.tool = options_.tool;
    marker_.content = options_.content.value_or(found_ ? found_->content : Content::random);
    if (marker_.content == Content::recorded) {
        std::optional<Contents> known = recorded_contents(log_);
        if (!known) {
            throw bad_input(options_.log_name, "does not say how its files compress",
                            "record it with capture --with content, or use --content random");
        }
        contents_ = std::move(*known);
    }
    marker_.copies = std::max(options_.copies, same_log ? found_->copies : 1);
    marker_.maps = options_.maps ? *options_.maps : same_log ? found_->maps : PathMap{};
    filter_ = options_.filter ? *options_.filter : same_log ? OpFilter::parse(found_->filter) : OpFilter{};
    marker_.filter = filter_.to_string();
    marker_.listing_entries = options_.listing_entries.value_or(!same_log || found_->listing_entries);

    if (options_.reset) {
        licence_ = found_ ? Licence::reset : Licence::strange;
    } else if (found_) {
        licence_ = found_->state == MarkerState::incomplete ? Licence::resume : Licence::ours;
    }
    if (found_ && !same_log) {
        remarks_.push_back("The root was prepared for another log (" + escape_line(found_->log) +
                           "); its files stay where they are not in the way.");
    }
    if (found_ && same_log && found_->maps != marker_.maps) {
        remarks_.push_back("The root was prepared with other --map rules; files laid out by them are kept.");
    }
}

bool Preparation::nothing_to_do() const {
    return survey_.nothing_to_do() && found_ && found_->state == MarkerState::complete &&
           found_->fingerprint == marker_.fingerprint && found_->filter == marker_.filter &&
           found_->maps == marker_.maps && found_->listing_entries == marker_.listing_entries &&
           found_->copies == marker_.copies && found_->content == marker_.content;
}

void Preparation::check() const {
    const std::string root = escape_line(root_name_);
    if (options_.reset && !found_) {
        throw machine_error(
            "root " + root + " has no marker " + std::string(kMarkerName) + ", so --reset changes nothing there",
            "run prepare without --reset on an empty directory first");
    }
    if (!options_.reset && found_) {
        if (found_->state == MarkerState::resetting) {
            throw machine_error("an earlier --reset of " + root + " was interrupted", "run it again with --reset");
        }
        const bool may_have_changed =
            std::any_of(layout_.entries.begin(), layout_.entries.end(),
                        [](const LayoutEntry& entry) { return entry.initial && entry.changed(); });
        if (found_->state == MarkerState::changed && may_have_changed) {
            throw machine_error("a replay has changed files below " + root + " since it was prepared",
                                "restore them with --reset");
        }
        if (found_->content != marker_.content && survey_.bytes_laid_out > 0 &&
            survey_.count[static_cast<size_t>(Action::keep)] > 0) {
            throw machine_error("root " + root + " was prepared with --content " +
                                    std::string(content_name(found_->content)) + ", not " +
                                    std::string(content_name(marker_.content)),
                                "recreate its files with --reset");
        }
    }
    const std::string_view todo =
        found_ ? "restore everything with --reset" : "use an empty directory; nothing was changed";
    if (licence_ != Licence::reset && survey_.in_the_way.count > 0) {
        throw machine_error(
            "files below " + root +
                " already exist and would be changed by a replay or conflict with it:" + listed(survey_.in_the_way),
            todo);
    }
    if (licence_ != Licence::reset && survey_.differing.count > 0) {
        throw machine_error(
            "files below " + root + " differ from what the recording found:" + listed(survey_.differing), todo);
    }
    check_sizes();
    for (const Demand& demand : survey_.demands) {
        if (demand.fits()) {
            continue;
        }
        const bool bytes = demand.bytes > demand.free_bytes + demand.given_back_bytes;
        const auto number = [](uint64_t value) { return std::to_string(value); };
        if (demand.fits_without_replay()) {
            throw machine_error(
                "the replay does not fit on the file system of " + escape_line(demand.where) + ": " +
                    (demand.has_bytes()
                         ? "it makes " + counted(demand.replay_inodes, "file") + " beside the " +
                               number(demand.inodes) + " to be laid out, and " + number(demand.free_inodes) +
                               " inodes are free"
                         : "it writes " + number(demand.replay_bytes) + " bytes beside the " + number(demand.bytes) +
                               " to be laid out, and " + number(demand.free_bytes) + " are free"),
                "use a larger file system; or leave out with --not what the log writes, and replay "
                "with --read-only");
        }
        throw machine_error(
            "it does not fit on the file system of " + escape_line(demand.where) + ": " +
                (bytes ? number(demand.bytes) + " bytes are needed, " + number(demand.free_bytes) + " are free"
                       : number(demand.inodes) + " inodes are needed, " + number(demand.free_inodes) + " are free"),
            "use a larger file system, leave files out with --only, or lay them out with --content sparse");
    }
}

void Preparation::check_sizes() const {
    if (survey_.largest == 0) {
        return;
    }
    const auto refuse = [&] {
        return machine_error("the log has a file of " + std::to_string(survey_.largest) + " bytes, " +
                                 escape_line(survey_.largest_path) + ", which is more than the file system of " +
                                 escape_line(root_name_) + " can hold in one file",
                             "leave it out with --only, or use another file system");
    };
    if (survey_.largest >= static_cast<uint64_t>(INT64_MAX)) {
        throw refuse();
    }
    constexpr uint64_t kAnyTakes = uint64_t{1} << 31;
    if (survey_.largest < kAnyTakes) {
        return;
    }
    // A file without a name shows the limit and leaves nothing behind; where there is no such thing, writing will tell.
    const UniqueFd& where = root_.valid() ? root_ : parent_;
    const UniqueFd file(::openat(where.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!file.valid()) {
        return;
    }
    const bool too_large = ::ftruncate(file.get(), static_cast<off_t>(survey_.largest + 1)) != 0 && errno == EFBIG;
    if (too_large) {
        throw refuse();
    }
}

void Preparation::make_root() {
    if (root_.valid()) {
        return;
    }
    if (leads() && ::mkdir(root_name_.c_str(), 0755) != 0) {
        if (errno == EEXIST) {
            throw machine_error("the root " + escape_line(root_name_) + " was made by another program just now",
                                "wait for the other prepare, or choose another root");
        }
        throw machine_error("cannot make the root " + escape_line(root_name_) + ": " + reason(errno),
                            remedy(errno, "create it by hand, writable by this user"));
    }
    if (options_.peers != nullptr) {
        options_.peers->gate();
    }
    root_.reset(::open(root_name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root_.valid()) {
        throw machine_error("cannot open the root " + escape_line(root_name_) + ": " + reason(errno),
                            remedy(errno, "check that this user may read and write there"));
    }
}

WriteJob Preparation::write_job() const {
    return {.layout = layout_,
            .survey = survey_,
            .root = root_.get(),
            .root_name = root_name_,
            .content = marker_.content,
            .contents = contents_,
            .reset = options_.reset,
            .threads = options_.threads,
            .peers = options_.peers};
}

void Preparation::mark(MarkerState state) {
    marker_.state = state;
    marker_.time_unix_ns = unix_now_ns();
    write_marker(root_.get(), root_name_, marker_, lock_);
}

bool Preparation::run(WriteState& state, const std::function<void()>& tick) {
    return options_.peers == nullptr ? run_alone(state, tick) : run_together(state, tick);
}

bool Preparation::run_alone(WriteState& state, const std::function<void()>& tick) {
    make_root();
    if (nothing_to_do()) {
        return true;
    }
    const WriteJob job = write_job();
    if (options_.reset) {
        free_room(job, state, tick);  // the replay may have filled the file system: the marker needs room, too
    }
    // The marker comes before what is made: whatever is made from now on is known to be ours.
    mark(options_.reset ? MarkerState::resetting : MarkerState::incomplete);
    write_layout(job, state, tick);
    if (state.stop) {
        return false;
    }
    mark(MarkerState::complete);
    return true;
}

/// As alone, with all ranks at the same gates, whether or not theirs is a root where something is to be done.
bool Preparation::run_together(WriteState& state, const std::function<void()>& tick) {
    PreparePeers& peers = *options_.peers;
    peers.gate();  // all have looked at the root as it was
    const bool missing = !root_.valid();
    make_root();
    if (!missing) {
        peers.gate();  // that of make_root()
    }
    const bool leaves_marks = leads() && !nothing_to_do();
    const WriteJob job = write_job();
    if (leaves_marks) {
        if (options_.reset) {
            free_room(job, state, tick);
        }
        mark(options_.reset ? MarkerState::resetting : MarkerState::incomplete);
    }
    write_layout(job, state, tick);
    if (state.stop) {
        throw machine_error("interrupted; the root is marked incomplete", "run the same command again to continue");
    }
    peers.gate();  // all files are on the device
    if (leaves_marks) {
        mark(MarkerState::complete);
    }
    peers.gate();
    return true;
}

}  // namespace reprise
