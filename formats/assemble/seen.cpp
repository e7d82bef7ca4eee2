// SPDX-License-Identifier: MIT
// Instances that the source itself tells apart, by an address of the kernel's: no descriptor table is needed to know
// what a call acts on, and calls may come in the order of their ends.
#include "formats/assemble/assembler_impl.h"
#include "formats/support/bytes.h"

namespace reprise {
namespace {

constexpr int64_t kCloseOnExec = 02000000;
// Earlier bearers of a key that are kept: calls that began before the key went to another instance come soon.
constexpr size_t kMostBearers = 4;

}  // namespace

void Assembler::Impl::remember(const SeenInstance& seen, const std::shared_ptr<Instance>& instance, int64_t since) {
    if (!seen.key) {
        return;
    }
    auto& list = bearers[seen.key];
    if (list.size() == kMostBearers) {
        list.erase(list.begin());
    }
    list.push_back({instance, since});
}

std::shared_ptr<Channel> Assembler::Impl::channel_of_inode(uint64_t inode) {
    auto& known = channels_of_inodes[inode];
    auto channel = known.lock();
    if (!channel) {
        known = channel = std::make_shared<Channel>();
    }
    if (channels_of_inodes.size() > channels_checked) {
        std::erase_if(channels_of_inodes, [](const auto& entry) { return entry.second.expired(); });
        channels_checked = std::max<size_t>(1024, channels_of_inodes.size() * 2);
    }
    return channel;
}

// Bytes are counted where they are read: in the pipe, or at the socket that receives them.
void Assembler::Impl::connect(Instance& instance, const SeenInstance& seen) {
    instance.device = seen.device;
    instance.inode = seen.inode;
    instance.generation = seen.generation;
    if (instance.kind == HandleKind::pipe && seen.inode) {
        instance.channel = channel_of_inode(seen.inode);
    }
    if (instance.kind == HandleKind::socket) {
        if (seen.peer & SeenInstance::kConnection) {
            instance.channel = channel_of_inode(seen.peer ^ 1U);
        } else if (seen.inode) {
            instance.channel = channel_of_inode(seen.inode);
        }
        // Whoever is at the other end is often known later than the socket.
        instance.to_peer = seen.peer ? channel_of_inode(seen.peer) : std::make_shared<Channel>();
        instance.peer = seen.peer;
        SocketSeen& socket = sockets[instance.id];
        socket.inode = seen.inode;
        socket.peer = seen.peer;
    }
}

std::shared_ptr<Instance> Assembler::Impl::make_seen(Process* owner, int32_t fd, const SeenInstance& seen,
                                                     std::string_view path, Came how) {
    FileState* file = nullptr;
    const bool of_a_file = seen.kind == HandleKind::file || seen.kind == HandleKind::directory ||
                           (seen.kind == HandleKind::pipe && path.starts_with('/'));
    if (of_a_file) {
        if (path.starts_with('/')) {
            constexpr std::string_view kDeleted = " (deleted)";
            const bool deleted = path.ends_with(kDeleted);
            if (deleted) {
                path.remove_suffix(kDeleted.size());
            }
            const std::string clean = clean_path("/", path);
            file = deleted ? &files.deleted(clean) : &files.present(clean);
            if (!deleted && files.is_another(*file, seen.device, seen.inode, seen.generation)) {
                file = &files.replaced(clean);
            }
        } else {
            file = files.by_inode(seen.device, seen.inode, seen.generation);
        }
        if (!file) {
            const std::string label =
                "/unnamed/inode-" + std::to_string(seen.inode) + "-" + std::to_string(++unnamed_files);
            file = &files.unnamed(label);
            count(Count::files_without_name);
        }
        if (seen.type != FileType::unknown) {
            file->type = seen.type;
        }
        files.saw_inode(*file, seen.device, seen.inode, seen.generation);
        if (seen.size && seen.type == FileType::regular) {
            files.saw_attributes(*file, seen.size, std::nullopt, false);
        }
    }
    auto made = new_instance(seen.kind, file, seen.flags, owner, fd);
    made->kind_certain = true;
    connect(*made, seen);
    remember(seen, made, INT64_MIN);
    if (how == Came::made) {
        return made;
    }
    if (how == Came::inherited) {
        if (fd >= 0) {  // else a mapping
            count(Count::descriptors_inherited);
        }
    } else {
        count(Count::descriptors_received);
    }
    return made;
}

std::shared_ptr<Instance> Assembler::Impl::find_seen(Process& process, int32_t fd, const SeenInstance& seen,
                                                     int64_t begin) {
    std::shared_ptr<Instance> found;
    if (const auto it = bearers.find(seen.key); it != bearers.end()) {
        const auto& list = it->second;
        size_t i = list.size() - 1;
        while (i > 0 && list[i].since > begin) {
            --i;
        }
        found = list[i].instance;
        // The key of another file: it came anew by a call that was not recorded.
        const bool another = found->inode && seen.inode &&
                             (found->inode != seen.inode || found->device != seen.device ||
                              (found->generation && seen.generation && found->generation != seen.generation));
        if (another) {
            found = {};
        }
    }
    if (!found) {
        found = make_seen(&process, fd, seen, {}, Came::received);
    }
    if (found->kind == HandleKind::socket && seen.peer != found->peer && seen.peer) {
        connect(*found, seen);
    }
    if (fd >= 0) {
        const auto it = process.descriptors->find(fd);
        if (it == process.descriptors->end() || it->second.instance != found) {
            put(process, fd, found, false);
        }
    }
    return found;
}

const std::map<HandleId, Assembler::SocketSeen>& Assembler::sockets() const { return impl_->sockets; }

TaskId Assembler::Impl::begin_task(int32_t parent, int32_t ptid, int32_t pid, int32_t tid, int64_t flags) {
    return new_task(pid, tid, begun(*task(parent, ptid).process, pid, flags)).id;
}

void Assembler::adopt(int32_t pid, int32_t fd, const SeenInstance& seen, std::string_view path, Came how, int32_t tid) {
    if (!seen.key) {
        return;
    }
    Process& process = impl_->process(pid, tid);
    const auto known = impl_->bearers.find(seen.key);
    const bool is_known = known != impl_->bearers.end();
    auto instance =
        is_known ? impl_->find_seen(process, -1, seen, INT64_MAX) : impl_->make_seen(&process, fd, seen, path, how);
    if (how == Came::made && instance->kind == HandleKind::socket) {
        impl_->sockets[instance->id].made = true;
    }
    impl_->put(process, fd, std::move(instance), seen.flags & kCloseOnExec);
}

void Assembler::rename_task(int32_t pid, int32_t old_tid, int32_t tid) {
    Impl::Task& task = impl_->task(pid, old_tid);
    impl_->task_of.erase(task_key(pid, old_tid));
    impl_->task_of[task_key(pid, tid)] = &task;
    impl_->last_task = nullptr;
}

void Assembler::name_task(TaskId task, std::string_view name) {
    TaskRow row = impl_->writer.tables().tasks.at(task);
    row.name = impl_->writer.intern(name);
    impl_->writer.update_task(task, row);
}

std::string Assembler::directory_of(int32_t pid) { return impl_->process(pid).fs->directory; }

std::string Assembler::resolved(int32_t pid, std::string_view path, int32_t tid) {
    const Process& process = impl_->process(pid, tid);
    return impl_->resolved(process, process.fs->directory, path);
}

std::string Assembler::path_of(int32_t pid, int32_t fd, const SeenInstance* seen, int32_t tid) {
    Process& process = impl_->process(pid, tid);
    std::shared_ptr<Instance> instance;
    if (seen && seen->key) {
        instance = impl_->find_seen(process, fd, *seen, INT64_MAX);
    } else if (const auto it = process.descriptors->find(fd); it != process.descriptors->end()) {
        instance = it->second.instance;
    }
    return instance && instance->file ? impl_->files.present_path_of(*instance->file) : std::string();
}

int64_t Assembler::size_of(int32_t pid, int32_t fd, int32_t tid) {
    if (!impl_->process_of.contains(pid)) {
        return 0;
    }
    const DescriptorStates& descriptors = *impl_->process(pid, tid).descriptors;
    const auto found = descriptors.find(fd);
    const FileState* file = found == descriptors.end() ? nullptr : found->second.instance->file;
    const std::optional<int64_t> end = file == nullptr ? std::nullopt : impl_->files.end_of(*file);
    if (!end) {
        impl_->count(Count::results_assumed);
    }
    const uint64_t furthest = file == nullptr ? 0 : file->size;
    return end.value_or(static_cast<int64_t>(std::min<uint64_t>(furthest, INT64_MAX)));
}

Assembler::Mapped Assembler::mapping_of(int32_t pid, uint64_t device, uint64_t inode, int64_t offset) const {
    const auto found = impl_->process_of.find(pid);
    if (found == impl_->process_of.end() || inode == 0) {
        return {};
    }
    for (const AddressMap::Piece& piece : found->second->memory->find(0, UINT64_MAX)) {
        if (piece.map >= impl_->origins.size()) {
            continue;
        }
        const Impl::MapOrigin& origin = impl_->origins[piece.map];
        const int64_t at = wrapping_sub(offset, origin.offset);
        if (origin.device == device && origin.inode == inode && at >= piece.offset && at - piece.offset < piece.size) {
            return {piece.map, at};
        }
    }
    return {};
}

bool Assembler::writes_file(uint32_t map) const {
    return map < impl_->origins.size() && impl_->origins[map].writes_file;
}

Assembler::Mapped Assembler::mapped_at(int32_t pid, uint64_t address) const {
    const auto it = impl_->process_of.find(pid);
    if (it == impl_->process_of.end()) {
        return {};
    }
    const auto pieces = it->second->memory->find(address, 1);
    if (pieces.empty()) {
        return {};
    }
    return {pieces.front().map, pieces.front().offset};
}

}  // namespace reprise
