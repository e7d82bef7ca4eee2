// SPDX-License-Identifier: MIT
// Writes the ops of one task, one after the other, at times as they would be with storage that is memory.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// How long calls take in a generated log. A replay measures its own; `--pace timed` and `info` see these. ns
struct NominalTime {
    static constexpr int64_t open = 5'000, close = 1'000, attributes = 1'000, name = 5'000, call = 3'000;
    static constexpr int64_t sync = 1'000'000, request = 80'000;
    static constexpr int64_t per_page = 250;
    /// 8 bytes a nanosecond.
    static constexpr int64_t moved(int64_t bytes) { return call + bytes / 8; }
};

/// The lowest descriptor number that a process has free.
class Descriptors {
public:
    explicit Descriptors(int32_t first = 3) : next_(first) {}
    int32_t take() {
        if (!free_.empty()) {
            std::pop_heap(free_.begin(), free_.end(), std::greater<>{});
            const int32_t fd = free_.back();
            free_.pop_back();
            return fd;
        }
        return next_++;
    }
    void give(int32_t fd) {
        free_.push_back(fd);
        std::push_heap(free_.begin(), free_.end(), std::greater<>{});
    }

private:
    int32_t next_;
    std::vector<int32_t> free_;
};

/// Where a task stands: which op of it, and when that was over.
struct TaskMoment {
    TaskId task = 0;
    uint64_t op = 0;
    int64_t time = 0;  // ns

    bool is_set() const { return task != 0; }
};

struct OpenFile {
    HandleId handle = 0;
    int32_t fd = -1;
};

class TaskWriter {
public:
    TaskWriter(LogWriter& log, TaskId task, Descriptors& descriptors, int64_t now)
        : log_(&log), descriptors_(&descriptors), task_(task), now_(now) {}

    TaskId task() const { return task_; }
    int64_t now() const { return now_; }
    /// The op that was written last. A marker is none where there are others: it takes no time, and a thread that is
    /// late to it would hold up who waits for it.
    TaskMoment last() const { return {task_, op_, now_}; }
    uint64_t ops() const { return ops_; }
    int64_t read_bytes() const { return read_; }
    int64_t written_bytes() const { return written_; }
    /// In whole pages.
    int64_t touched_bytes() const { return touched_; }

    void put(Op op, int64_t duration) {
        op.begin = now_;
        op.duration = duration;
        // Hostile job files only: a log's times end before.
        constexpr int64_t kLast = int64_t{1} << 62;
        now_ = duration > kLast - now_ ? kLast : now_ + duration;
        op_ = log_->append(task_, op);
        ++ops_;
    }

    OpenFile open(FileId file, int64_t flags, int64_t mode = 0) {
        OpenFile made{log_->add_handle({.file = file, .flags = flags}), descriptors_->take()};
        put({.kind = OpKind::open,
             .result = made.fd,
             .handle = made.handle,
             .file = file,
             .flags = flags,
             .mode = mode},
            NominalTime::open);
        return made;
    }
    void close(const OpenFile& file) {
        put({.kind = OpKind::close, .handle = file.handle, .fd = file.fd}, NominalTime::close);
        descriptors_->give(file.fd);
    }
    void fstat(const OpenFile& file) {
        put({.kind = OpKind::fstat, .handle = file.handle, .fd = file.fd}, NominalTime::attributes);
    }
    /// `kind`: pread, read, pwrite or write, of so many bytes, all of which are moved. `asked`: more of them, where a
    /// read may go beyond the end of the file.
    void move(OpKind kind, const OpenFile& file, int64_t offset, int64_t bytes, int64_t asked = 0) {
        put({.kind = kind,
             .result = bytes,
             .handle = file.handle,
             .fd = file.fd,
             .offset = offset,
             .size = std::max(bytes, asked)},
            NominalTime::moved(bytes));
        (kind == OpKind::pread || kind == OpKind::read ? read_ : written_) += bytes;
    }
    /// What another task, which is over, did counts here, too.
    void add(const TaskWriter& other) {
        ops_ += other.ops_;
        read_ += other.read_;
        written_ += other.written_;
        touched_ += other.touched_;
    }
    void moved(int64_t read, int64_t written) {
        read_ += read;
        written_ += written;
    }
    void sync(OpKind kind, const OpenFile& file) {
        put({.kind = kind, .handle = file.handle, .fd = file.fd}, NominalTime::sync);
    }
    /// The whole of a file.
    uint32_t map(const OpenFile& file, int64_t size, uint32_t number) {
        constexpr int64_t kShared = 1, kReadable = 1;
        put({.kind = OpKind::mmap,
             .handle = file.handle,
             .fd = file.fd,
             .size = size,
             .flags = kShared,
             .mode = kReadable,
             .map = number},
            NominalTime::name);
        return number;
    }
    void unmap(uint32_t map, int64_t size) {
        put({.kind = OpKind::munmap, .size = size, .map = map}, NominalTime::name);
    }
    void touch(uint32_t map, int64_t offset, int64_t bytes) {
        constexpr int64_t kPage = 4096;
        const int64_t from = offset / kPage * kPage, to = (offset + bytes + kPage - 1) / kPage * kPage;
        put({.kind = OpKind::touch, .offset = from, .size = to - from, .map = map},
            (to - from) / kPage * NominalTime::per_page);
        touched_ += to - from;
    }
    /// Of a processor. Nothing for 0.
    void compute(int64_t ns) {
        if (ns > 0) {
            put({.kind = OpKind::compute, .flags = kComputeWorks}, ns);
        }
    }
    void sleep(int64_t ns) {
        if (ns > 0) {
            put({.kind = OpKind::wait, .arg = kWaitSleep}, ns);
        }
    }
    /// An open loop begins: its arrivals count from here.
    void begin_loop() {
        put({.kind = OpKind::wait, .arg = until_arg(0)}, 0);
        loop_begin_ = now_;
    }
    /// Until an arrival is due, so long after the loop began. No time, where the task is late.
    void wait_until(int64_t since_ns) {
        put({.kind = OpKind::wait, .arg = until_arg(since_ns)}, std::max<int64_t>(loop_begin_ + since_ns - now_, 0));
    }
    /// Until others are where they are named. Nothing where none is.
    void wait_for(const std::vector<TaskMoment>& others) {
        edges_.clear();
        int64_t until = now_;
        for (const TaskMoment& each : others) {
            if (each.is_set()) {
                edges_.push_back({each.task, EdgeKind::message, 100, each.op});
                until = std::max(until, each.time);
            }
        }
        if (!edges_.empty()) {
            put({.kind = OpKind::wait, .arg = kWaitFutex, .edges = edges_}, until - now_);
        }
    }
    void wait_for(const TaskMoment& other) {
        one_.assign(1, other);
        wait_for(one_);
    }
    void spawn(TaskId peer, bool thread) {
        constexpr int64_t kThread = 0x3d0f00;  // as pthread_create
        put({.kind = OpKind::spawn, .result = 1, .flags = thread ? kThread : 0x1200011, .peer = peer},
            NominalTime::name);
    }
    void join(const TaskMoment& other) {
        edges_.assign(1, Edge{other.task, EdgeKind::lifecycle, 100, other.op});
        put({.kind = OpKind::join, .peer = other.task, .edges = edges_}, std::max<int64_t>(other.time - now_, 0));
    }
    void mark(StringId name, uint64_t number, MarkerPhase phase) {
        const uint64_t before = op_;
        const bool others = ops_ != 0;
        put({.kind = OpKind::marker,
             .flags = static_cast<int64_t>(phase),
             .arg = static_cast<int64_t>(number),
             .text = name},
            0);
        op_ = others ? before : op_;
    }
    void exit() { put({.kind = OpKind::exit}, 0); }

private:
    LogWriter* log_;
    Descriptors* descriptors_;
    TaskId task_;
    int64_t now_, loop_begin_ = 0;
    uint64_t op_ = 0, ops_ = 0;
    int64_t read_ = 0, written_ = 0, touched_ = 0;
    std::vector<Edge> edges_;
    std::vector<TaskMoment> one_;
};

}  // namespace reprise
