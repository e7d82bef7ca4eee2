// SPDX-License-Identifier: MIT
// What the tasks of one worker process share: descriptors, mappings, directories, requests. fork copies it.
#pragma once

#include <linux/openat2.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "replay/engine/fd_table.h"
#include "replay/engine/mappings.h"
#include "replay/engine/run_context.h"
#include "replay/plan/plan.h"
#include "replay/requests/replayed_ring.h"

namespace reprise {

/// Read-only bytes that do not compress, long enough for the largest write; its pages repeat.
class WritePattern {
public:
    /// Throws Error (machine).
    explicit WritePattern(size_t bytes);
    ~WritePattern();
    WritePattern(const WritePattern&) = delete;
    WritePattern& operator=(const WritePattern&) = delete;
    /// From how many places on writes may start: each as many bytes as a write has at most.
    static constexpr size_t kPeriod = size_t{4} << 20;
    const std::byte* data() const { return data_; }
    /// Bytes of the longest write.
    size_t size() const { return most_; }

private:
    std::byte* data_ = nullptr;
    size_t most_ = 0, mapped_ = 0;
};

/// Of a process whose files are got at otherwise than recorded (Plan::access).
struct AccessState {
    static constexpr int32_t kRefused = -1;
    struct Source {
        int fd = -1;
        HandleId handle = 0;
        int64_t offset = 0, bytes = 0;
    };
    struct Mapped {
        std::byte* at = nullptr;  // null: could not be mapped
        int64_t bytes = 0;
    };
    std::vector<std::atomic<int32_t>> alignment;   // by handle, bytes; 0: not known yet
    std::unordered_map<uint32_t, Source> sources;  // of mappings that are read in place of being made
    std::unordered_map<HandleId, Mapped> mapped;   // of instances whose reads are touches
};

/// Opens the file of an instance that was open before the recording began, at its position. Descriptor or -errno, of a
/// device ENODEV.
int open_instance(const Plan& plan, int root, bool read_only, HandleId handle);

struct WorkerState {
    WorkerState(const Plan& plan, int root, bool read_only, const WritePattern& pattern, RunContext& run);
    ~WorkerState();
    WorkerState(const WorkerState&) = delete;
    WorkerState& operator=(const WorkerState&) = delete;
    /// What a child process of the same memory starts with, its descriptors being copies of this one's. Null where only
    /// fork can copy it, or for less. Both locks are held.
    std::unique_ptr<WorkerState> of_child() const;

    /// Opens what was open before the recording began, for one process.
    void open_inherited(ProcessId process);
    /// An instance that another process has as well.
    void adopt(HandleId handle, int fd);
    /// Opens an instance that this process should have but did not open itself, by its path. Descriptor, or as
    /// DescriptorTable::get.
    int open_again(HandleId handle);
    /// The other descriptors that an instance had at the start.
    void open_others(HandleId handle, int fd);
    /// True if no call of the log opens this instance, of a file that the log itself makes: another process passed it
    /// on.
    bool came_unseen(HandleId handle) const;
    bool is_fifo(FileId file) const { return file_type(file) == FileType::fifo; }
    FileType file_type(FileId file) const {
        const std::vector<FileRow>& files = plan.log->tables().files;
        return file < files.size() ? files[file].type : FileType::unknown;
    }

    /// The file that O_TMPFILE made last in a directory has no name but its descriptor.
    void made_nameless(FileId directory, HandleId handle) {
        const std::lock_guard guard(lock);
        nameless_[directory] = handle;
    }
    /// Its descriptor; negative: there is none.
    int nameless_in(FileId directory) {
        const std::lock_guard guard(lock);
        const auto found = nameless_.find(directory);
        return found == nameless_.end() ? -1 : descriptors.get(found->second);
    }

    /// Keeps a descriptor of a file for the processes that take it (Plan::passed). Cheap for any other file.
    void pass_on(FileId file, int fd) {
        if (!plan.passed.empty()) {
            keep_for_others(file, fd);
        }
    }
    /// In a fork's child: what its parent keeps for others is not its own.
    void forked();
    /// At the end of the process: until whoever takes a kept descriptor has done so or has ended.
    void wait_until_taken();

    /// The directory that holds `path`, as a descriptor. Where `*temporary` is set the caller closes it. -errno.
    int parent_of(const RootPath& path, bool* temporary);
    /// open_inside, from the second open in a lasting directory on without the walk there: programs that open many
    /// files mostly name them from where they are.
    int64_t open_file(const RootPath& path, int64_t flags, int64_t mode);

    /// Through a descriptor of the file, where another has its name (Plan::behind_descriptors); negative: not so.
    int64_t open_behind(FileId file, int64_t flags) const {
        return plan.behind_descriptors.empty() ? -1 : open_by_descriptor(file, flags);
    }

    const Plan& plan;
    const int root;
    const bool read_only;
    const WritePattern& pattern;
    RunContext& run;
    std::mutex opening;  // one open_again at a time; taken before `lock`
    std::mutex lock;     // everything else that is rare. Both are held over fork
    DescriptorTable descriptors;
    MappingTable mappings;
    /// The ring that stands for a recorded one (Plan::rings). Throws Error (machine) where there is no memory for it.
    ReplayedRing& ring(uint32_t number);
    /// By number; null: not used yet.
    ReplayedRing* known_ring(size_t number) const { return rings_[number].load(std::memory_order_acquire); }
    size_t ring_count() const { return rings_.size(); }
    /// What the kernel may still look at until the rings end.
    std::vector<std::shared_ptr<const void>> until_rings_end;  // guarded by `lock`
    std::unordered_map<uint32_t, int64_t> requests;  // result of an asynchronous request that was made at once
    std::vector<std::atomic<uint8_t>> verified;      // by file: its name was seen to be no device
    std::unique_ptr<AccessState> access;             // null: as recorded. Its tables are guarded by `lock`

private:
    struct Child {};
    WorkerState(Child, const WorkerState& parent);
    std::unordered_map<FileId, HandleId> nameless_;
    std::vector<std::atomic<ReplayedRing*>> rings_;        // each is made under `lock`
    enum class Opens : uint8_t { none, once, from_root };  // once: at least; the next starts at the directory
    struct Kept {
        uint32_t index;  // in Plan::passed
        int fd;
    };
    int64_t open_by_descriptor(FileId file, int64_t flags) const;
    void keep_for_others(FileId file, int fd);
    /// Takes a descriptor that another process keeps for this one. Negative where there is none.
    int take_passed(FileId file);
    bool wanted(const Kept& kept) const;
    void drop_taken();

    std::vector<Kept> kept_;                         // guarded by `lock`
    std::vector<std::atomic<int32_t>> directories_;  // descriptor + 1; 0: not open
    std::vector<std::atomic<Opens>> opens_;          // of files, by directory
    std::atomic<int> kept_directories_{0};
};

/// What openat2 is to do, so that it cannot leave the directory that it begins in.
open_how how_inside(int64_t flags, int64_t mode);
/// openat2 that cannot leave `root`. -errno. `flags` are checked by open_flags().
int64_t open_inside(int root, const char* relative, int64_t flags, int64_t mode);
/// What the replay passes of recorded O_* flags: known ones only, never waiting for the other end of a FIFO.
int64_t open_flags(int64_t recorded);
/// True where the descriptor is a device node.
bool is_device(int fd);

}  // namespace reprise
