// SPDX-License-Identifier: MIT
// The order of the work: remove, rename back, directories, files, sync; and sharing the files among threads.
#include "replay/prepare/write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/path.h"
#include "formats/support/unique_fd.h"
#include "replay/content/compressible.h"
#include "replay/content/content.h"
#include "replay/prepare/file.h"
#include "replay/prepare/moved_directories.h"
#include "replay/prepare/parallel.h"

namespace reprise {

namespace {

constexpr uint32_t kRoot = LayoutEntry::kRoot;
/// Files larger than this are shared among workers in pieces of this size.
constexpr uint64_t kChunk = uint64_t{64} << 20;
/// Bytes of small files in one piece of work.
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;
/// Empty files of one directory stay with one worker: the kernel lets only one at a time into a directory anyway.
constexpr uint64_t kPieceFiles = uint64_t{1} << 18;

/// Modes of new files are given as recorded, not masked; process-wide while it lives.
class NoUmask {
public:
    NoUmask() : old_(::umask(0)) {}
    ~NoUmask() { ::umask(old_); }
    NoUmask(const NoUmask&) = delete;
    NoUmask& operator=(const NoUmask&) = delete;

private:
    mode_t old_;
};

mode_t mode_of(const LayoutEntry& entry) {
    const bool directory = entry.type == FileType::directory;
    if (entry.mode == 0) {
        return directory || entry.runnable ? 0755 : 0644;
    }
    // The replay must get in whatever the recorded bits.
    return (entry.mode & 0777) | (directory || entry.runnable ? 0700 : 0600);
}

/// Removes a name that is no directory, or an empty one. 0 (also where nothing is there) or -errno.
int remove_name(int directory, const char* name) {
    if (::unlinkat(directory, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    if (errno != EISDIR && errno != EPERM) {
        return -errno;
    }
    return ::unlinkat(directory, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

/// A file that several workers write.
struct BigFile {
    uint32_t entry = 0;
    uint64_t from = 0, to = 0;  // bytes to write
    std::mutex mutex;
    int fd = -1;          // guarded; stays open from the first chunk to the last
    bool failed = false;  // guarded
    std::atomic<uint64_t> chunks_left{0};
};

struct Piece {
    uint32_t directory = kRoot;
    size_t begin = 0, end = 0;  // in work_
    BigFile* big = nullptr;     // where set: one chunk of it, [begin, end) in bytes
    bool names_only = false;    // no data is written
};

class Writer {
public:
    Writer(const WriteJob& job, WriteState& state, const std::function<void()>& tick)
        : job_(job), layout_(job.layout), state_(state), tick_(tick) {
        for (const auto& [name, sample] : job.contents) {
            compressible_.emplace(name, compressible_as(sample));
        }
    }

    void run() {
        const NoUmask modes_as_given;
        list_directories();
        if (leads()) {
            set_aside(false);
            make_directories();
            if (job_.reset) {
                remove_made(true);
            }
        }
        gate();
        make_files();
        gate();
        if (leads()) {
            make_hard_links();
            give_all_attributes();
        }
        if (!state_.stop) {
            sync();
        }
    }

    /// Directories stay: they may hold what is about to be renamed back.
    void free_room() {
        list_directories();
        set_aside(true);
        remove_made(false);
    }

private:
    bool leads() const { return job_.peers == nullptr || job_.peers->place() == 0; }
    void gate() const {
        if (job_.peers != nullptr) {
            job_.peers->gate();
        }
    }
    /// Of several ranks, each fills its share of the files; those whose names are made in order are the first one's.
    bool fills(uint32_t entry) const {
        if (job_.peers == nullptr) {
            return true;
        }
        const uint32_t turn = layout_.in_order.contains(layout_.entries[entry].parent) ? 0 : entry;
        return turn % job_.peers->count() == job_.peers->place();
    }

    Action action(uint32_t entry) const { return job_.survey.actions[entry]; }
    bool makes(uint32_t entry) const { return action(entry) == Action::make || action(entry) == Action::remake; }

    [[noreturn]] void fail(std::string_view what, std::string_view path, int error) const {
        const std::string name = escape_line(std::string(job_.root_name) + "/" + std::string(path));
        const std::string so_far = std::to_string(state_.entries.load()) + " entries and " +
                                   std::to_string(state_.bytes.load()) + " bytes of this run are in place";
        switch (error) {
            case ENOSPC:
            case EDQUOT:
                throw machine_error("no space left at " + name + "; " + so_far,
                                    "free space, then run the same command again: it goes on where it stopped");
            case EFBIG:
                throw machine_error(name + " would be larger than the file system allows: " + reason(error),
                                    remedy(error, "leave it out with --only, or use another file system"));
            case ENOTEMPTY:
                throw machine_error(
                    "cannot replace the directory " + name + ": it holds things that the log does not name",
                    "move them away, then run the same command again");
            default:
                throw machine_error("cannot " + std::string(what) + " " + name + ": " + reason(error),
                                    remedy(error, so_far + "; run the same command again once this is mended"));
        }
    }

    std::string path_of(uint32_t directory) const { return directory == kRoot ? "." : layout_.entries[directory].path; }

    int open_directory(uint32_t directory) const {
        return open_beneath(job_.root, path_of(directory).c_str(), O_PATH | O_DIRECTORY, 0, Links::refuse);
    }

    /// All directories, each after the one that holds it.
    void list_directories() {
        directories_.push_back(kRoot);
        for (size_t i = 0; i < directories_.size(); ++i) {
            const auto [begin, end] = layout_.children_of(directories_[i]);
            for (const uint32_t* child = begin; child != end; ++child) {
                if (layout_.entries[*child].type == FileType::directory) {
                    directories_.push_back(*child);
                }
            }
        }
    }

    void did_one() { state_.entries.fetch_add(1, std::memory_order_relaxed); }

    // --- putting back

    /// Removes what the log makes, with directories, or files only and those that are to be made anew as well.
    void remove_made(bool directories_too) {
        const auto goes = [&](uint32_t child) {
            return removable(child) || (!directories_too && action(child) == Action::remake);
        };
        for (auto directory = directories_.rbegin(); directory != directories_.rend() && !state_.stop; ++directory) {
            const auto [begin, end] = layout_.children_of(*directory);
            if (std::none_of(begin, end, goes)) {
                continue;
            }
            const UniqueFd opened(open_directory(*directory));
            if (opened.get() < 0) {
                continue;  // gone itself
            }
            for (const uint32_t* child = begin; child != end; ++child) {
                if (!goes(*child)) {
                    continue;
                }
                const LayoutEntry& entry = layout_.entries[*child];
                if (!directories_too && entry.type == FileType::directory) {
                    continue;
                }
                struct stat status {};
                if (::fstatat(opened.get(), entry.name().data(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
                    (!removable(*child) && S_ISDIR(status.st_mode))) {
                    continue;
                }
                const int error = -remove_name(opened.get(), entry.name().data());
                if (error == ENOTEMPTY || error == EEXIST) {
                    if (directories_too) {
                        state_.left.add(entry.path, "not empty");
                    }
                } else if (error != 0) {
                    fail("remove", entry.path, error);
                } else if (removable(*child)) {
                    did_one();  // others count when they are made
                }
            }
            if (tick_) {
                tick_();
            }
        }
    }

    bool removable(uint32_t index) const {
        const LayoutEntry& entry = layout_.entries[index];
        return entry.made && !entry.initial;
    }

    /// Frees the names of all directories that are to get their old one back: one may have the name of another, or lie
    /// in it. `first`: this does it; else it was done.
    void set_aside(bool first) {
        moved_ = job_.survey.renames_back;
        for (size_t i = 0; i < moved_.size(); ++i) {
            const std::string from = moved_[i].from;
            const std::string to = is_waiting(from) ? from : waiting_name(from, moved_[i].to);
            if (from != to) {
                rename_moved(from, to, first);
            }
        }
    }

    DirectoryRename* rename_back_to(std::string_view path) {
        const auto found = std::find_if(moved_.begin(), moved_.end(),
                                        [&](const DirectoryRename& rename) { return rename.to == path; });
        return found == moved_.end() ? nullptr : &*found;
    }

    /// Those that lie in it come along.
    void rename_moved(const std::string& from, const std::string& to, bool really) {
        if (really) {
            rename_directory(from, to);
        }
        for (DirectoryRename& rename : moved_) {
            if (is_or_lies_below(rename.from, from)) {
                rename.from = to + rename.from.substr(from.size());
            }
        }
    }

    void rename_directory(const std::string& from, const std::string& to) {
        std::string_view old_name, new_name;
        const UniqueFd old_parent(open_parent(job_.root, from, Links::refuse, &old_name));
        const UniqueFd new_parent(open_parent(job_.root, to, Links::refuse, &new_name));
        if (old_parent.get() < 0) {
            fail("rename", from, -old_parent.get());
        }
        if (new_parent.get() < 0) {
            fail("rename", to, -new_parent.get());
        }
        if (::renameat2(old_parent.get(), std::string(old_name).c_str(), new_parent.get(),
                        std::string(new_name).c_str(), RENAME_NOREPLACE) != 0) {
            fail("rename", from, errno);
        }
    }

    /// Permission bits, and no extended attributes of users.
    void put_back_attributes(int fd, const LayoutEntry& entry) {
        if (::fchmod(fd, mode_of(entry)) != 0) {
            fail("set the mode of", entry.path, errno);
        }
        std::vector<char> names(65536);
        const ssize_t size = ::flistxattr(fd, names.data(), names.size());
        for (ssize_t at = 0; at < size;) {
            const std::string name(names.data() + at);
            at += static_cast<ssize_t>(name.size()) + 1;
            if (name.starts_with("user.")) {
                ::fremovexattr(fd, name.c_str());
            }
        }
    }

    // --- directories

    void make_directories() {
        for (const uint32_t directory : directories_) {
            if (state_.stop) {
                return;
            }
            const auto [begin, end] = layout_.children_of(directory);
            if (std::none_of(begin, end, [&](uint32_t child) { return concerns_directory(child); })) {
                continue;
            }
            const UniqueFd fd(open_directory(directory));
            if (fd.get() < 0) {
                fail("enter", path_of(directory), -fd.get());
            }
            for (const uint32_t* child = begin; child != end; ++child) {
                if (concerns_directory(*child)) {
                    make_directory(fd.get(), *child);
                }
            }
            if (tick_) {
                tick_();
            }
        }
    }

    bool concerns_directory(uint32_t index) {
        const LayoutEntry& entry = layout_.entries[index];
        if (entry.type != FileType::directory || !entry.initial) {
            return false;
        }
        return makes(index) || action(index) == Action::refill ||
               (!moved_.empty() && rename_back_to(entry.path) != nullptr);
    }

    void make_directory(int parent, uint32_t index) {
        const LayoutEntry& entry = layout_.entries[index];
        const char* const name = entry.name().data();
        if (const DirectoryRename* rename = rename_back_to(entry.path)) {
            rename_moved(std::string(rename->from), entry.path, true);
            did_one();
        }
        if (action(index) == Action::refill) {
            const UniqueFd fd(open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0, Links::refuse));
            if (fd.get() < 0) {
                fail("open", entry.path, -fd.get());
            }
            put_back_attributes(fd.get(), entry);
            return did_one();
        }
        if (!makes(index)) {
            return;
        }
        if (action(index) == Action::remake) {
            if (const int error = -remove_name(parent, name); error != 0) {
                fail("remove", entry.path, error);
            }
        }
        if (::mkdirat(parent, name, mode_of(entry)) != 0) {
            fail("make the directory", entry.path, errno);
        }
        did_one();
    }

    // --- files

    /// Where others lay between the files of a directory, all get their inodes one after the other, in their order,
    /// before several threads fill them.
    void make_names() {
        if (!leads()) {
            return;
        }
        std::vector<uint32_t> directories;
        for (const uint32_t directory : directories_) {
            const auto [begin, end] = layout_.children_of(directory);
            if (layout_.in_order.contains(directory) && std::any_of(begin, end, [&](uint32_t child) {
                    return layout_.entries[child].listing && makes(child);
                })) {
                directories.push_back(directory);
            }
        }
        if (!directories.empty()) {
            named_.assign(layout_.entries.size(), 0);
        }
        run_parallel(job_.threads, directories.size(), state_.stop, tick_,
                     [&](size_t, size_t number) { make_names_in(directories[number]); });
    }

    void make_names_in(uint32_t directory) {
        const UniqueFd opened(open_directory(directory));
        if (opened.get() < 0) {
            fail("enter", path_of(directory), -opened.get());
        }
        const auto [begin, end] = layout_.children_of(directory);
        for (const uint32_t* child = begin; child != end && !state_.stop.load(std::memory_order_relaxed); ++child) {
            const LayoutEntry& entry = layout_.entries[*child];
            if (entry.type != FileType::regular || !makes(*child) || layout_.hard_links.contains(*child)) {
                continue;
            }
            remove_remade(opened.get(), *child);
            make_empty(opened.get(), *child);
            named_[*child] = 1;
            if (entry.size == 0) {
                did_one();
            }
        }
    }

    bool is_named(uint32_t index) const { return !named_.empty() && named_[index] != 0; }
    void filled(uint32_t index) {
        if (!named_.empty()) {
            named_[index] = 0;
        }
    }

    void remove_remade(int directory, uint32_t index) const {
        const LayoutEntry& entry = layout_.entries[index];
        if (action(index) != Action::remake) {
            return;
        }
        if (const int error = -remove_name(directory, entry.name().data()); error != 0) {
            fail("remove", entry.path, error);
        }
    }

    /// One call instead of open and close; like O_EXCL it never follows or replaces anything.
    void make_empty(int directory, uint32_t index) const {
        const LayoutEntry& entry = layout_.entries[index];
        if (::mknodat(directory, entry.name().data(), S_IFREG | mode_of(entry), 0) != 0) {
            fail("make", entry.path, errno);
        }
    }

    void make_files() {
        const NamesCleanup named{*this};
        make_names();
        plan_pieces();
        std::vector<std::unique_ptr<WriteBuffer>> buffers(std::max<size_t>(1, job_.threads));
        const BigFileCleanup cleanup{*this};
        // Names of one directory are made under its lock: threads that make them at once take twice the processor time
        // and more of the clock's than one alone.
        std::array<std::mutex, 64> turns;
        run_parallel(job_.threads, pieces_.size(), state_.stop, tick_, [&](size_t worker, size_t number) {
            if (!buffers[worker]) {
                buffers[worker] = std::make_unique<WriteBuffer>(job_.content);
            }
            const Piece& piece = pieces_[number];
            if (piece.big != nullptr) {
                write_chunk(*piece.big, piece.begin, piece.end, *buffers[worker]);
            } else {
                std::unique_lock<std::mutex> turn;
                if (piece.names_only) {
                    turn = std::unique_lock(turns[piece.directory % turns.size()]);
                }
                make_some(piece, *buffers[worker]);
            }
        });
    }

    /// A stop or an error leaves no names of files that are still to be filled.
    struct NamesCleanup {
        Writer& writer;
        ~NamesCleanup() {
            for (uint32_t index = 0; index < writer.named_.size(); ++index) {
                if (writer.is_named(index) && writer.layout_.entries[index].size != 0) {
                    writer.discard(index);
                }
            }
        }
    };

    /// A stop or an error leaves big files half written: what has no size yet is not worth keeping.
    struct BigFileCleanup {
        Writer& writer;
        ~BigFileCleanup() {
            for (const auto& big : writer.big_files_) {
                if (big->fd < 0) {
                    continue;
                }
                ::close(big->fd);
                writer.discard(big->entry);
            }
        }
    };

    void discard(uint32_t index) {
        const LayoutEntry& entry = layout_.entries[index];
        if (!makes(index)) {
            return;
        }
        const UniqueFd parent(open_directory(entry.parent));
        if (parent.get() >= 0) {
            ::unlinkat(parent.get(), entry.name().data(), 0);
        }
    }

    void plan_pieces() {
        for (const uint32_t directory : directories_) {
            const auto [begin, end] = layout_.children_of(directory);
            Piece piece{directory, work_.size(), work_.size()};
            uint64_t bytes = 0;
            const auto cut = [&] {
                piece.end = work_.size();
                piece.names_only = bytes == 0;
                if (piece.end > piece.begin) {
                    pieces_.push_back(piece);
                }
                piece.begin = work_.size();
                bytes = 0;
            };
            for (const uint32_t* child = begin; child != end; ++child) {
                const LayoutEntry& entry = layout_.entries[*child];
                if (entry.type == FileType::directory) {
                    continue;
                }
                if ((!makes(*child) && action(*child) != Action::refill) || layout_.hard_links.contains(*child) ||
                    (is_named(*child) && entry.size == 0) || !fills(*child)) {
                    continue;
                }
                const auto [from, to] = range_of(*child);
                if (to - from > kChunk) {
                    add_big(*child, from, to);
                    continue;
                }
                work_.push_back(*child);
                bytes += to - from;
                if (bytes >= kPieceBytes || work_.size() - piece.begin >= kPieceFiles) {
                    cut();
                }
            }
            cut();
        }
        // The long work first, so that no worker sits on it alone at the end.
        std::stable_partition(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.big != nullptr; });
    }

    /// Bytes of a file that are to be written.
    std::pair<uint64_t, uint64_t> range_of(uint32_t index) const {
        const LayoutEntry& entry = layout_.entries[index];
        if (entry.type != FileType::regular || job_.content == Content::sparse) {
            return {0, 0};
        }
        if (makes(index)) {
            return {0, entry.size};
        }
        const uint64_t from = entry.changed_from - entry.changed_from % kContentUnit;
        const uint64_t to = std::min(entry.changed_to, entry.size);
        return from < to ? std::pair{from, to} : std::pair<uint64_t, uint64_t>{0, 0};
    }

    void add_big(uint32_t index, uint64_t from, uint64_t to) {
        BigFile& big = *big_files_.emplace_back(std::make_unique<BigFile>());
        big.entry = index;
        big.from = from;
        big.to = to;
        for (uint64_t at = from; at < to; at += kChunk) {
            pieces_.push_back({layout_.entries[index].parent, at, std::min(at + kChunk, to), &big, false});
            ++big.chunks_left;
        }
    }

    int begin(int fd, uint32_t index) const {
        const uint64_t size = layout_.entries[index].size;
        // What is allocated ahead is not compressed (btrfs), nor is what is written past the page cache.
        const bool ahead = job_.content != Content::recorded && !layout_.holes.contains(index);
        return ahead ? begin_file(fd, size) : begin_sparse_file(fd, size);
    }

    /// Writes what of a range has data, in whole units of the content: of a hole, its edges, too. 0 or an errno.
    int write_data(int fd, uint32_t index, std::pair<uint64_t, uint64_t> range, WriteBuffer& buffer,
                   const std::atomic<bool>& stop) {
        const RangeSet data = layout_.data_of(index, range.first, range.second);
        RangeSet units;
        for (const auto& [from, to] : data.ranges()) {
            units.add(from - from % kContentUnit, (to + kContentUnit - 1) / kContentUnit * kContentUnit);
        }
        const uint64_t seed = content_seed(layout_.entries[index].path);
        buffer.compresses(compressible(layout_.entries[index].path), layout_.entries[index].size);
        const bool holes = layout_.holes.contains(index);
        std::atomic<uint64_t> with_edges{0};
        for (const auto& [from, to] : units.ranges()) {
            const int error = -write_content(fd, seed, std::max(from, range.first), std::min(to, range.second), buffer,
                                             stop, holes ? with_edges : state_.bytes);
            if (error != 0) {
                return error;
            }
        }
        if (holes) {
            state_.bytes += std::min(data.bytes(), with_edges.load());
            state_.holes += range.second - range.first - data.bytes();
        }
        return 0;
    }

    Compressible compressible(std::string_view path) const {
        const auto found = compressible_.empty() ? compressible_.end() : compressible_.find(content_class(path));
        return found == compressible_.end() ? Compressible() : found->second;
    }

    void punch_holes(int fd, uint32_t index, std::pair<uint64_t, uint64_t> range) const {
        const auto found = layout_.holes.find(index);
        if (found == layout_.holes.end()) {
            return;
        }
        for (const auto& [from, to] : found->second.ranges()) {
            if (from < range.second && to > range.first) {
                punch_hole(fd, from, to);
            }
        }
    }

    /// Further names of a file. Where the file system has none, a file of its own takes the name.
    void make_hard_links() {
        std::unique_ptr<WriteBuffer> buffer;
        for (const auto& [index, one] : layout_.hard_links) {
            if (state_.stop || !makes(index)) {
                continue;  // refilled by the first name
            }
            const LayoutEntry& entry = layout_.entries[index];
            const UniqueFd parent(open_directory(entry.parent)), source(open_directory(layout_.entries[one].parent));
            if (parent.get() < 0 || source.get() < 0) {
                fail("enter", path_of(entry.parent), parent.get() < 0 ? -parent.get() : -source.get());
            }
            remove_remade(parent.get(), index);
            if (::linkat(source.get(), layout_.entries[one].name().data(), parent.get(), entry.name().data(), 0) != 0) {
                if (errno == EEXIST || errno == ENOENT || errno == ENOSPC || errno == EDQUOT) {
                    fail("link", entry.path, errno);
                }
                buffer = buffer ? std::move(buffer) : std::make_unique<WriteBuffer>(job_.content);
                make_regular(parent.get(), index, *buffer);
            }
            did_one();
        }
    }

    /// A file system without extended attributes is none to fail on: it is said which files lack theirs.
    void give_all_attributes() {
        for (const auto& [index, attributes] : layout_.attributes) {
            if (state_.stop || (!makes(index) && action(index) != Action::refill)) {
                continue;
            }
            const std::string& path = layout_.entries[index].path;
            const UniqueFd fd(
                open_beneath(job_.root, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, Links::refuse));
            if (fd.get() < 0) {
                fail("open", path, -fd.get());
            }
            if (const int error = give_attributes(fd.get(), attributes); error != 0) {
                state_.attributes_refused.add(path, reason(error));
            }
            if (tick_) {
                tick_();
            }
        }
    }

    /// Opens a regular file for writing: a new one where it is to be made, the one there where it is refilled.
    int open_regular(int directory, uint32_t index, bool direct) {
        const LayoutEntry& entry = layout_.entries[index];
        const char* const name = entry.name().data();
        const bool fresh = makes(index) && !is_named(index);
        if (fresh) {
            remove_remade(directory, index);
        }
        // One component and O_EXCL or O_NOFOLLOW: nothing can lead elsewhere.
        const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (fresh ? O_CREAT | O_EXCL : 0);
        UniqueFd fd(::openat(directory, name, flags | (direct ? O_DIRECT : 0), mode_of(entry)));
        if (!fd.valid() && direct && errno == EINVAL) {
            // Some file systems make the file before they refuse the flag.
            if (fresh) {
                ::unlinkat(directory, name, 0);
            }
            fd.reset(::openat(directory, name, flags, mode_of(entry)));
        }
        if (!fd.valid()) {
            fail(fresh ? "make" : "open", entry.path, errno);
        }
        struct stat status {};
        if (!fresh && (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))) {
            fail("open", entry.path, EINVAL);
        }
        return fd.release();
    }

    void write_chunk(BigFile& big, uint64_t from, uint64_t to, WriteBuffer& buffer) {
        const LayoutEntry& entry = layout_.entries[big.entry];
        {
            const std::lock_guard lock(big.mutex);
            if (big.fd < 0) {
                const UniqueFd parent(open_directory(entry.parent));
                if (parent.get() < 0) {
                    fail("enter", path_of(entry.parent), -parent.get());
                }
                big.fd = open_regular(parent.get(), big.entry, job_.content != Content::recorded);
                if (action(big.entry) == Action::refill && entry.attributes) {
                    put_back_attributes(big.fd, entry);
                }
                if (const int error = makes(big.entry) ? -begin(big.fd, big.entry) : 0; error != 0) {
                    fail("make room for", entry.path, error);
                }
            }
        }
        const int error = write_data(big.fd, big.entry, {from, to}, buffer, state_.stop);
        if (error != 0) {
            fail("write", entry.path, error);
        }
        if (state_.stop) {
            return;  // perhaps not whole
        }
        if (big.chunks_left.fetch_sub(1) != 1) {
            return;
        }
        const std::lock_guard lock(big.mutex);
        punch_holes(big.fd, big.entry, {big.from, big.to});
        if (const int unfinished = -finish_file(big.fd, entry.size); unfinished != 0) {
            fail("finish", entry.path, unfinished);
        }
        ::close(big.fd);
        big.fd = -1;
        filled(big.entry);
        did_one();
    }

    void make_some(const Piece& piece, WriteBuffer& buffer) {
        const UniqueFd directory(open_directory(piece.directory));
        if (directory.get() < 0) {
            fail("enter", path_of(piece.directory), -directory.get());
        }
        for (size_t i = piece.begin; i < piece.end && !state_.stop.load(std::memory_order_relaxed); ++i) {
            const uint32_t index = work_[i];
            const LayoutEntry& entry = layout_.entries[index];
            if (entry.type == FileType::regular) {
                make_regular(directory.get(), index, buffer);
            } else {
                make_special(directory.get(), index);
            }
            did_one();
        }
    }

    void make_special(int directory, uint32_t index) {
        const LayoutEntry& entry = layout_.entries[index];
        const char* const name = entry.name().data();
        if (action(index) == Action::refill) {
            if (::fchmodat(directory, name, mode_of(entry), 0) != 0) {
                fail("set the mode of", entry.path, errno);
            }
            return;
        }
        remove_remade(directory, index);
        const int result = entry.type == FileType::symlink ? ::symlinkat(entry.target.c_str(), directory, name)
                                                           : ::mknodat(directory, name, S_IFIFO | mode_of(entry), 0);
        if (result != 0) {
            fail("make", entry.path, errno);
        }
    }

    void make_regular(int directory, uint32_t index, WriteBuffer& buffer) {
        const LayoutEntry& entry = layout_.entries[index];
        if (entry.size == 0 && action(index) == Action::make) {
            return make_empty(directory, index);
        }
        const auto [from, to] = range_of(index);
        const bool direct = to - from >= kDirectFrom && job_.content != Content::recorded;
        const UniqueFd fd(open_regular(directory, index, direct));
        if (action(index) == Action::refill && entry.attributes) {
            put_back_attributes(fd.get(), entry);
        }
        int error = 0;
        const bool holes = layout_.holes.contains(index);
        // Files of one write have no size before it, so theirs tells whether they are whole.
        const bool begun = job_.content != Content::sparse && makes(index) && (to - from > kWriteBytes || holes);
        if (job_.content == Content::sparse) {
            if (!makes(index) && entry.data_changed()) {
                error = -finish_file(fd.get(), 0);
            }
            if (error == 0) {
                error = -finish_file(fd.get(), entry.size);
            }
        } else {
            if (begun) {
                error = -begin(fd.get(), index);
            }
            static const std::atomic<bool> never{false};
            if (error == 0) {
                error = write_data(fd.get(), index, {from, to}, buffer, direct ? state_.stop : never);
            }
            if (error == 0 && !state_.stop) {
                punch_holes(fd.get(), index, {from, to});
            }
            if (error == 0 && (direct || holes || begun) && !state_.stop) {
                error = -finish_file(fd.get(), entry.size);
            }
        }
        if (makes(index) && (error != 0 || (state_.stop && (direct || begun || holes)))) {
            ::unlinkat(directory, entry.name().data(), 0);
        }
        filled(index);
        if (error != 0) {
            fail("write", entry.path, error);
        }
    }

    /// What was written must be on the device before the replay starts to measure it.
    void sync() {
        for (const Demand& demand : job_.survey.demands) {
            const std::string where = demand.where == job_.root_name ? "." : demand.where;
            const UniqueFd fd(open_beneath(job_.root, where.c_str(), O_RDONLY | O_DIRECTORY, 0, Links::refuse));
            if (fd.get() >= 0 && ::syncfs(fd.get()) != 0) {
                fail("sync", demand.where, errno);
            }
        }
    }

    const WriteJob& job_;
    std::map<std::string, Compressible, std::less<>> compressible_;  // by content_class()
    const Layout& layout_;
    WriteState& state_;
    const std::function<void()>& tick_;
    std::vector<uint32_t> directories_;
    std::vector<DirectoryRename> moved_;  // those to rename back, from where they are by now
    std::vector<uint8_t> named_;          // by entry: has its inode already, and no data; empty: none has
    std::vector<uint32_t> work_;          // entries, those of one piece together
    std::vector<Piece> pieces_;
    std::vector<std::unique_ptr<BigFile>> big_files_;
};

}  // namespace

void free_room(const WriteJob& job, WriteState& state, const std::function<void()>& tick) {
    Writer(job, state, tick).free_room();
}

void write_layout(const WriteJob& job, WriteState& state, const std::function<void()>& tick) {
    Writer(job, state, tick).run();
}

}  // namespace reprise
