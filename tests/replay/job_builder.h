// SPDX-License-Identifier: MIT
// Builds small op logs by hand: a job of processes and threads whose ops are spelled out.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/runner.h"
#include "tests/support.h"

namespace reprise::test {

/// Ops are appended with a clock of 10 us a step, each lasting 5 us, unless times are given.
class JobBuilder {
public:
    explicit JobBuilder(std::filesystem::path path, WriterOptions options = {})
        : path_(std::move(path)), writer_(path_, header(), std::move(options)) {}

    ProcessId process(ProcessId parent = 0) {
        ProcessRow row;
        row.pid = 100 + static_cast<int>(writer_.tables().processes.size());
        row.parent = parent;
        return writer_.add_process(row);
    }
    TaskId task(ProcessId process) {
        TaskRow row;
        row.process = process;
        row.tid = 1000 + static_cast<int>(writer_.tables().tasks.size());
        return writer_.add_task(row);
    }
    TaskId named_task(ProcessId process, std::string_view name) {
        TaskRow row;
        row.process = process;
        row.tid = 1000 + static_cast<int>(writer_.tables().tasks.size());
        row.name = writer_.intern(name);
        return writer_.add_task(row);
    }
    /// A task in a process of its own.
    TaskId lone_task() { return task(process()); }

    FileId file(std::string_view path, Origin origin = Origin::existed, Role role = Role::dataset,
                FileType type = FileType::regular) {
        if (const auto found = files_.find(std::string(path)); found != files_.end()) {
            return found->second;
        }
        FileRow row;
        row.path = writer_.intern(path);
        row.origin = origin;
        row.role = role;
        row.type = type;
        return files_[std::string(path)] = writer_.add_file(row);
    }
    HandleId handle(FileId file, int64_t flags = O_RDONLY, HandleKind kind = HandleKind::file) {
        HandleRow row;
        row.file = file;
        row.flags = flags;
        row.kind = kind;
        return writer_.add_handle(row);
    }
    HandleId inherited(FileId file, ProcessId process, int fd, int64_t flags = O_RDONLY) {
        HandleRow row;
        row.file = file;
        row.flags = flags;
        row.inherited = true;
        row.process = process;
        row.fd = fd;
        return writer_.add_handle(row);
    }
    StringId text(std::string_view text) { return writer_.intern(text); }

    /// Appends at the next step of the clock, or at op.begin where that is set.
    uint64_t add(TaskId task, Op op) {
        if (op.begin == 0) {
            clock_ += 10'000;
            op.begin = clock_;
        } else {
            clock_ = std::max(clock_, op.begin);
        }
        if (op.duration == 0) {
            op.duration = 5'000;
        }
        return writer_.append(task, op);
    }
    /// Opens a file; the descriptor counts up from 3.
    HandleId open(TaskId task, FileId file, int64_t flags = O_RDONLY, int64_t mode = 0644) {
        const HandleId made = handle(file, flags);
        add(task, {.kind = OpKind::open,
                   .result = next_fd_,
                   .handle = made,
                   .fd = -1,
                   .file = file,
                   .flags = flags,
                   .mode = mode});
        fds_[made] = next_fd_++;
        return made;
    }
    void close(TaskId task, HandleId handle) {
        add(task, {.kind = OpKind::close, .handle = handle, .fd = fds_[handle]});
    }
    void pread(TaskId task, HandleId handle, int64_t offset, int64_t size) {
        add(task, {.kind = OpKind::pread,
                   .result = size,
                   .handle = handle,
                   .fd = fds_[handle],
                   .offset = offset,
                   .size = size});
    }
    void read(TaskId task, HandleId handle, int64_t offset, int64_t size) {
        add(task, {.kind = OpKind::read,
                   .result = size,
                   .handle = handle,
                   .fd = fds_[handle],
                   .offset = offset,
                   .size = size});
    }
    void write(TaskId task, HandleId handle, int64_t offset, int64_t size) {
        add(task, {.kind = OpKind::write,
                   .result = size,
                   .handle = handle,
                   .fd = fds_[handle],
                   .offset = offset,
                   .size = size});
    }
    void pwrite(TaskId task, HandleId handle, int64_t offset, int64_t size) {
        add(task, {.kind = OpKind::pwrite,
                   .result = size,
                   .handle = handle,
                   .fd = fds_[handle],
                   .offset = offset,
                   .size = size});
    }
    uint64_t spawn(TaskId task, TaskId peer) { return add(task, {.kind = OpKind::spawn, .result = 1, .peer = peer}); }
    int fd(HandleId handle) const { return fds_.at(handle); }
    int64_t now() const { return clock_; }
    void skip(int64_t ns) { clock_ += ns; }

    LogWriter& writer() { return writer_; }
    LogReader finish() {
        writer_.finish();
        return LogReader(path_);
    }

private:
    static Header header() {
        Header header;
        header.source = "test";
        return header;
    }
    std::filesystem::path path_;
    LogWriter writer_;
    std::map<std::string, FileId> files_;
    std::map<HandleId, int> fds_;
    int next_fd_ = 3;
    int64_t clock_ = 0;
};

/// A root that may be changed.
inline void mark_prepared(const std::filesystem::path& root, const PathMap& maps = {}) {
    const int fd = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    Marker marker;
    marker.state = MarkerState::complete;
    marker.tool = "test";
    marker.maps = maps;
    RootLock lock = RootLock::take(fd, root.string(), RootLock::Kind::exclusive);
    write_marker(fd, root.string(), marker, lock);
    ::close(fd);
}

/// A folder of its own with a root in it that may be changed.
struct PreparedRoot {
    TempDir dir;
    std::filesystem::path root = dir / "root";

    PreparedRoot() {
        std::filesystem::create_directories(root);
        mark_prepared(root);
    }
};

inline ReplayOptions afap(const std::filesystem::path& root) {
    ReplayOptions options;
    options.root = root;
    options.pace = Pace::afap;
    options.filter = OpFilter::all();
    return options;
}

/// Shown with a failed check.
inline std::string describe(const ReplayResult& result) {
    std::string text =
        result.ended + "; " + std::to_string(result.ops) + " ops, " + std::to_string(result.mismatches) + " mismatches";
    for (const Mismatch& one : result.examples) {
        text += "; " + std::string(info(one.kind).name) + " #" + std::to_string(one.op) + " of task " +
                std::to_string(one.task) + " " + one.path + ": " + std::to_string(one.recorded) + " recorded, " +
                std::to_string(one.actual) + " here";
    }
    for (const std::string& note : result.notes) {
        text += "; " + note;
    }
    return text;
}

}  // namespace reprise::test
