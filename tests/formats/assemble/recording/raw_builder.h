// SPDX-License-Identifier: MIT
// Raw recordings made by hand, and the op log assembled from them.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "formats/assemble/recording/recording.h"
#include "formats/oplog/syscall_numbers.h"
#include "formats/raw/log.h"
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {

/// One record: the struct it begins with, then parts.
class RawBytes {
public:
    RawBytes(uint8_t type, const raw_head& head) {  // of records that are nothing but a head
        bytes_.resize(sizeof head);
        std::memcpy(bytes_.data(), &head, sizeof head);
        this->head().type = type;
        set_size();
    }
    template <class Struct>
    RawBytes(uint8_t type, Struct record) {
        record.head.type = type;
        bytes_.resize(sizeof record);
        std::memcpy(bytes_.data(), &record, sizeof record);
        set_size();
    }
    RawBytes& part(raw_part_type type, uint16_t which, const void* data, size_t size, size_t length) {
        raw_part head{};
        head.type = type;
        head.which = which;
        head.length = static_cast<uint16_t>(length);
        const size_t padded = (size + 7) / 8 * 8;
        head.size = static_cast<uint16_t>(sizeof head + padded);
        const size_t at = bytes_.size();
        bytes_.resize(at + head.size);
        std::memcpy(bytes_.data() + at, &head, sizeof head);
        if (size) {
            std::memcpy(bytes_.data() + at + sizeof head, data, size);
        }
        set_size();
        return *this;
    }
    RawBytes& fd(uint16_t which, const raw_fd& fd) { return part(RAW_PART_FD, which, &fd, sizeof fd, 1); }
    RawBytes& text(raw_part_type type, uint16_t which, std::string_view text) {
        return part(type, which, text.data(), text.size(), text.size());
    }
    RawBytes& path(uint16_t which, std::string_view name) { return text(RAW_PART_PATH, which, name); }
    RawBytes& string(uint16_t which, std::string_view name) { return text(RAW_PART_STRING, which, name); }
    RawBytes& numbers(raw_part_type type, uint16_t which, const std::vector<raw_s64>& values) {
        return part(type, which, values.data(), values.size() * sizeof(raw_s64), values.size());
    }
    RawBytes& stat(uint16_t which, uint64_t size, uint32_t mode) {
        raw_stat out{};
        out.size = size;
        out.mode = mode;
        return part(RAW_PART_STAT, which, &out, sizeof out, 1);
    }
    raw_head& head() { return *reinterpret_cast<raw_head*>(bytes_.data()); }
    const std::vector<uint8_t>& bytes() const { return bytes_; }

private:
    void set_size() { head().size = static_cast<uint16_t>(bytes_.size()); }
    std::vector<uint8_t> bytes_;
};

/// A recording; time starts at kStart and goes on by 10 us a record unless it is set.
class RawJob {
public:
    static constexpr uint64_t kStart = 1'000'000'000;

    explicit RawJob(std::string meta = R"({"command":["job"],"cwd":"/home/me"})") : meta_(std::move(meta)) {}

    RawBytes& add(RawBytes record) {
        raw_head& head = record.head();
        if (head.pid == 0) {
            head.pid = pid;
        }
        if (head.tid == 0) {
            head.tid = tid;
        }
        const bool numbered = head.type < RAW_SEED_TASK || head.type > RAW_SEED_MAP;
        if (numbered) {
            head.sequence = sequences_[head.tid]++;
        }
        return records_.emplace_back(std::move(record));
    }
    /// A call of the current task: from now+1 us to now+`length`.
    RawBytes& call(uint16_t nr, std::vector<uint64_t> args, int64_t result, uint64_t length = 1000) {
        return call_at(now + 9000, now + 9000 + length, nr, std::move(args), result);
    }
    RawBytes& call_at(uint64_t enter, uint64_t exit, uint16_t nr, std::vector<uint64_t> args, int64_t result) {
        raw_call record{};
        record.enter = enter;
        record.head.time = exit;
        record.result = result;
        record.nr = nr;
        record.own_ns = own;
        for (size_t i = 0; i < args.size() && i < 6; ++i) {
            record.args[i] = args[i];
        }
        now = std::max(now, exit);
        return add(RawBytes(RAW_CALL, record));
    }
    RawBytes& open(std::string_view path, int fd, uint64_t file, uint64_t inode, uint64_t size = 8192,
                   uint64_t flags = 0) {
        return call(SYS_openat, {uint64_t(-100), 0x1000, flags, 0644}, fd)
            .path(1, path)
            .fd(RAW_WHICH_RESULT, fd_of(fd, file, inode, size));
    }
    RawBytes& pread(int fd, uint64_t file, uint64_t inode, uint64_t offset, uint64_t size, uint64_t buffer = 0x9000) {
        return call(SYS_pread64, {uint64_t(fd), buffer, size, offset}, int64_t(size)).fd(0, fd_of(fd, file, inode));
    }
    RawBytes& off(uint64_t from, uint64_t wake, uint64_t to, uint16_t nr, uint16_t state = RAW_OFF_SLEEPING,
                  bool for_io = false) {
        raw_switch record{};
        record.head.time = to;
        record.off = from;
        record.wake = wake;
        record.nr = nr;
        record.waker_nr = 0xffff;
        record.state = state;
        record.in_iowait = for_io ? 1 : 0;
        return add(RawBytes(RAW_SWITCH, record));
    }
    RawBytes& woken(uint64_t from, uint64_t wake, uint64_t to, uint16_t nr, uint32_t waker_pid, uint32_t waker_tid,
                    uint16_t waker_nr, uint64_t waker_enter) {
        raw_switch record{};
        record.head.time = to;
        record.off = from;
        record.wake = wake;
        record.nr = nr;
        record.state = RAW_OFF_SLEEPING;
        record.waker_pid = waker_pid;
        record.waker_tid = waker_tid;
        record.waker_nr = waker_nr;
        record.waker_enter = waker_enter;
        return add(RawBytes(RAW_SWITCH, record));
    }
    /// `how`: RAW_FAULT_*.
    RawBytes& fault(uint64_t from, uint64_t to, uint64_t address, uint16_t how = 0, bool major = false) {
        raw_fault record{};
        record.head.time = to;
        record.enter = from;
        record.address = address;
        record.write = how;
        record.major = major ? 1 : 0;
        return add(RawBytes(RAW_FAULT, record));
    }
    RawBytes& touches(uint64_t from, uint64_t to, uint64_t busy, uint64_t address, uint32_t pages,
                      uint32_t how = RAW_FAULT_WRITES) {
        raw_touch record{};
        record.head.time = now;  // sent with what comes next
        record.enter = from;
        record.end = to;
        record.busy = busy;
        record.address = address;
        record.pages = pages;
        record.write = how;
        return add(RawBytes(RAW_TOUCH, record));
    }
    RawBytes& stolen(uint64_t noticed, uint64_t ns) {
        raw_stolen record{};
        record.head.time = noticed;
        record.stolen = ns;
        return add(RawBytes(RAW_STOLEN, record));
    }
    RawBytes& faults(uint64_t told, uint32_t number, uint32_t dear = 0, uint64_t dear_ns = 0) {
        raw_faults record{};
        record.head.time = told;
        record.faults = number;
        record.dear = dear;
        record.dear_ns = dear_ns;
        return add(RawBytes(RAW_FAULTS, record));
    }
    /// spawn record and the call that it lies in
    void spawn(uint32_t child_pid, uint32_t child_tid, uint64_t flags) {
        raw_spawn record{};
        record.head.time = now + 9500;
        record.child_pid = child_pid;
        record.child_tid = child_tid;
        record.flags = flags;
        std::strcpy(record.name, "child");
        add(RawBytes(RAW_SPAWN, record));
        call(SYS_clone, {flags}, child_tid);
    }
    /// `allowed`: processors it might use, a bit each; 0: not told. `held`: bytes, of the last thread.
    void exit(int code, bool last = true, uint64_t allowed = 0, uint64_t held = 0) {
        raw_exit record{};
        record.allowed = allowed;
        record.cpus = static_cast<uint32_t>(std::popcount(allowed));
        call(SYS_exit_group, {uint64_t(code)}, 0).head().flags = RAW_FLAG_UNFINISHED;
        record.head.time = now += 100;
        record.code = code << 8;
        record.last = last;
        record.held = held;
        add(RawBytes(RAW_EXIT, record));
    }
    /// The last thread is ended by a signal, outside a call. `how`: as wait would show it.
    void killed(int how) {
        raw_exit record{};
        record.head.time = now += 100;
        record.code = how;
        record.last = 1;
        add(RawBytes(RAW_EXIT, record));
    }
    void as(uint32_t p, uint32_t t) {
        pid = p;
        tid = t;
    }
    static raw_fd fd_of(int fd, uint64_t file, uint64_t inode, uint64_t size = 8192, uint32_t mode = 0100644) {
        raw_fd out{};
        out.file = file;
        out.inode = inode;
        out.size = size;
        out.device = 8 << 20 | 1;
        out.mode = mode;
        out.fd = fd;
        return out;
    }
    static raw_fd pipe_of(int fd, uint64_t file, uint64_t inode) { return fd_of(fd, file, inode, 0, 0010600); }

    void write(const std::filesystem::path& path, bool finish = true) {
        RawWriter writer(path, meta_);
        for (RawBytes& record : records_) {
            writer.append(record.bytes());
        }
        if (finish) {
            writer.finish();
        } else {
            writer.flush();
        }
    }
    AssembledLog assemble(const RawAssembleOptions& options = {}) {
        write(dir / "job.raw");
        assemble_raw_file(dir / "job.raw", dir / "job.oplog", options);
        return AssembledLog(dir / "job.oplog");
    }
    std::vector<RawBytes>& records() { return records_; }

    TempDir dir;
    uint32_t pid = 100, tid = 100;
    uint64_t now = kStart;
    uint32_t own = 0;  // ns, what calls say that the recorder took after the one before

private:
    std::string meta_;
    std::vector<RawBytes> records_;
    std::map<uint32_t, uint32_t> sequences_;
};

inline std::vector<Edge> edges_of(const AssembledLog& log, TaskId task, uint64_t number) {
    std::vector<Edge> out;
    log.reader.for_each(task, [&](const Op& op, uint64_t at) {
        if (at == number) {
            out.assign(op.edges.begin(), op.edges.end());
        }
    });
    return out;
}

/// Number of the n-th op of this kind within its task.
inline uint64_t number_of(const AssembledLog& log, TaskId task, OpKind kind, size_t n = 0) {
    const std::vector<Op> ops = log.ops(task);
    for (size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind == kind && n-- == 0) {
            return i;
        }
    }
    return UINT64_MAX;
}

}  // namespace reprise::test
