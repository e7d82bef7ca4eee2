// SPDX-License-Identifier: MIT
#include "replay/engine/process_state.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/random.h"
#include "formats/support/unique_fd.h"
#include "replay/engine/copy_each.h"
#include "replay/engine/syscalls.h"
#include "replay/engine/whole_blocks.h"

namespace reprise {
namespace {

constexpr int kMostDirectories = 512;

#ifndef O_LARGEFILE_KERNEL
#define O_LARGEFILE_KERNEL 0100000
#endif

bool write_all(int fd, const std::vector<uint64_t>& words) {
    const auto* at = reinterpret_cast<const char*>(words.data());
    for (size_t left = words.size() * sizeof(uint64_t); left > 0;) {
        const ssize_t n = write(fd, at, left);
        if (n <= 0) {
            return false;
        }
        at += n;
        left -= static_cast<size_t>(n);
    }
    return true;
}

}  // namespace

WritePattern::WritePattern(size_t bytes) : most_(bytes) {
    if (bytes == 0) {
        return;
    }
    mapped_ = (bytes + kPeriod - 1) / kPeriod * kPeriod + kPeriod;
    const int fd = memfd_create("reprise-pattern", MFD_CLOEXEC);
    std::vector<uint64_t> words(kPeriod / sizeof(uint64_t));
    uint64_t state = kGolden;
    for (uint64_t& word : words) {
        word = splitmix64(state += kGolden);
    }
    void* at = MAP_FAILED;
    if (fd >= 0 && write_all(fd, words)) {
        at = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    bool good = at != MAP_FAILED;
    for (size_t done = 0; good && done < mapped_; done += kPeriod) {
        good =
            mmap(static_cast<std::byte*>(at) + done, kPeriod, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    }
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!good) {
        throw machine_error("cannot make the bytes that the replay writes: " + reason(error),
                            remedy(error, "free memory, or raise its limit (ulimit -v)"));
    }
    data_ = static_cast<std::byte*>(at);
}

WritePattern::~WritePattern() {
    if (data_ != nullptr) {
        munmap(data_, mapped_);
    }
}

int64_t open_flags(int64_t recorded) {
    constexpr int64_t known = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |
                              O_DSYNC | O_DIRECT | O_LARGEFILE_KERNEL | O_DIRECTORY | O_NOFOLLOW | O_NOATIME |
                              O_CLOEXEC | O_PATH | O_TMPFILE;
    if ((recorded & O_PATH) != 0) {
        return recorded & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    // O_NONBLOCK changes nothing for files; a FIFO would otherwise wait for its other end.
    return (recorded & known) | O_NOCTTY | O_NONBLOCK;
}

open_how how_inside(int64_t flags, int64_t mode) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags);
    const bool makes = (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0;
    how.mode = makes ? static_cast<uint64_t>(mode) & 01777 : 0;  // never set-user-id
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    return how;
}

int64_t open_inside(int root, const char* relative, int64_t flags, int64_t mode) {
    const open_how how = how_inside(flags, mode);
    for (int tries = 0;; ++tries) {
        // One with O_PATH is mostly made for another call.
        const int64_t fd = (flags & O_PATH) != 0 ? sys::aside(SYS_openat2, root, relative, &how, sizeof how)
                                                 : sys::call(SYS_openat2, root, relative, &how, sizeof how);
        // EAGAIN: ".." met a rename; the kernel asks to try again.
        if ((fd != -EAGAIN && fd != -EINTR) || tries > 100) {
            return fd;
        }
    }
}

bool is_device(int fd) {
    // Not fstat: a recording of a replay tells this question from those of the job.
    struct statx stx {};
    return sys::aside(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) == 0 &&
           (S_ISCHR(stx.stx_mode) || S_ISBLK(stx.stx_mode));
}

WorkerState::WorkerState(const Plan& the_plan, int root_fd, bool only_reads, const WritePattern& bytes,
                         RunContext& context)
    : plan(the_plan),
      root(root_fd),
      read_only(only_reads),
      pattern(bytes),
      run(context),
      descriptors(the_plan, lock),
      mappings(the_plan.map_limit, lock),
      verified(the_plan.paths.size()),
      rings_(the_plan.rings.size()),
      directories_(the_plan.directories.size()),
      opens_(the_plan.directories.size()) {
    for (size_t i = 0; i < opens_.size(); ++i) {
        opens_[i] = i == 0 || !plan.directories[i].lasting ? Opens::from_root : Opens::none;
    }
    if (plan.access != nullptr) {
        access = std::make_unique<AccessState>();
        access->alignment = std::vector<std::atomic<int32_t>>(plan.access->handles.size());
    }
    if (!plan.passed.empty()) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // pidfd_getfd asks for it where Yama is on
    }
}

WorkerState::WorkerState(Child, const WorkerState& parent)
    : plan(parent.plan),
      root(parent.root),
      read_only(parent.read_only),
      pattern(parent.pattern),
      run(parent.run),
      descriptors(parent.descriptors, lock),
      mappings(parent.mappings, lock),
      requests(parent.requests),
      verified(parent.verified.size()),
      nameless_(parent.nameless_),
      directories_(parent.directories_.size()),
      opens_(parent.opens_.size()),
      kept_directories_(parent.kept_directories_.load()) {
    copy_each(parent.verified, verified);
    copy_each(parent.directories_, directories_);
    copy_each(parent.opens_, opens_);
}

std::unique_ptr<WorkerState> WorkerState::of_child() const {
    constexpr size_t kMostEntries = 100'000;  // copied in a tenth of the time of a fork
    const size_t entries = plan.handle_flags.size() + verified.size() + opens_.size();
    const bool only_by_fork =
        !mappings.empty() || !rings_.empty() || !plan.passed.empty() || access != nullptr || entries > kMostEntries;
    return only_by_fork ? nullptr : std::unique_ptr<WorkerState>(new WorkerState(Child{}, *this));
}

void WorkerState::open_inherited(ProcessId process) {
    for (const HandleId handle : plan.processes[process].inherited) {
        // What the log itself makes is not there yet: the first op that uses it tries again.
        if (!plan.passed_index.contains(plan.log->tables().handles[handle].file)) {
            open_again(handle);
        }
    }
}

int open_instance(const Plan& plan, int root, bool read_only, HandleId handle) {
    const HandleRow& row = plan.log->tables().handles[handle];
    const bool has_place = row.file != 0 && row.file < plan.paths.size() && plan.paths[row.file].relative != nullptr;
    if (!has_place || (row.flags & O_TMPFILE & ~O_DIRECTORY) != 0) {
        return -ENOENT;
    }
    int64_t flags = open_flags(row.flags & ~int64_t{O_CREAT | O_EXCL | O_TRUNC});
    if (read_only && (flags & O_PATH) == 0) {
        flags &= ~int64_t{O_ACCMODE};
    }
    const auto use = plan.inherited.find(handle);
    // A descriptor that the source first saw in use tells nothing of how it was opened.
    if (use != plan.inherited.end() && use->second.written && (flags & O_ACCMODE) == O_RDONLY && !read_only) {
        flags = (flags & ~int64_t{O_ACCMODE}) | O_RDWR;
    }
    const auto fd = static_cast<int>(open_inside(root, plan.paths[row.file].relative, flags, 0));
    if (fd >= 0 && is_device(fd)) {
        close(fd);
        return -ENODEV;
    }
    if (fd >= 0 && use != plan.inherited.end() && use->second.position > 0) {
        lseek(fd, use->second.position, SEEK_SET);
    }
    return fd;
}

int WorkerState::open_again(HandleId handle) {
    const std::lock_guard guard(opening);
    if (const int fd = descriptors.get(handle); fd != DescriptorTable::kUnknown) {
        return fd;
    }
    const HandleRow& row = plan.log->tables().handles[handle];
    if (row.file == 0 || row.file >= plan.paths.size() || plan.paths[row.file].relative == nullptr) {
        descriptors.set_absent(handle, row.file == 0 ? LeftOut::not_a_file : LeftOut::no_place);
        return descriptors.get(handle);
    }
    if (const int taken = take_passed(row.file); taken >= 0) {
        descriptors.opened(handle, taken, row.fd);
        return descriptors.get(handle);
    }
    const int fd = open_instance(plan, root, read_only, handle);
    if (fd == -EACCES || fd == -EPERM) {  // the job's user did not open it either: it came to the job
        descriptors.set_absent(handle, LeftOut::not_permitted);
        return descriptors.get(handle);
    }
    if (fd == -ENODEV) {
        descriptors.set_absent(handle, LeftOut::device_node);
    } else if (fd >= 0) {
        adopt(handle, fd);
    }
    return descriptors.get(handle);
}

void WorkerState::adopt(HandleId handle, int fd) {
    descriptors.opened(handle, fd, plan.log->tables().handles[handle].fd);
    open_others(handle, fd);
}

void WorkerState::open_others(HandleId handle, int fd) {
    const auto use = plan.inherited.find(handle);
    const int32_t first = plan.log->tables().handles[handle].fd;
    if (use == plan.inherited.end() || first < 0) {
        return;
    }
    const bool ends_at_exec = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    for (const auto& [recorded, seen] : use->second.descriptors) {
        if (recorded == first || seen.made) {
            continue;
        }
        if (const int copy = fcntl(fd, ends_at_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0); copy >= 0) {
            descriptors.duplicated(handle, copy, recorded);
        }
    }
}

bool WorkerState::came_unseen(HandleId handle) const {
    const Tables& tables = plan.log->tables();
    const HandleRow& row = tables.handles[handle];
    return row.inherited && tables.files[row.file].origin == Origin::created;
}

void WorkerState::keep_for_others(FileId file, int fd) {
    const auto found = plan.passed_index.find(file);
    if (found == plan.passed_index.end()) {
        return;
    }
    const std::lock_guard guard(lock);
    drop_taken();
    constexpr int kFrom = 16;  // by which a recording of the replay tells it from a recorded dup
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kFrom);
    if (copy >= 0) {
        kept_.push_back({found->second, copy});
        run.pass(found->second).where.store(static_cast<uint64_t>(getpid()) << 32 | static_cast<uint32_t>(copy));
    }
}

int WorkerState::take_passed(FileId file) {
    const auto found = plan.passed_index.find(file);
    if (found == plan.passed_index.end()) {
        return -1;
    }
    PassSlot& slot = run.pass(found->second);
    const uint64_t where = slot.where.load();
    if (where == 0) {
        return -1;
    }
    const int process = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(where >> 32), 0));
    if (process < 0) {
        return -1;
    }
    const int fd = static_cast<int>(syscall(SYS_pidfd_getfd, process, static_cast<int>(where & 0xffffffff), 0));
    close(process);
    slot.taken.fetch_add(1);
    return fd;
}

bool WorkerState::wanted(const Kept& kept) const {
    const PassedFile& passed = plan.passed[kept.index];
    if (run.stopped() || run.pass(kept.index).taken.load() >= passed.receivers.size()) {
        return false;
    }
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        const bool receives = std::find(passed.receivers.begin(), passed.receivers.end(), plan.tasks[task].process) !=
                              passed.receivers.end();
        if (receives && !run.ended(task)) {
            return true;
        }
    }
    return false;
}

void WorkerState::drop_taken() {
    std::erase_if(kept_, [&](const Kept& kept) {
        const bool taken = run.pass(kept.index).taken.load() >= plan.passed[kept.index].receivers.size();
        if (taken) {
            close(kept.fd);
        }
        return taken;
    });
}

void WorkerState::forked() {
    const std::lock_guard guard(lock);
    for (const Kept& kept : kept_) {
        close(kept.fd);
    }
    kept_.clear();
    // The parent's: its memory is not here, and its thread may be in the middle of it.
    for (std::atomic<ReplayedRing*>& ring : rings_) {
        ring.store(nullptr);
    }
}

WorkerState::~WorkerState() {
    for (std::atomic<ReplayedRing*>& ring : rings_) {
        delete ring.load();
    }
}

ReplayedRing& WorkerState::ring(uint32_t number) {
    if (ReplayedRing* const known = known_ring(number)) {
        return *known;
    }
    const std::lock_guard guard(lock);
    if (known_ring(number) == nullptr) {
        const RequestRing& recorded = plan.rings[number];
        RingOptions options;
        options.queue.depth = recorded.depth;
        options.queue.polled = recorded.polled;
        options.aio = recorded.aio;
        options.shared = recorded.shared;
        for (const TaskPlan& task : plan.tasks) {
            if (task.process == recorded.process && task.requests.any()) {
                options.buffer_bytes = std::max(options.buffer_bytes, task.read_bytes);
            }
        }
        options.buffer_bytes += recorded.part_blocks ? 2 * kUsualBlock : 0;
        auto ring = std::make_unique<ReplayedRing>(options);
        if (ring->refused() != 0) {
            run.requests_by_threads(recorded.aio, -ring->refused());
        }
        rings_[number].store(ring.release(), std::memory_order_release);
    }
    return *known_ring(number);
}

void WorkerState::wait_until_taken() {
    for (const Kept& kept : kept_) {
        while (wanted(kept)) {
            const timespec pause{0, 2'000'000};
            nanosleep(&pause, nullptr);
        }
    }
}

int WorkerState::parent_of(const RootPath& path, bool* temporary) {
    *temporary = false;
    if (path.directory == 0) {
        return root;
    }
    std::atomic<int32_t>& kept = directories_[path.directory];
    if (const int fd = kept.load(std::memory_order_acquire) - 1; fd >= 0) {
        return fd;
    }
    const RootDirectory& directory = plan.directories[path.directory];
    const auto fd =
        static_cast<int>(open_inside(root, directory.relative.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    if (fd < 0) {
        return fd;
    }
    int32_t none = 0;
    if (directory.lasting && kept_directories_.fetch_add(1, std::memory_order_relaxed) < kMostDirectories &&
        kept.compare_exchange_strong(none, fd + 1, std::memory_order_acq_rel)) {
        return fd;
    }
    *temporary = true;
    return fd;
}

int64_t WorkerState::open_by_descriptor(FileId file, int64_t flags) const {
    const auto found = plan.behind_descriptors.find(file);
    if (found == plan.behind_descriptors.end()) {
        return -1;
    }
    const auto open = std::find_if(found->second.rbegin(), found->second.rend(),
                                   [&](HandleId handle) { return descriptors.get(handle) >= 0; });
    if (open == found->second.rend()) {
        return -1;
    }
    const std::string path = "/proc/thread-self/fd/" + std::to_string(descriptors.get(*open));
    return sys::call(SYS_openat, AT_FDCWD, path.c_str(), (flags & ~int64_t{O_CREAT | O_EXCL | O_NOFOLLOW}) | O_CLOEXEC,
                     0);
}

int64_t WorkerState::open_file(const RootPath& path, int64_t flags, int64_t mode) {
    std::atomic<Opens>& opens = opens_[path.directory];
    const Opens so_far = opens.load(std::memory_order_relaxed);
    if (so_far == Opens::none) {
        opens.store(Opens::once, std::memory_order_relaxed);
    } else if (so_far == Opens::once) {
        bool temporary = false;
        const int parent = parent_of(path, &temporary);
        const UniqueFd closes(temporary ? parent : -1);
        const int64_t fd = parent < 0 ? parent : open_inside(parent, path.relative + path.name, flags, mode);
        if (parent >= 0 && fd != -EXDEV) {
            return fd;
        }
        // No such directory, or a link in it leads out of it, maybe not out of the root.
        opens.store(Opens::from_root, std::memory_order_relaxed);
    }
    return open_inside(root, path.relative, flags, mode);
}

}  // namespace reprise
