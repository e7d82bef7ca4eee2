// SPDX-License-Identifier: MIT
// Looks at what lies below the root and deciding what is to be done.
#include "replay/prepare/survey.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"
#include "replay/content/content.h"
#include "replay/prepare/lost_data.h"
#include "replay/prepare/moved_directories.h"
#include "replay/prepare/parallel.h"

namespace reprise {

namespace {

constexpr uint32_t kRoot = LayoutEntry::kRoot;

uint64_t add_saturating(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
uint64_t round_up(uint64_t value, uint64_t unit) {
    const uint64_t sum = add_saturating(value, unit - 1);
    return sum - sum % unit;
}

/// Whether a directory descriptor lists nothing but itself and its parent.
bool is_empty(int directory) {
    DIR* const listing = ::fdopendir(::dup(directory));
    if (listing == nullptr) {
        return false;
    }
    bool empty = true;
    while (const dirent* entry = ::readdir(listing)) {
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
            empty = false;
            break;
        }
    }
    ::closedir(listing);
    return empty;
}

mode_t format_of(FileType type) {
    switch (type) {
        case FileType::directory: return S_IFDIR;
        case FileType::symlink: return S_IFLNK;
        case FileType::fifo: return S_IFIFO;
        case FileType::unknown:
        case FileType::regular:
        case FileType::socket:
        case FileType::character:
        case FileType::block:
        case FileType::anonymous: break;
    }
    return S_IFREG;
}

/// What each worker counts for itself; added up at the end.
struct Tally {
    uint64_t count[kActions] = {};
    uint64_t files = 0, directories = 0, links = 0, listing_entries = 0, bytes = 0, laid_out = 0;
    uint64_t largest = 0;
    const LayoutEntry* largest_entry = nullptr;
    struct Need {
        uint64_t bytes = 0, inodes = 0, bytes_back = 0, inodes_back = 0;
    };
    std::vector<Need> needs;  // by device
    Examples in_the_way, differing, lost;
};

class Surveyor {
public:
    Surveyor(const Layout& layout, int root, int parent, std::string_view root_name, const SurveyOptions& options)
        : layout_(layout), root_(root), parent_(parent), root_name_(root_name), options_(options) {}

    Survey run() {
        const size_t entries = layout_.entries.size();
        out_.actions.assign(entries, Action::none);
        out_.held.assign(entries, 0);
        device_.assign(entries, 0);
        empty_.assign(entries, 1);
        look_at_directories();
        look_at_files();
        add_replay();
        return std::move(out_);
    }

private:
    static constexpr size_t kPiece = 4096;  // entries looked at in one go

    [[noreturn]] void cannot_look(std::string_view path, int error) const {
        throw machine_error(
            "cannot look at " + escape_line(std::string(root_name_) + "/" + std::string(path)) + ": " + reason(error),
            remedy(error, "every directory below the root must be readable by this user"));
    }

    uint32_t device_index(int fd, dev_t device, std::string_view where) {
        for (uint32_t i = 0; i < out_.demands.size(); ++i) {
            if (out_.demands[i].device == device) {
                return i;
            }
        }
        Demand demand;
        demand.device = device;
        demand.where = where;
        struct statvfs space {};
        if (::fstatvfs(fd, &space) != 0) {
            cannot_look(where, errno);
        }
        demand.block = std::clamp<uint64_t>(space.f_frsize, 512, uint64_t{1} << 20);
        demand.free_bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
        demand.free_inodes = space.f_files == 0 ? UINT64_MAX : space.f_favail;
        out_.demands.push_back(std::move(demand));
        return static_cast<uint32_t>(out_.demands.size() - 1);
    }

    /// Where a directory is now: under its own name, or under the one the log gave it.
    std::string place_of(uint32_t directory) const {
        if (directory == kRoot) {
            return ".";
        }
        if (const auto moved = moved_.places.find(directory); moved != moved_.places.end()) {
            return moved->second;
        }
        return layout_.entries[directory].path;
    }

    void look_at_directories() {
        const int fd = root_ >= 0 ? root_ : parent_;
        struct stat status {};
        if (::fstat(fd, &status) != 0) {
            cannot_look("", errno);
        }
        root_device_ = device_index(fd, status.st_dev, root_name_);
        root_empty_ = true;
        if (root_ >= 0) {
            const UniqueFd listed(open_beneath(root_, ".", O_RDONLY | O_DIRECTORY, 0, Links::refuse));
            if (!listed.valid()) {
                cannot_look("", -listed.get());
            }
            root_empty_ = is_empty(listed.get());
        }
        if (options_.licence == Licence::reset && root_ >= 0) {
            moved_ = find_moved(layout_, root_);
            out_.renames_back = moved_.renames_back;
        }
        std::vector<uint32_t> pending = {kRoot};
        while (!pending.empty()) {
            const uint32_t directory = pending.back();
            pending.pop_back();
            const auto [begin, end] = layout_.children_of(directory);
            for (const uint32_t* child = begin; child != end; ++child) {
                if (layout_.entries[*child].type != FileType::directory) {
                    continue;
                }
                look_at_directory(*child);
                pending.push_back(*child);
            }
        }
    }

    bool nothing_in(uint32_t directory) const {
        return directory == kRoot ? root_empty_ : out_.held[directory] == 0 || empty_[directory] != 0;
    }

    void look_at_directory(uint32_t index) {
        const LayoutEntry& entry = layout_.entries[index];
        device_[index] = entry.parent == kRoot ? root_device_ : device_[entry.parent];
        const bool moved = moved_.places.contains(index);
        if (!moved && entry.parent != kRoot && moved_.places.contains(entry.parent)) {
            moved_.places.emplace(index, place_of(entry.parent) + "/" + std::string(entry.name()));
        }
        const std::string place = place_of(index);
        const auto taken = moved_.taken.find(place);
        int fd = -ENOENT;
        if ((moved || !nothing_in(entry.parent)) && (taken == moved_.taken.end() || taken->second == index)) {
            fd = open_directory(place);
        }
        if (fd == -ENOENT) {
            decide(tally_for_directories_, index, nullptr);
            return;
        }
        struct stat status {};
        if (fd == -ENOTDIR || fd == -ELOOP) {
            // Something else has the name. Only a real directory is entered.
            status.st_mode = S_IFREG;
            decide(tally_for_directories_, index, &status);
            return;
        }
        if (fd < 0) {
            cannot_look(entry.path, -fd);
        }
        const UniqueFd closes(fd);
        if (::fstat(fd, &status) != 0) {
            cannot_look(entry.path, errno);
        }
        out_.held[index] = 1;
        device_[index] = device_index(fd, status.st_dev, entry.path);
        empty_[index] = is_empty(fd) ? 1 : 0;
        decide(tally_for_directories_, index, &status);
    }

    int open_directory(const std::string& place) const {
        return open_beneath(root_, place.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, Links::refuse);
    }

    void look_at_files() {
        // Pieces of the children of one directory; the root first.
        struct Piece {
            uint32_t directory, device;
            uint64_t begin, end;  // in layout_.children
        };
        std::vector<Piece> pieces;
        for (size_t slot = 0; slot + 1 < layout_.first.size(); ++slot) {
            const uint32_t directory = slot == 0 ? kRoot : static_cast<uint32_t>(slot - 1);
            // Taken here: in a hostile log a file has children, and another thread may be at that file.
            const uint32_t device = directory == kRoot ? root_device_ : device_[directory];
            for (uint64_t at = layout_.first[slot]; at < layout_.first[slot + 1]; at += kPiece) {
                pieces.push_back({directory, device, at, std::min(at + kPiece, layout_.first[slot + 1])});
            }
        }
        const unsigned threads = std::max(1u, options_.threads);
        std::vector<Tally> tallies(threads);
        std::atomic<bool> stop{false};
        run_parallel(threads, pieces.size(), stop, {}, [&](size_t worker, size_t number) {
            const Piece& piece = pieces[number];
            UniqueFd fd;
            if (!nothing_in(piece.directory)) {
                fd.reset(
                    open_beneath(root_, place_of(piece.directory).c_str(), O_PATH | O_DIRECTORY, 0, Links::refuse));
                if (!fd.valid()) {
                    cannot_look(place_of(piece.directory), -fd.get());
                }
            }
            for (uint64_t i = piece.begin; i < piece.end; ++i) {
                const uint32_t index = layout_.children[i];
                const LayoutEntry& entry = layout_.entries[index];
                if (entry.type == FileType::directory) {
                    continue;
                }
                device_[index] = piece.device;
                struct stat status {};
                // The name is a tail of the path, so it ends with its NUL.
                if (fd.valid() && ::fstatat(fd.get(), entry.name().data(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
                    decide(tallies[worker], index, &status, fd.get());
                } else if (!fd.valid() || errno == ENOENT) {
                    decide(tallies[worker], index, nullptr);
                } else {
                    cannot_look(entry.path, errno);
                }
            }
        });
        add(tally_for_directories_);
        for (const Tally& tally : tallies) {
            add(tally);
        }
    }

    static constexpr int64_t kMostSize = INT64_MAX / 4;

    /// What the replay's own writes will take, at their peak.
    void add_replay() {
        std::vector<int64_t> now(out_.demands.size());
        std::vector<int64_t> files(out_.demands.size());
        std::unordered_map<uint32_t, int64_t> made;  // bytes of each file that is not there at first
        for (const Growth& growth : layout_.growth) {
            const uint32_t device = device_[growth.entry];
            if (!layout_.entries[growth.entry].initial && growth.bytes != 0) {
                int64_t& size = made[growth.entry];
                const bool there = size > 0;
                size = std::clamp(size, -kMostSize, kMostSize) + std::clamp(growth.bytes, -kMostSize, kMostSize);
                files[device] += static_cast<int>(size > 0) - static_cast<int>(there);
                uint64_t& most = out_.demands[device].replay_inodes;
                most = std::max(most, static_cast<uint64_t>(std::max<int64_t>(files[device], 0)));
            }
            int64_t& bytes = now[device];
            if (__builtin_add_overflow(bytes, growth.bytes, &bytes)) {
                bytes = growth.bytes > 0 ? INT64_MAX : 0;
            }
            uint64_t& most = out_.demands[device].replay_bytes;
            most = std::max(most, static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
        }
    }

    /// `status`: what is there; nullptr: nothing.
    void decide(Tally& tally, uint32_t index, const struct stat* status, int directory = -1) {
        const LayoutEntry& entry = layout_.entries[index];
        Action action = action_for(tally, entry, status, directory);
        if (action == Action::keep && options_.licence != Licence::strange && lacks_attributes(index)) {
            action = Action::refill;
        }
        if ((action == Action::keep || action == Action::refill) && lost_data(index, *status, directory)) {
            tally.lost.add(entry.path, "has holes");
            action = options_.licence == Licence::reset ? Action::remake : action;
        }
        out_.actions[index] = action;
        ++tally.count[static_cast<size_t>(action)];
        const bool further_name = layout_.hard_links.contains(index);
        if (entry.initial && entry.type == FileType::regular && !further_name) {
            tally.laid_out = add_saturating(tally.laid_out, entry.size);
        }
        if (action == Action::none || action == Action::keep) {
            return;
        }
        if (tally.needs.size() <= device_[index]) {
            tally.needs.resize(device_[index] + 1);
        }
        Tally::Need& need = tally.needs[device_[index]];
        const uint64_t there = status != nullptr ? static_cast<uint64_t>(status->st_blocks) * 512 : 0;
        if (action == Action::remove || action == Action::remake) {
            need.bytes_back += there;
            ++need.inodes_back;
        }
        if (action == Action::remove) {
            return;
        }
        uint64_t bytes = 0;
        if (entry.type == FileType::regular && !further_name) {
            if (entry.size > tally.largest) {
                tally.largest = entry.size;
                tally.largest_entry = &entry;
            }
            if (options_.content != Content::sparse) {
                const auto data_between = [&](uint64_t from, uint64_t to) {
                    const bool holes = layout_.holes.contains(index);
                    return from >= to ? 0 : holes ? layout_.data_of(index, from, to).bytes() : to - from;
                };
                const uint64_t data = data_between(0, entry.size);
                const uint64_t whole = round_up(data, out_.demands[device_[index]].block);
                bytes = std::min(data, entry.size);
                if (action == Action::refill) {
                    const uint64_t from = entry.changed_from - entry.changed_from % kContentUnit;
                    const uint64_t to = std::min(entry.changed_to, entry.size);
                    bytes = data_between(from, to);
                }
                const uint64_t held = action == Action::refill ? there : 0;
                need.bytes = add_saturating(need.bytes, whole > held ? whole - held : 0);
            }
            tally.bytes = add_saturating(tally.bytes, bytes);
        }
        if (action == Action::refill) {
            return;
        }
        need.inodes += further_name ? 0 : 1;
        if (entry.type == FileType::directory) {
            ++tally.directories;
        } else if (entry.type == FileType::symlink) {
            ++tally.links;
        } else if (entry.listing) {
            ++tally.listing_entries;
        } else {
            ++tally.files;
        }
    }

    Action action_for(Tally& tally, const LayoutEntry& entry, const struct stat* status, int directory) const {
        const Licence licence = options_.licence;
        if (!entry.initial) {
            if (!entry.made || status == nullptr) {
                return Action::none;
            }
            if (licence != Licence::reset) {
                tally.in_the_way.add(entry.path, "the recording makes it");
            }
            return Action::remove;
        }
        if (status == nullptr) {
            return Action::make;
        }
        const std::string difference = difference_of(entry, *status, directory);
        if (!difference.empty()) {
            // Half-made files of an earlier run are ours; nothing else that differs may be touched.
            const bool half_made =
                licence == Licence::resume && entry.type == FileType::regular && S_ISREG(status->st_mode);
            if (licence != Licence::reset && !half_made) {
                tally.differing.add(entry.path, difference);
            }
            return Action::remake;
        }
        if (licence == Licence::strange && entry.changed() &&
            (entry.type != FileType::directory || entry.gone || entry.attributes)) {
            tally.in_the_way.add(entry.path, "the recording changes it");
            return Action::keep;
        }
        if (licence != Licence::reset) {
            return Action::keep;
        }
        if (entry.type == FileType::regular) {
            const bool has_data = entry.size > 0;
            if (has_data && (options_.remake_data || (entry.data_changed() && status->st_nlink > 1))) {
                return Action::remake;
            }
            if (has_data && entry.data_changed()) {
                return Action::refill;
            }
        }
        return entry.attributes && entry.type != FileType::symlink ? Action::refill : Action::keep;
    }

    /// Of those that it had at first. Where it cannot be opened, writing will tell.
    bool lacks_attributes(uint32_t index) const {
        const auto had = layout_.attributes.find(index);
        if (had == layout_.attributes.end()) {
            return false;
        }
        const LayoutEntry& entry = layout_.entries[index];
        const std::string place =
            entry.type == FileType::directory
                ? place_of(index)
                : (entry.parent == kRoot ? "" : place_of(entry.parent) + "/") + std::string(entry.name());
        const UniqueFd fd(open_beneath(root_, place.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, Links::refuse));
        return fd.valid() && !has_attributes(fd.get(), had->second);
    }

    /// A root that is not marked may hold files of somebody's own, sparse as they are; a replay's trust says so.
    bool lost_data(uint32_t index, const struct stat& status, int directory) const {
        const LayoutEntry& entry = layout_.entries[index];
        return entry.type == FileType::regular && options_.licence != Licence::strange &&
               options_.content != Content::sparse &&
               has_lost_data(layout_, index, status, directory, entry.name().data());
    }

    /// Empty: what is there is what should be.
    static std::string difference_of(const LayoutEntry& entry, const struct stat& status, int directory) {
        if ((status.st_mode & S_IFMT) != format_of(entry.type)) {
            return "not a " + std::string(file_type_name(entry.type));
        }
        if (entry.type == FileType::regular && static_cast<uint64_t>(status.st_size) != entry.size) {
            return "has " + std::to_string(status.st_size) + " bytes, the recording's had " +
                   std::to_string(entry.size);
        }
        if (entry.runnable && entry.type == FileType::regular && (status.st_mode & S_IXUSR) == 0) {
            return "not executable";
        }
        if (entry.type == FileType::symlink) {
            std::string target(PATH_MAX, '\0');
            const ssize_t n = ::readlinkat(directory, entry.name().data(), target.data(), target.size());
            target.resize(n > 0 ? static_cast<size_t>(n) : 0);
            if (target != entry.target) {
                return "leads to another place";
            }
        }
        return {};
    }

    void add(const Tally& tally) {
        for (size_t i = 0; i < kActions; ++i) {
            out_.count[i] += tally.count[i];
        }
        out_.files += tally.files;
        out_.directories += tally.directories;
        out_.links += tally.links;
        out_.listing_entries += tally.listing_entries;
        out_.bytes = add_saturating(out_.bytes, tally.bytes);
        out_.bytes_laid_out = add_saturating(out_.bytes_laid_out, tally.laid_out);
        if (tally.largest > out_.largest) {
            out_.largest = tally.largest;
            out_.largest_path = tally.largest_entry->path;
        }
        for (size_t i = 0; i < tally.needs.size(); ++i) {
            Demand& demand = out_.demands[i];
            demand.bytes = add_saturating(demand.bytes, tally.needs[i].bytes);
            demand.inodes += tally.needs[i].inodes;
            demand.given_back_bytes += tally.needs[i].bytes_back;
            demand.given_back_inodes += tally.needs[i].inodes_back;
        }
        out_.in_the_way.merge(tally.in_the_way);
        out_.differing.merge(tally.differing);
        out_.lost.merge(tally.lost);
    }

    const Layout& layout_;
    const int root_, parent_;
    const std::string_view root_name_;
    const SurveyOptions& options_;
    std::vector<uint32_t> device_;  // by entry: index into out_.demands
    std::vector<uint8_t> empty_;    // by directory
    MovedDirectories moved_;        // and what lies in them, once looked at
    uint32_t root_device_ = 0;
    bool root_empty_ = true;
    Tally tally_for_directories_;
    Survey out_;
};

}  // namespace

bool Demand::has_bytes() const {
    return add_saturating(bytes, replay_bytes) <= add_saturating(free_bytes, given_back_bytes);
}

bool Demand::fits() const {
    return fits_without_replay() && has_bytes() &&
           add_saturating(inodes, replay_inodes) <= add_saturating(free_inodes, given_back_inodes);
}

bool Demand::fits_without_replay() const {
    return bytes <= add_saturating(free_bytes, given_back_bytes) &&
           inodes <= add_saturating(free_inodes, given_back_inodes);
}

void Examples::add(std::string_view path, std::string_view why) {
    ++count;
    if (paths.size() < kMost) {
        paths.push_back(escape_line(path) + " (" + std::string(why) + ")");
    }
}

void Examples::merge(const Examples& other) {
    count += other.count;
    for (const std::string& path : other.paths) {
        if (paths.size() < kMost) {
            paths.push_back(path);
        }
    }
}

Survey survey_root(const Layout& layout, int root, int parent, std::string_view root_name,
                   const SurveyOptions& options) {
    return Surveyor(layout, root, parent, root_name, options).run();
}

}  // namespace reprise
