// SPDX-License-Identifier: MIT
// Descriptors: what a number of a process means, and the calls that make, share and end them.
#include <algorithm>

#include "formats/assemble/assembler_impl.h"
#include "formats/oplog/open_flags.h"

namespace reprise {
namespace {

// Values of the x86-64 kernel's interface; logs are read on any system.
constexpr int64_t kBadDescriptor = -9, kLoop = -40;  // EBADF, ELOOP
constexpr int64_t kCreate = 0100, kExclusive = 0200, kTruncate = 01000, kDirectory = 0200000, kCloseOnExec = 02000000;
constexpr int64_t kTemporary = 020000000;  // __O_TMPFILE
constexpr int64_t kNoFollow = 0400000;     // O_NOFOLLOW
constexpr int64_t kFcntlDupFd = 0, kSetFd = 2, kSetFl = 4, kFcntlDupFdCloseOnExec = 1030;
constexpr int64_t kStatusFlags = 02000 | 04000 | 020000 | kOpenDirect | 01000000;  // what F_SETFL may change
constexpr int64_t kRangeUnshare = 2, kRangeCloseOnExec = 4;

/// What a file that was made may: what it has, or what its process's umask leaves. Where neither is known, what was
/// asked for, which the replay's umask makes the usual.
int64_t mode_made(const Process& process, const RawCall& raw) {
    constexpr int64_t kUsual = 022, kBits = 0777;
    const bool told = raw.created.value_or(false) && raw.stat_mode;  // a directory's default list may say otherwise
    const std::optional<int64_t>& umask = process.fs->umask;
    if (umask && !told) {
        return raw.mode & ~*umask;
    }
    const bool as_told = told && (umask || (*raw.stat_mode & kBits) != (raw.mode & kBits & ~kUsual));
    return as_told ? (raw.mode & ~kBits) | (*raw.stat_mode & kBits) : raw.mode;
}

}  // namespace

std::shared_ptr<Channel> Assembler::Impl::channel_of(std::string_view described) {
    if (described.empty()) {
        return std::make_shared<Channel>();
    }
    auto& channel = channels[std::string(described)];
    if (!channel) {
        channel = std::make_shared<Channel>();
    }
    return channel;
}

std::shared_ptr<Instance> Assembler::Impl::new_instance(HandleKind kind, FileState* file, int64_t flags,
                                                        const Process* inherited_by, int32_t fd) {
    auto made = std::make_shared<Instance>();
    made->kind = kind;
    made->file = file;
    made->flags = flags;
    HandleRow row;
    row.file = file ? files.id(*file) : 0;
    row.flags = flags;
    row.kind = kind;
    if (inherited_by) {
        row.inherited = true;
        row.process = inherited_by->id;
        row.fd = fd;
    }
    made->id = writer.add_handle(row);
    return made;
}

void Assembler::Impl::update_row(const Instance& instance) {
    HandleRow row = writer.tables().handles[instance.id];
    row.kind = instance.kind;
    row.file = instance.file ? files.id(*instance.file) : 0;
    writer.update_handle(instance.id, row);
}

void Assembler::Impl::put(Process& process, int64_t fd, std::shared_ptr<Instance> instance, bool close_on_exec) {
    if (fd < 0 || fd > INT32_MAX) {
        return;
    }
    (*process.descriptors)[static_cast<int32_t>(fd)] = {std::move(instance), close_on_exec};
}

// Whether the source's name for a descriptor fits what we hold it for; false: a close and an open went unseen.
bool Assembler::Impl::still_is(const Instance& instance, std::string_view described) {
    const Description now = parse_description(described);
    bool same = false;
    if (instance.file && !now.path.empty()) {
        const FileState* last = &files.at(now.path);
        if (now.deleted && last != instance.file) {
            last = &files.deleted(now.path);
        }
        for (const FileState* file = last; file && !same; file = file->moved_from) {
            same = file == instance.file;
        }
        const Description before = parse_description(instance.described);
        same = same || before.path == now.path || files.path_of(*instance.file) == now.path;
    } else if (!instance.file && now.path.empty()) {
        same = instance.kind == now.kind || instance.kind == HandleKind::other || now.kind == HandleKind::other;
        if (same && instance.kind == HandleKind::pipe && !instance.described.empty()) {
            same = false;
        }
    }
    return same;
}

void Assembler::Impl::learn_kind(Instance& instance, HandleKind kind, Process& process, int32_t fd) {
    if (instance.kind != HandleKind::other || !instance.described.empty() || instance.kind_certain) {
        return;
    }
    instance.kind = kind;
    if (instance.is_file()) {
        const std::string label = "/unnamed/pid-" + std::to_string(process.pid) + "-fd-" + std::to_string(fd) + "-" +
                                  std::to_string(++unnamed_files);
        instance.file = &files.unnamed(label);
        count(Count::files_without_name);
    }
    update_row(instance);
}

std::shared_ptr<Instance> Assembler::Impl::adopt_unknown(Process& process, int32_t fd, std::string_view described,
                                                         Evidence evidence, bool received) {
    Description what;
    if (!described.empty()) {
        what = parse_description(described);
    }
    FileState* file = nullptr;
    if (!what.path.empty()) {
        const std::string path = clean_path("/", what.path);
        file = what.deleted ? &files.deleted(path) : &files.present(path);
        if (what.type != FileType::unknown) {
            file->type = what.type;
        }
    }
    // What the recording made itself was not open from the start: it came over a socket, or by a call not recorded.
    received = received || (file && file->created);
    Process* owner = &process;
    // A socket most likely comes from a call that was not recorded either.
    if (!received && what.kind != HandleKind::socket) {
        while (owner->seen_at_birth && owner->parent && !owner->parent->descriptors->contains(fd)) {
            owner = owner->parent;
        }
    }

    HandleKind kind = described.empty() ? HandleKind::other : what.kind;
    if (file && (file->type == FileType::directory || evidence == Evidence::directory)) {
        kind = HandleKind::directory;
    }
    auto made = new_instance(kind, file, 0, owner, fd);
    made->described = described;
    made->position_known = false;
    if (!made->is_file()) {
        made->channel = channel_of(described);
    }
    if (evidence == Evidence::file) {
        learn_kind(*made, HandleKind::file, *owner, fd);
    }
    if (evidence == Evidence::directory) {
        learn_kind(*made, HandleKind::directory, *owner, fd);
    }
    for (Process* each = &process;; each = each->parent) {
        put(*each, fd, made, false);
        if (each == owner) {
            break;
        }
    }
    if (received) {
        count(Count::descriptors_received);
    } else {
        count(Count::descriptors_adopted);
    }
    return made;
}

std::shared_ptr<Instance> Assembler::Impl::find(Process& process, int32_t fd, std::string_view described,
                                                Evidence evidence) {
    if (fd < 0) {
        return nullptr;
    }
    const auto it = process.descriptors->find(fd);
    if (it != process.descriptors->end()) {
        Instance& known = *it->second.instance;
        if (evidence == Evidence::file) {
            learn_kind(known, HandleKind::file, process, fd);
        }
        if (evidence == Evidence::directory) {
            learn_kind(known, HandleKind::directory, process, fd);
        }
        if (described.empty() || described == known.described) {
            return it->second.instance;
        }
        if (known.described.empty() || still_is(known, described)) {
            known.described = described;
            return it->second.instance;
        }
        count(Count::descriptors_corrected);
        process.descriptors->erase(it);
    }
    if (!options.adopt_unknown_fds) {
        return nullptr;
    }
    return adopt_unknown(process, fd, described, evidence);
}

// As find, for a call with this result; counts a call that must be dropped.
std::shared_ptr<Instance> Assembler::Impl::for_call(Process& process, const RawCall& raw, int32_t fd,
                                                    std::string_view described, Evidence evidence,
                                                    const SeenInstance* seen) {
    if (seen && seen->key) {
        return find_seen(process, fd, *seen, seen->when.value_or(raw.begin));
    }
    if (raw.result == kBadDescriptor && !process.descriptors->contains(fd)) {
        count(Count::calls_on_bad_descriptors);
        return nullptr;
    }
    auto found = find(process, fd, described, raw.result < 0 ? Evidence::none : evidence);
    if (!found) {
        count(Count::calls_on_unknown_descriptors);
    }
    return found;
}

FileState* Assembler::Impl::renamed_meanwhile(const std::string& path, const RawCall& raw) {
    if (!raw.made || !options.renames_now || raw.made->type != FileType::regular) {
        return nullptr;
    }
    FileState* const other = files.by_inode(raw.made->device, raw.made->inode, raw.made->generation);
    if (!other || other->gone || !other->created) {
        return nullptr;
    }
    const std::string from = files.path_of(*other);
    if (from == path || !options.renames_now(from, path)) {
        return nullptr;
    }
    const FileTable::Names names = files.renamed(from, path, false);
    done_renames[{from, path}] = {&names.from, &names.to};
    return &names.to;
}

void Assembler::Impl::open(Task& task, const RawCall& raw, Op& op) {
    Process& process = *task.process;
    if (names_nothing(raw.path, raw)) {
        op.fd = -1;
        return add(task, op);
    }
    const bool creates = raw.flags & kCreate;
    const std::string path = opened_name(behind_told_link(absolute(process, raw, last_part(raw)), raw), raw);
    op.fd = -1;
    if (raw.result < 0) {
        FileState& refused = named(path, raw);
        if (raw.result == kLoop && raw.flags & kNoFollow) {
            files.saw_link(files.present(path), {});
            ask_for_target(process, path, refused);
        }
        op.file = files.id(refused);
        return add(task, op);
    }
    FileState* file = opened_without_name(process, raw);
    if (file != nullptr) {
        // known by its descriptor alone
    } else if ((raw.flags & kTemporary) == kTemporary) {
        FileState& directory = files.present(path);  // the file itself has no name
        directory.type = FileType::directory;
        op.file = files.id(directory);
        file = &directory;
    } else if (creates) {
        std::optional<bool> created = raw.created;
        if (!created && raw.flags & kExclusive) {
            created = true;
        }
        FileState* const found =
            created == true && raw.made
                ? files.found_before_made(path, raw.made->device, raw.made->inode, raw.made->generation)
                : nullptr;
        file = found != nullptr ? found : &files.opened_to_create(path, created);
    } else {
        FileState* const meanwhile = renamed_meanwhile(path, raw);
        file = meanwhile ? meanwhile : &files.present(path);
        if (raw.made && files.is_another(*file, raw.made->device, raw.made->inode, raw.made->generation)) {
            file = &files.replaced(path);
        }
    }
    const bool has_name = (raw.flags & kTemporary) != kTemporary;
    if (has_name) {
        note_attributes(*file, raw, false);
        if (raw.flags & kDirectory) {
            file->type = FileType::directory;
        }
        if (creates && file->created && file->type == FileType::unknown) {
            file->type = FileType::regular;
        }
        if (creates && file->created && raw.mode) {
            op.mode = mode_made(process, raw);
            file->mode = static_cast<uint32_t>(op.mode) & 07777;
        }
        if (raw.flags & kTruncate) {
            files.did_truncate(*file, 0);
        }
    }
    op.file = files.id(*file);
    HandleKind kind = file->type == FileType::directory && has_name ? HandleKind::directory : HandleKind::file;
    if (raw.made && raw.made->kind != HandleKind::other) {
        kind = raw.made->kind;
    }
    auto made = new_instance(kind, file, raw.flags, nullptr, -1);
    if (raw.made) {
        if (has_name) {
            files.saw_inode(*file, raw.made->device, raw.made->inode, raw.made->generation);
        }
        connect(*made, *raw.made);
        // Requests that name a fixed file are submitted before it is there.
        remember(*raw.made, made, raw.fd2 < 0 ? raw.begin + raw.duration : raw.begin);
    }
    file->followed = true;
    if (!raw.fd_path.empty()) {
        const Description what = parse_description(raw.fd_path);
        if (what.type != FileType::unknown && has_name) {
            file->type = what.type;
        }
        const bool real_name = !path.starts_with("/proc/") && !path.starts_with("/dev/");
        if (has_name && real_name && !what.path.empty() && !what.deleted && what.path != path) {
            files.alias(what.path, *file);
        }
        made->described = raw.fd_path;
    }
    op.handle = made->id;
    if (raw.fd2 < 0) {
        put(process, raw.result, std::move(made), raw.flags & kCloseOnExec);
    }
    add(task, op);
}

void Assembler::Impl::close(Task& task, const RawCall& raw, Op& op) {
    Process& process = *task.process;
    const auto it = process.descriptors->find(raw.fd);
    if (raw.seen && raw.seen->key) {
        // Its number may mean another instance by now: it is free from the start of a close.
        const auto instance = find_seen(process, -1, *raw.seen, raw.begin);
        if (it != process.descriptors->end() && it->second.instance == instance) {
            process.descriptors->erase(it);
        }
        op.handle = instance->id;
        return add(task, op);
    }
    if (it == process.descriptors->end() || raw.seen) {
        if (raw.result >= 0) {
            count(Count::closes_of_unknown_descriptors);
        } else {
            count(Count::calls_on_bad_descriptors);
        }
        return;
    }
    op.handle = it->second.instance->id;
    process.descriptors->erase(it);  // also when close reports an error: the kernel has let go of it
    add(task, op);
}

void Assembler::Impl::close_range(Task& task, const RawCall& raw, Op& op) {
    if (raw.result < 0) {
        return;
    }
    if (raw.flags & kRangeUnshare) {
        unshare(task, raw.pid, raw.tid, kCloneFiles);
    }
    DescriptorStates& table = *task.process->descriptors;
    for (auto it = table.lower_bound(raw.fd); it != table.end() && it->first <= raw.fd2;) {
        if (raw.flags & kRangeCloseOnExec) {
            it++->second.close_on_exec = true;
            continue;
        }
        op.fd = it->first;
        op.handle = it->second.instance->id;
        add(task, op);
        op.begin += op.duration;  // the first one carries the time
        op.duration = 0;
        it = table.erase(it);
    }
}

void Assembler::Impl::dup(Task& task, const RawCall& raw, Op& op) {
    Process& process = *task.process;
    auto instance = for_call(process, raw, raw.fd, raw.fd_path, Evidence::none, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    op.fd2 = raw.fd2;
    const bool same_number = raw.result == raw.fd;
    if (raw.result >= 0 && !same_number) {
        put(process, raw.result, std::move(instance), raw.flags & kCloseOnExec);
    }
    add(task, op);
}

void Assembler::Impl::fcntl(Task& task, const RawCall& raw, Op& op) {
    if (raw.arg == kFcntlDupFd || raw.arg == kFcntlDupFdCloseOnExec) {
        RawCall as_dup = raw;
        as_dup.kind = op.kind = OpKind::dup;
        as_dup.fd2 = static_cast<int32_t>(std::clamp<int64_t>(raw.flags, 0, INT32_MAX));
        as_dup.flags = op.flags = raw.arg == kFcntlDupFdCloseOnExec ? kCloseOnExec : 0;
        op.arg = kDupFd;
        return dup(task, as_dup, op);
    }
    Process& process = *task.process;
    const auto instance = for_call(process, raw, raw.fd, raw.fd_path, Evidence::none, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    if (raw.result >= 0 && raw.arg == kSetFd) {
        (*process.descriptors)[raw.fd].close_on_exec = raw.flags & 1;
    }
    if (raw.result >= 0 && raw.arg == kSetFl) {
        instance->flags = (instance->flags & ~kStatusFlags) | (raw.flags & kStatusFlags);
    }
    add(task, op);
}

void Assembler::Impl::pipe(Task& task, const RawCall& raw, Op& op) {
    op.fd2 = raw.fd2;
    if (raw.result < 0) {
        return add(task, op);
    }
    Process& process = *task.process;
    const bool close_on_exec = raw.arg == kMemFd ? raw.flags & 1 : raw.flags & kCloseOnExec;  // MFD_CLOEXEC is 1
    const HandleKind kind = raw.arg == kPipe         ? HandleKind::pipe
                            : raw.arg == kSocketPair ? HandleKind::socket
                            : raw.arg == kEventFd    ? HandleKind::eventfd
                                                     : HandleKind::memfd;
    auto first = new_instance(kind, nullptr, raw.flags, nullptr, -1);
    first->described = raw.fd_path;
    if (!raw.fd_path.empty() && kind != HandleKind::memfd && kind != HandleKind::eventfd) {
        first->channel = channels[std::string(raw.fd_path)] = std::make_shared<Channel>();
    }
    op.handle = first->id;
    if (raw.made) {
        connect(*first, *raw.made);
        remember(*raw.made, first, raw.begin + raw.duration);
    }
    if (raw.fd2 >= 0) {
        auto second = new_instance(kind, nullptr, raw.flags, nullptr, -1);
        second->described = raw.fd2_path;
        if (kind == HandleKind::pipe) {
            second->channel = first->channel;
        } else if (!raw.fd2_path.empty()) {
            second->channel = channels[std::string(raw.fd2_path)] = std::make_shared<Channel>();
        }
        op.handle2 = second->id;
        if (raw.made2) {
            connect(*second, *raw.made2);
            remember(*raw.made2, second, raw.begin + raw.duration);
        }
        put(process, raw.fd2, std::move(second), close_on_exec);
    }
    put(process, raw.fd, std::move(first), close_on_exec);
    add(task, op);
}

// Whether all ops of the task are later: then it is the one spawned now, whose first calls were fed before its spawn,
// and not an earlier bearer of its number.
bool Assembler::Impl::began_after(const Task& task, int64_t time) {
    return task.written_to == INT64_MIN && (task.pending.empty() || task.pending.front().op.begin >= time);
}

void Assembler::Impl::spawn(Task& task_in, const RawCall& raw, Op& op) {
    if (raw.peer) {
        op.peer = raw.peer;
        return add(task_in, op);
    }
    if (raw.result < 0 || raw.arg <= 0 || raw.arg > INT32_MAX) {
        return add(task_in, op);
    }
    Process& parent = *task_in.process;
    const auto child = static_cast<int32_t>(raw.arg);
    if (raw.flags & kCloneThread) {
        const auto it = task_of.find(task_key(raw.pid, child));
        const bool early = it != task_of.end() && began_after(*it->second, raw.begin);
        op.peer = early ? it->second->id : new_task(raw.pid, child, begun(parent, raw.pid, raw.flags)).id;
    } else {
        const auto it = process_of.find(child);
        Process* process = it != process_of.end() ? it->second : nullptr;
        const auto first = task_of.find(task_key(child, child));
        // Nobody is its own ancestor, whatever a damaged recording says.
        const auto above = [&](const Process* of) {
            while (of && of != process) {
                of = of->parent;
            }
            return of != nullptr;
        };
        const bool early = process && !process->seen_at_birth && first != task_of.end() &&
                           began_after(*first->second, raw.begin) && !above(&parent);
        if (early) {
            process->parent = &parent;
            process->descriptors->insert(parent.descriptors->begin(), parent.descriptors->end());
            ProcessRow row = writer.tables().processes[process->id];
            row.parent = parent.id;
            writer.update_process(process->id, row);
            op.peer = first->second->id;
        } else {
            process = &begun(parent, child, raw.flags);
            op.peer = new_task(child, child, *process).id;
        }
        process->seen_at_birth = true;
    }
    add(task_in, op);
}

void Assembler::Impl::exec(Task& task, const RawCall& raw, Op& op) {
    Process& process = *task.process;
    op.fd = -1;
    if (!raw.path.empty()) {
        const std::string path = absolute(process, raw, LastPart::followed);
        FileState& file = named(path, raw);
        if (raw.result >= 0 && file.type == FileType::unknown) {
            file.type = FileType::regular;
        }
        op.file = files.id(file);
    } else if (raw.fd >= 0) {
        const auto instance = raw.seen && raw.seen->key ? find_seen(process, raw.fd, *raw.seen, raw.begin)
                                                        : find(process, raw.fd, raw.fd_path, Evidence::file);
        if (instance && instance->file) {
            op.file = files.id(*instance->file);
        }
    }
    if (raw.result >= 0) {
        // A table shared with another process is its own from here.
        if (process.descriptors.use_count() > 1) {
            process.descriptors = std::make_shared<DescriptorStates>(*process.descriptors);
        }
        std::erase_if(*process.descriptors, [](const auto& entry) { return entry.second.close_on_exec; });
        process.memory = std::make_shared<AddressMap>();
        process_of[process.pid] = &process;  // a thread that was apart is all that is left of it
    }
    add(task, op);
}

}  // namespace reprise
