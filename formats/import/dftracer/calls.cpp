// SPDX-License-Identifier: MIT
#include "formats/import/dftracer/calls.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <csignal>

namespace reprise::dftracer {
namespace {

constexpr int32_t kMostDescriptors = 1 << 20;

}  // namespace

void Calls::feed(const Event& event) {
    const Name& name = lines_.names[event.name];
    RawCall raw;
    raw.pid = processes_.pid(event.thread);
    raw.tid = processes_.tid(event.thread);
    raw.begin = (event.begin - origin_) * 1000;
    raw.duration = event.duration * 1000;
    raw.result = event.result;
    raw.fd = event.known & kFd ? event.fd : -1;
    raw.size = event.size;
    Descriptors*& mine = of_thread_[event.thread];
    if (!mine) {
        mine = &of_process_[raw.pid];
    }
    mine_ = mine;
    if (name.call >= Call::fopen || name.category == "STDIO") {
        feed_stdio(event, name.call, raw);
    } else {
        feed_posix(event, name.call, raw);
    }
}

// The last step: what DFTracer leaves out of results. It records -1 for errors, never errno.
void Calls::send(RawCall& raw, bool result_known) {
    raw.result_known = result_known;
    if (!result_known) {
        ++results_assumed_;
    } else if (raw.result == -1) {
        ++errno_assumed_;
        switch (raw.kind) {
            case OpKind::open: raw.result = (raw.flags & O_CREAT) && (raw.flags & O_EXCL) ? -EEXIST : -ENOENT; break;
            case OpKind::lseek: raw.result = -ESPIPE; break;
            case OpKind::close:
            case OpKind::fcntl:
            case OpKind::dup: raw.result = -EBADF; break;
            default: raw.result = -EIO; break;
        }
    }
    if (!raw.path.empty() && raw.path[0] != '/') {
        ++relative_;
    }
    assembler_.call(raw);
}

void Calls::opened(const Event& event, RawCall& raw) {
    if (!(event.known & kResult)) {
        ++incomplete_;  // no descriptor: nothing can follow from it
        return;
    }
    raw.kind = OpKind::open;
    raw.path = text(event.path);
    raw.mode = event.mode;
    raw.fd = -1;
    const int64_t fd = event.result;
    if (fd >= 0 && fd < kMostDescriptors) {
        if (static_cast<size_t>(fd) >= mine_->path.size()) {
            mine_->path.resize(static_cast<size_t>(fd) + 1);
        }
        mine_->path[static_cast<size_t>(fd)] = event.path;
    }
    send(raw, true);
}

void Calls::on_descriptor(const Event& event, RawCall& raw, OpKind kind) {
    raw.kind = kind;
    if (raw.fd < 0) {
        ++incomplete_;
        return;
    }
    const auto fd = static_cast<size_t>(raw.fd);
    const StringId known = fd < mine_->path.size() ? mine_->path[fd] : 0;
    if (!known || (event.path && event.path != known && !(event.known & kPathUnsure))) {
        // Open before the recording began, or opened in a way that DFTracer does not see: the name says what it is.
        raw.fd_path = text(event.path);
        if (raw.fd < kMostDescriptors && kind != OpKind::close) {
            if (fd >= mine_->path.size()) {
                mine_->path.resize(fd + 1);
            }
            mine_->path[fd] = event.path;
        }
    }
    if (kind == OpKind::close && fd < mine_->path.size()) {
        mine_->path[fd] = 0;
    }
    send(raw, event.known & kResult);
}

void Calls::by_path(const Event& event, RawCall& raw, OpKind kind) {
    raw.kind = kind;
    raw.fd = -1;
    raw.path = text(event.path);
    raw.mode = event.mode;
    if (raw.path.empty()) {
        ++incomplete_;
        return;
    }
    send(raw, event.known & kResult);
}

void Calls::by_two_paths(const Event& event, RawCall& raw, OpKind kind) {
    if (!event.path2) {
        ++incomplete_;
        return;
    }
    raw.path2 = text(event.path2);
    by_path(event, raw, kind);
}

void Calls::control_descriptor(const Event& event, RawCall& raw) {
    // The argument is not recorded; only commands that need none, or give a descriptor that is, can be kept.
    if (event.flags == F_GETFD || event.flags == F_GETFL) {
        raw.arg = event.flags;
        return on_descriptor(event, raw, OpKind::fcntl);
    }
    if ((event.flags == F_DUPFD || event.flags == F_DUPFD_CLOEXEC) && (event.known & kResult)) {
        raw.arg = kDupFd;
        raw.flags = event.flags == F_DUPFD_CLOEXEC ? O_CLOEXEC : 0;
        return on_descriptor(event, raw, OpKind::dup);
    }
    ++incomplete_;
}

void Calls::duplicate(const Event& event, RawCall& raw) {
    if (!(event.known & kResult)) {
        ++incomplete_;
        return;
    }
    raw.arg = kDup;
    return on_descriptor(event, raw, OpKind::dup);
}

void Calls::map_file(const Event& event, RawCall& raw) {
    if (raw.fd < 0) {  // memory, not a file
        ++ignored_;
        return;
    }
    ++protections_;
    raw.flags = event.flags;
    raw.mode = PROT_READ;
    raw.offset = event.offset;
    raw.address = event.known & kResult ? static_cast<uint64_t>(event.result) : 0;
    return on_descriptor(event, raw, OpKind::mmap);
}

void Calls::make_symlink(const Event& event, RawCall& raw) {
    if (!event.path2) {
        ++incomplete_;
        return;
    }
    raw.kind = OpKind::symlink;
    raw.fd = -1;
    raw.text = text(event.path);  // the target comes first
    raw.path = text(event.path2);
    return send(raw, event.known & kResult);
}

void Calls::list_directory(const Event& event, RawCall& raw) {
    // DFTracer names no descriptor, and no closedir: opened, and closed at once.
    ++directories_;
    const int32_t number = take_number();
    mine_->free.push_back(number);
    raw.result = number;
    raw.kind = OpKind::open;
    raw.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    raw.fd = -1;
    raw.path = text(event.path);
    send(raw, false);
    RawCall close;
    close.pid = raw.pid;
    close.tid = raw.tid;
    close.kind = OpKind::close;
    close.begin = raw.begin + raw.duration;
    close.fd = number;
    assembler_.call(close);
}

void Calls::fork(const Event& event, RawCall& raw) {
    if (!(event.known & kResult) || event.result <= 0) {
        return;  // 0: the child's own record of it
    }
    raw.kind = OpKind::spawn;
    raw.fd = -1;
    raw.arg = processes_.child(event.thread, event.result);
    raw.flags = SIGCHLD;
    return send(raw, true);
}

void Calls::feed_posix(const Event& event, Call call, RawCall& raw) {
    switch (call) {
        case Call::open:
        case Call::openat: raw.flags = event.flags; return opened(event, raw);
        case Call::creat: raw.flags = O_CREAT | O_WRONLY | O_TRUNC; return opened(event, raw);
        case Call::close: return on_descriptor(event, raw, OpKind::close);
        case Call::read: return on_descriptor(event, raw, OpKind::read);
        case Call::write: return on_descriptor(event, raw, OpKind::write);
        case Call::readv: return on_descriptor(event, raw, OpKind::readv);
        case Call::writev: return on_descriptor(event, raw, OpKind::writev);
        case Call::pread:
        case Call::pwrite:
            if (event.known & kOffset) {
                raw.offset = event.offset;
            }
            return on_descriptor(event, raw, call == Call::pread ? OpKind::pread : OpKind::pwrite);
        case Call::lseek:
            raw.offset = event.offset;
            raw.arg = event.flags;
            return on_descriptor(event, raw, OpKind::lseek);
        case Call::fstat: return on_descriptor(event, raw, OpKind::fstat);
        case Call::ftruncate: return on_descriptor(event, raw, OpKind::ftruncate);
        case Call::fsync: return on_descriptor(event, raw, OpKind::fsync);
        case Call::fdatasync: return on_descriptor(event, raw, OpKind::fdatasync);
        case Call::fchmod: raw.mode = event.mode; return on_descriptor(event, raw, OpKind::chmod);
        case Call::fcntl: return control_descriptor(event, raw);
        case Call::dup: return duplicate(event, raw);
        case Call::mmap: return map_file(event, raw);
        case Call::stat: return by_path(event, raw, OpKind::stat);
        case Call::lstat: raw.flags = AT_SYMLINK_NOFOLLOW; return by_path(event, raw, OpKind::stat);
        case Call::access: return by_path(event, raw, OpKind::access);
        case Call::mkdir: return by_path(event, raw, OpKind::mkdir);
        case Call::rmdir: return by_path(event, raw, OpKind::rmdir);
        case Call::unlink: return by_path(event, raw, OpKind::unlink);
        case Call::readlink: return by_path(event, raw, OpKind::readlink);
        case Call::chmod: return by_path(event, raw, OpKind::chmod);
        case Call::utime: return by_path(event, raw, OpKind::utimens);
        case Call::truncate: return by_path(event, raw, OpKind::truncate);
        case Call::rename: return by_two_paths(event, raw, OpKind::rename);
        case Call::link: return by_two_paths(event, raw, OpKind::link);
        case Call::symlink: return make_symlink(event, raw);
        case Call::opendir: return list_directory(event, raw);
        case Call::chdir:
            if (!(event.known & kResult) || event.result == 0) {
                assembler_.set_directory(raw.pid, text(event.path));
            }
            ++ignored_;
            return;
        case Call::fork: return fork(event, raw);
        case Call::munmap:
        case Call::msync: ++incomplete_; return;  // the address is not recorded
        case Call::ignored: ++ignored_; return;
        case Call::unknown: ++unknown_; return;
        case Call::span:
        case Call::meta: return;
        case Call::closedir:
        case Call::fopen:
        case Call::fclose:
        case Call::fread:
        case Call::fwrite:
        case Call::fgets:
        case Call::fputs:
        case Call::fseek:
        case Call::rewind: ++ignored_; return;
    }
}

int32_t Calls::take_number() {
    if (mine_->free.empty()) {
        return mine_->next++;
    }
    const int32_t number = mine_->free.back();
    mine_->free.pop_back();
    return number;
}

// The number that stands for the FILE of a path: the one opened last. `fd_path` is set where no fopen was seen.
int32_t Calls::file_number(StringId path, bool release, std::string_view& fd_path) {
    auto& numbers = mine_->files[path];
    if (numbers.empty()) {
        numbers.push_back(take_number());
        fd_path = text(path);
    }
    const int32_t number = numbers.back();
    if (release) {
        numbers.pop_back();
        mine_->free.push_back(number);
    }
    return number;
}

// The stdio layer calls the kernel from inside libc, where DFTracer does not see it: its calls are all there is.
void Calls::feed_stdio(const Event& event, Call call, RawCall& raw) {
    if (call == Call::ignored || call == Call::unknown || !event.path) {
        ++(call == Call::ignored ? ignored_ : call == Call::unknown ? unknown_ : incomplete_);
        return;
    }
    ++stdio_;
    if (call == Call::fopen) {
        const int32_t number = take_number();
        mine_->files[event.path].push_back(number);
        raw.kind = OpKind::open;
        raw.fd = -1;
        raw.path = text(event.path);
        raw.flags = event.mode;  // of the parser: the mode's flags
        raw.mode = raw.flags & O_CREAT ? 0666 : 0;
        raw.result = number;
        return send(raw, false);
    }
    raw.fd = file_number(event.path, call == Call::fclose, raw.fd_path);
    const bool known = event.known & kResult;
    const int64_t item = (event.known & kMode) && event.mode > 0 ? event.mode : 1;
    switch (call) {
        case Call::fclose: raw.kind = OpKind::close; return send(raw, known);
        case Call::fread:
        case Call::fwrite:
            raw.kind = call == Call::fread ? OpKind::read : OpKind::write;
            if (__builtin_mul_overflow(event.size, item, &raw.size) ||
                __builtin_mul_overflow(event.result, item, &raw.result)) {
                ++incomplete_;
                return;
            }
            if (!known) {
                raw.result = raw.size;
            }
            return send(raw, known);
        case Call::fgets: raw.kind = OpKind::read; return send(raw, known);
        case Call::fputs:
            raw.kind = OpKind::write;
            raw.result = event.size;
            return send(raw, true);
        case Call::fseek:
            raw.kind = OpKind::lseek;
            raw.offset = event.offset;
            raw.arg = event.flags;
            raw.result = event.offset;
            return send(raw, false);
        case Call::rewind:
            raw.kind = OpKind::lseek;
            raw.offset = 0;
            raw.arg = 0;
            raw.result = 0;
            return send(raw, true);
        default: ++ignored_; return;
    }
}

void Calls::count(LogWriter& writer) const {
    std::string unknown;
    for (const Name& name : lines_.names) {
        if (name.call == Call::unknown && unknown.size() < 300) {
            unknown += (unknown.empty() ? "" : ", ") + name.name;
        }
    }
    writer.count(Count::calls_unknown, unknown_, unknown);
    writer.count(Count::calls_incomplete, incomplete_);
    writer.count(Count::calls_ignored, ignored_);
    writer.count(Count::results_not_recorded, results_assumed_);
    writer.count(Count::errno_assumed, errno_assumed_);
    writer.count(Count::stdio_calls, stdio_);
    writer.count(Count::directories_closed_at_once, directories_);
    writer.count(Count::protections_assumed, protections_);
    writer.count(Count::relative_paths, relative_);
}

}  // namespace reprise::dftracer
