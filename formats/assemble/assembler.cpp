// SPDX-License-Identifier: MIT
#include "formats/assemble/assembler.h"

#include <sys/wait.h>

#include <algorithm>

#include "formats/assemble/assembler_impl.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/reap_arg.h"

namespace reprise {
namespace {

// Ops held back per task, and in all, so that one that is fed late still finds its place.
constexpr size_t kWindow = 8192;
constexpr size_t kMostPending = 512 * 1024;
// Of calls that look for results one right after the other: each takes less, and so does what is between them, ns.
constexpr int64_t kLook = 20'000;

}  // namespace

Process& Assembler::Impl::new_process(int32_t pid, Process* parent) {
    Process& made = processes.emplace_back();
    made.pid = pid;
    made.parent = parent;
    if (parent) {
        *made.fs = *parent->fs;
    } else {
        made.fs->directory = first_directory;
        made.fs->directory_known = first_directory != "/";
    }
    ProcessRow row;
    row.pid = pid;
    if (parent) {
        const ProcessRow& before = writer.tables().processes[parent->id];
        row.parent = parent->id;
        row.command = before.command;
        row.host = before.host;
    }
    made.id = writer.add_process(row);
    process_of[pid] = &made;
    return made;
}

Assembler::Impl::Task& Assembler::Impl::new_task(int32_t pid, int32_t tid, Process& process) {
    Task& made = tasks.emplace_back();
    made.process = &process;
    TaskRow row;
    row.process = process.id;
    row.tid = tid;
    made.id = writer.add_task(row);
    task_by_id.push_back(&made);
    task_of[task_key(pid, tid)] = &made;
    last_task = nullptr;
    return made;
}

Process& Assembler::Impl::process(int32_t pid) {
    const auto it = process_of.find(pid);
    return it != process_of.end() ? *it->second : new_process(pid, nullptr);
}

Process& Assembler::Impl::process(int32_t pid, int32_t tid) {
    const auto it = task_of.find(task_key(pid, tid));
    return it != task_of.end() ? *it->second->process : process(pid);
}

Process& Assembler::Impl::apart(const Process& from, int64_t flags) {
    Process& made = processes.emplace_back(from);
    if (flags & (kCloneFs | kCloneNewMounts)) {
        made.fs = std::make_shared<FsState>(*from.fs);
    }
    if (flags & kCloneFiles) {
        made.descriptors = std::make_shared<DescriptorStates>(*from.descriptors);
    }
    return made;
}

Process& Assembler::Impl::begun(Process& from, int32_t pid, int64_t flags) {
    if (flags & kCloneThread) {
        const int64_t own = ~flags & (kCloneFs | kCloneFiles);
        return own != 0 && flags & kCloneVm ? apart(from, own) : from;
    }
    Process& made = new_process(pid, &from);
    if (flags & kCloneFiles) {
        made.descriptors = from.descriptors;
    } else {
        *made.descriptors = *from.descriptors;
    }
    if (flags & kCloneFs) {
        made.fs = from.fs;
    }
    *made.memory = *from.memory;
    made.seen_at_birth = true;
    return made;
}

Assembler::Impl::Task& Assembler::Impl::task(int32_t pid, int32_t tid) {
    const uint64_t key = task_key(pid, tid);
    if (last_task && last_key == key) {
        return *last_task;
    }
    const auto it = task_of.find(key);
    Task& found = it != task_of.end() ? *it->second : new_task(pid, tid, process(pid));
    last_key = key;
    last_task = &found;
    return found;
}

// A job that looks for results all the time makes a million calls a second, and none of them says more than the next.
bool Assembler::Impl::looked_again(Task& task, const Op& op) {
    if (!only_looked(op) || task.pending.empty() || op.begin < task.pending.back().op.begin) {
        return false;
    }
    Pending& last = task.pending.back();
    const bool same = last.op.kind == op.kind && last.op.handle == op.handle && last.op.size == op.size &&
                      least_results(last.op.arg) == least_results(op.arg);
    const int64_t between = distance_ns(last.op.end(), op.begin), took = std::max<int64_t>(op.duration, 0);
    const bool first_is_short = looks_more(last.op.arg) != 0 || last.op.duration < kLook;
    if (!same || !only_looked(last.op) || !last.edges.empty() || !op.edges.empty() || between >= kLook ||
        took >= kLook || !first_is_short || looks_more(last.op.arg) >= INT32_MAX - 1) {
        return false;
    }
    last.op.arg = with_a_look_more(last.op.arg);
    last.op.duration = std::max(last.op.duration, distance_ns(last.op.begin, end_of(op.begin, took)));
    return true;
}

void Assembler::Impl::add(Task& task, const Op& op) {
    const FileId on = op.file == 0 && op.handle != 0 ? writer.tables().handles[op.handle].file : op.file;
    if (files.is_own(on)) {
        count(Count::own_files_left_out);
    }
    if (taken) {
        taken->push_back(op);
        return;
    }
    if (looked_again(task, op)) {
        return;
    }
    Pending entry{op, {op.list.begin(), op.list.end()}, {op.edges.begin(), op.edges.end()}};
    entry.op.duration = std::max<int64_t>(op.duration, 0);
    if (options.in_order) {
        effect.kind = entry.op.kind;
        const int64_t before = task.pending.empty() ? task.written_to : task.pending.back().op.begin;
        if (entry.op.begin < before) {
            entry.op.duration = std::max<int64_t>(entry.op.end() - before, 0);
            entry.op.begin = before;
        }
        task.pending.push_back(std::move(entry));
        ++pending_ops;
        if (task.pending.size() > kWindow && task.pending.front().op.end() < released) {
            write_oldest(task, task.pending.size());
        }
        return;
    }
    if (entry.op.begin < task.written_to) {
        count(Count::ops_moved);
        entry.op.duration = std::max<int64_t>(entry.op.end() - task.written_to, 0);
        entry.op.begin = task.written_to;
    }
    auto& pending = task.pending;
    if (pending.empty() || pending.back().op.begin <= entry.op.begin) {
        pending.push_back(std::move(entry));
    } else {
        const auto later = std::upper_bound(pending.begin(), pending.end(), entry.op.begin,
                                            [](int64_t begin, const Pending& p) { return begin < p.op.begin; });
        pending.insert(later, std::move(entry));
    }
    ++pending_ops;
    if (pending.size() > kWindow) {
        write_oldest(task, kWindow / 2);
    }
    if (pending_ops > kMostPending) {
        for (Task& each : tasks) {
            write_oldest(each, (each.pending.size() + 1) / 2);
        }
    }
}

void Assembler::Impl::write_oldest(Task& task, size_t n) {
    n = std::min(n, task.pending.size());
    const auto end = task.pending.begin() + static_cast<ptrdiff_t>(n);
    auto entry = task.pending.begin();
    for (; entry != end && (!options.in_order || entry->op.end() < released); ++entry) {
        entry->op.list = entry->list;
        entry->op.edges = entry->edges;
        task.written_to = entry->op.begin;
        writer.append(task.id, entry->op);
    }
    const auto done = static_cast<size_t>(entry - task.pending.begin());
    task.pending.erase(task.pending.begin(), entry);
    task.written += done;
    pending_ops -= done;
}

// The fields that the op takes from the call as they are.
Op Assembler::Impl::op_of(const RawCall& raw) {
    Op op;
    op.kind = raw.kind;
    op.begin = raw.begin;
    op.duration = raw.duration;
    op.result = raw.result;
    op.fd = raw.fd;
    op.size = raw.size;
    op.flags = raw.flags;
    op.mode = raw.mode;
    op.arg = raw.arg;
    op.list = raw.list;
    op.request = raw.request;
    if (raw.offset) {
        op.offset = *raw.offset;
    }
    if (!raw.text.empty()) {
        op.text = writer.intern(raw.text);
    }
    return op;
}

void Assembler::Impl::join(Task& task, const RawCall& raw, Op& op) {
    op.peer = raw.peer;
    if (!op.peer && raw.arg > 0) {
        const auto it = task_of.find(task_key(static_cast<int32_t>(raw.arg), static_cast<int32_t>(raw.arg)));
        op.peer = it != task_of.end() ? it->second->id : 0;
    }
    if (!op.peer) {
        op.kind = OpKind::wait;  // no child ended, or none that is recorded
        op.arg = kWaitChild + ((raw.flags & WNOHANG) != 0 && raw.result == 0 ? kWaitLooked : 0);
        op.flags = 0;
    }
    add(task, op);
}

void Assembler::Impl::call(const RawCall& raw) {
    Task& t = task(raw.pid, raw.tid);
    Op op = op_of(raw);
    switch (raw.kind) {
        case OpKind::open: return open(t, raw, op);
        case OpKind::close: return raw.fd2 >= 0 ? close_range(t, raw, op) : close(t, raw, op);
        case OpKind::dup: return dup(t, raw, op);
        case OpKind::fcntl: return fcntl(t, raw, op);
        case OpKind::read:
        case OpKind::readv:
        case OpKind::write:
        case OpKind::writev: return data(t, raw, op, false);
        case OpKind::pread:
        case OpKind::preadv:
        case OpKind::pwrite:
        case OpKind::pwritev: return data(t, raw, op, true);
        case OpKind::send:
        case OpKind::receive: return message(t, raw, op);
        case OpKind::lseek: return lseek(t, raw, op);
        case OpKind::stat:
        case OpKind::access:
        case OpKind::readlink:
        case OpKind::mkdir:
        case OpKind::rmdir:
        case OpKind::unlink:
        case OpKind::symlink:
        case OpKind::truncate: return by_path(t, raw, op);
        case OpKind::statx:
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::getxattr:
        case OpKind::setxattr:
        case OpKind::listxattr:
        case OpKind::removexattr:
        case OpKind::statfs: return by_path_or_descriptor(t, raw, op);
        case OpKind::rename:
        case OpKind::link: return by_two_paths(t, raw, op);
        case OpKind::getdents: return on_descriptor(t, raw, op, Evidence::directory);
        case OpKind::fstat:
        case OpKind::ioctl:
        case OpKind::flock: return on_descriptor(t, raw, op, Evidence::none);
        case OpKind::ftruncate:
        case OpKind::fallocate:
        case OpKind::fsync:
        case OpKind::fdatasync:
        case OpKind::sync_file_range:
        case OpKind::syncfs:
        case OpKind::fadvise:
        case OpKind::readahead: return on_descriptor(t, raw, op, Evidence::file);
        case OpKind::uring_submit:
        case OpKind::aio_submit: return request(t, raw, op);
        case OpKind::uring_complete:
        case OpKind::aio_complete: return completed(t, raw, op);
        case OpKind::uring_enter:
        case OpKind::aio_reap: return on_descriptor(t, raw, op, Evidence::none);
        case OpKind::mmap: return mmap(t, raw, op);
        case OpKind::munmap:
        case OpKind::madvise:
        case OpKind::msync:
        case OpKind::mprotect:
        case OpKind::touch: return on_memory(t, raw, op);
        case OpKind::mremap: return mremap(t, raw, op);
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice: return copy(t, raw, op);
        case OpKind::pipe: return pipe(t, raw, op);
        case OpKind::spawn: return spawn(t, raw, op);
        case OpKind::exec: return exec(t, raw, op);
        case OpKind::join: return join(t, raw, op);
        case OpKind::wait: op.arg = op.arg == kWaitEpoll ? epoll_arg(raw.size) : op.arg; return add(t, op);
        case OpKind::compute:
        case OpKind::idle:
        case OpKind::exit:
        case OpKind::gpu_submit:
        case OpKind::gpu_wait:
        case OpKind::marker: return add(t, op);
    }
}

void Assembler::Impl::finish() {
    released = INT64_MAX;
    for (Task& each : tasks) {
        write_oldest(each, each.pending.size());
    }
    if (offsets_followed) {
        count(Count::offsets_reconstructed, offsets_followed);
    }
    if (offsets_from_unknown_position) {
        count(Count::offsets_assumed, offsets_from_unknown_position);
    }
    files.finish(options.roles, options.find_at_end);
}

Assembler::Assembler(LogWriter& writer, Options options) : impl_(std::make_unique<Impl>(writer, std::move(options))) {}
Assembler::Assembler(LogWriter& writer) : Assembler(writer, Options{}) {}
Assembler::~Assembler() = default;

TaskId Assembler::task(int32_t pid, int32_t tid) { return impl_->task(pid, tid).id; }

void Assembler::set_command(int32_t pid, std::string_view command) {
    const ProcessId id = impl_->process(pid).id;
    ProcessRow row = impl_->writer.tables().processes[id];
    row.command = impl_->writer.intern(command);
    impl_->writer.update_process(id, row);
}

void Assembler::set_host(int32_t pid, std::string_view host) {
    const ProcessId id = impl_->process(pid).id;
    ProcessRow row = impl_->writer.tables().processes[id];
    row.host = impl_->writer.intern(host);
    impl_->writer.update_process(id, row);
}

std::string Assembler::Impl::directory_at(const Process& process, std::string_view path) {
    const std::string whole = behind_magic_link(process, resolved(process, process.fs->directory, path), true);
    return files.behind_links(whole, LastPart::directory, links_to(process, whole, 0));
}

void Assembler::bound(int32_t pid, std::string_view source, std::string_view target, int32_t tid) {
    const Process& process = impl_->process(pid, tid);
    const std::string from = impl_->directory_at(process, source), to = impl_->directory_at(process, target);
    if (!is_or_lies_below(from, to)) {
        impl_->files.bound(to, from);
    }
}

void Assembler::unbound(int32_t pid, std::string_view target, int32_t tid) {
    const Process& process = impl_->process(pid, tid);
    impl_->files.unbound(impl_->resolved(process, process.fs->directory, target));
}

void Assembler::set_directory(int32_t pid, std::string_view directory, int32_t tid) {
    Process& process = impl_->process(pid, tid);
    process.fs->directory = impl_->directory_at(process, directory);
    if (directory.starts_with('/')) {
        process.fs->directory_known = true;
    }
}

void Assembler::set_umask(int32_t pid, int64_t mask, int32_t tid) { impl_->process(pid, tid).fs->umask = mask & 0777; }

void Assembler::Impl::unshare(Task& task, int32_t pid, int32_t tid, int64_t flags) {
    if ((flags & (kCloneFs | kCloneFiles | kCloneNewMounts)) == 0) {
        return;
    }
    task.process = &apart(*task.process, flags);
    if (tid == pid) {
        process_of[pid] = task.process;  // what is said of a process is said of its first thread
    }
}

void Assembler::unshare(int32_t pid, int32_t tid, int64_t flags) {
    impl_->unshare(impl_->task(pid, tid), pid, tid, flags);
}

void Assembler::adopt(int32_t pid, int32_t fd, HandleKind kind, int64_t flags, std::string_view description,
                      int32_t tid) {
    if (fd < 0) {
        return;
    }
    Process& process = impl_->process(pid, tid);
    process.descriptors->erase(fd);
    if (!description.empty() && !parse_description(description).path.empty()) {
        impl_->adopt_unknown(process, fd, description, Impl::Evidence::none, true);
        return;
    }
    auto instance = impl_->new_instance(kind, nullptr, flags, &process, fd);
    if (!description.empty()) {
        instance->channel = impl_->channel_of(description);
    }
    instance->described = description;
    constexpr int64_t kCloseOnExec = 02000000;
    impl_->put(process, fd, std::move(instance), flags & kCloseOnExec);
}

CallEffect Assembler::call(const RawCall& call) {
    Impl::Task& task = impl_->task(call.pid, call.tid);
    const uint64_t before = task.written + task.pending.size();
    impl_->effect = {};
    impl_->effect.task = task.id;
    impl_->effect.first = before;
    impl_->call(call);
    impl_->effect.ops = task.written + task.pending.size() - before;
    return impl_->effect;
}

std::vector<Op> Assembler::effects_of(const RawCall& call) {
    std::vector<Op> ops;
    impl_->taken = &ops;
    impl_->call(call);
    impl_->taken = nullptr;
    return ops;
}

TaskId Assembler::begin_task(int32_t parent, int32_t ptid, int32_t pid, int32_t tid, int64_t flags) {
    return impl_->begin_task(parent, ptid, pid, tid, flags);
}

uint64_t Assembler::op_count(TaskId task) const {
    const Impl::Task& of = *impl_->task_by_id.at(task);
    return of.written + of.pending.size();
}

bool Assembler::add_edge(TaskId task, uint64_t op, const Edge& edge) {
    Impl::Task& of = *impl_->task_by_id.at(task);
    if (op < of.written) {
        return false;
    }
    of.pending.at(op - of.written).edges.push_back(edge);
    return true;
}

void Assembler::release(int64_t before) {
    impl_->released = std::max(impl_->released, before);
    if (impl_->pending_ops > kMostPending) {
        for (Impl::Task& each : impl_->tasks) {
            impl_->write_oldest(each, each.pending.size());
        }
    }
}

void Assembler::note_file(std::string_view path, std::optional<uint64_t> size, std::optional<uint32_t> stat_mode) {
    FileState& file = impl_->files.present(clean_path("/", path));
    impl_->files.saw_attributes(file, size, stat_mode, false);
}

void Assembler::op(int32_t pid, int32_t tid, const Op& op) { impl_->add(impl_->task(pid, tid), op); }

void Assembler::finish() { impl_->finish(); }

}  // namespace reprise
