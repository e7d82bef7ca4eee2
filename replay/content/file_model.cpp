// SPDX-License-Identifier: MIT
#include "replay/content/file_model.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>

#include <algorithm>

#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/touched.h"
#include "replay/content/content.h"
#include "replay/content/written.h"

namespace reprise {
namespace {

constexpr uint64_t unsigned_of(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

/// A relative path without "." and "..".
std::string cleaned(const std::string& path) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= path.size();) {
        const size_t end = std::min(path.find('/', begin), path.size());
        const std::string part = path.substr(begin, end - begin);
        begin = end + 1;
        if (part == ".." && !parts.empty()) {
            parts.pop_back();
        } else if (!part.empty() && part != "." && part != "..") {
            parts.push_back(part);
        }
    }
    std::string out;
    for (const std::string& part : parts) {
        out += (out.empty() ? "" : "/") + part;
    }
    return out;
}

}  // namespace

std::string FileModel::path_of(FileId file) const {
    const std::vector<FileRow>& rows = plan_.log->tables().files;
    if (file == 0 || (file < rows.size() && in_memory(rows[file])) || file >= plan_.paths.size() ||
        plan_.paths[file].relative == nullptr || !plan_.keeps_file(file)) {
        return {};
    }
    return plan_.paths[file].relative;
}

/// With the links that lie on the way, and, with `last`, the one that it names.
std::string FileModel::resolved(const std::string& path, bool last) const {
    constexpr int kMostLinks = 40;
    std::string out, rest = path;
    for (int links = 0; !rest.empty() && links <= kMostLinks;) {
        const size_t slash = rest.find('/');
        const std::string part = rest.substr(0, slash);
        rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
        if (part.empty() || part == ".") {
            continue;  // the root itself is there, and has no name in it
        }
        const std::string here = out.empty() ? part : out + "/" + part;
        const auto found = names_.find(here);
        if (found != names_.end() && found->second->type == FileType::symlink && (last || !rest.empty())) {
            rest = cleaned(out + "/" + found->second->target) + (rest.empty() ? "" : "/" + rest);
            out.clear();
            ++links;
        } else {
            out = here;
        }
    }
    return out;
}

void FileModel::name(const std::string& path, const ModelFilePointer& file) {
    unname(path, 0);
    names_[path] = file;
    file->path = path;
    ++file->names;
    file->had.emplace_back(path, INT64_MAX);
}

void FileModel::unname(const std::string& path, int64_t time) {
    const auto found = names_.find(path);
    if (found == names_.end()) {
        return;
    }
    ModelFile& file = *found->second;
    --file.names;
    for (auto& [had, until] : file.had) {
        until = had == path && until == INT64_MAX ? time : until;
    }
    names_.erase(found);
}

ModelFilePointer FileModel::make(const std::string& path, FileType type) {
    auto file = std::make_shared<ModelFile>();
    file->type = type;
    files_.push_back(file);
    if (!path.empty()) {
        name(path, file);
    }
    return file;
}

void FileModel::add(const std::string& path, FileType type, uint64_t size, const std::string& target) {
    if (path == ".") {
        return;
    }
    const ModelFilePointer file = make(path, type);
    file->target = target;
    file->size = size;
    if (type == FileType::regular) {
        file->extents.put(0, size, {Source::Is::prepared, content_seed(path), 0, 0, 0, INT64_MIN});
    }
}

void FileModel::add_hole(const std::string& path, uint64_t from, uint64_t to) {  // NOLINT: it changes the files
    if (const ModelFilePointer file = find(path)) {
        file->extents.put(from, std::min(to, file->size), {});
    }
}

void FileModel::add_link(const std::string& path, const std::string& first) {
    if (const ModelFilePointer file = find(first)) {
        name(path, file);
    }
}

ModelFilePointer FileModel::find(const std::string& path) const {
    const auto found = names_.find(path);
    return found == names_.end() ? nullptr : found->second;
}

ModelFilePointer FileModel::of(HandleId handle) {
    if (const auto found = handles_.find(handle); found != handles_.end()) {
        return found->second;
    }
    const std::vector<HandleRow>& rows = plan_.log->tables().handles;
    if (handle == 0 || handle >= rows.size() || !rows[handle].inherited) {
        return nullptr;
    }
    const std::string path = path_of(rows[handle].file);
    return handles_[handle] = path.empty() ? nullptr : find(resolved(path, true));
}

void FileModel::doubt(ModelFile& file, const std::string& reason) {
    if (!file.unordered) {
        file.unordered = true;
        ++unchecked_[reason];
    }
}

void FileModel::apply(TaskId task, uint64_t number, const Op& op) {
    if (op.result < 0) {
        return;
    }
    const auto on_path = [&](const auto& act) {
        if (const std::string path = path_of(op.file); !path.empty()) {
            act(path);
        }
    };
    const auto on_file = [&](const auto& act) {
        if (const ModelFilePointer file = of(op.handle)) {
            act(*file);
        }
    };
    switch (op.kind) {
        case OpKind::open: open(op); break;
        case OpKind::write:
        case OpKind::pwrite:
        case OpKind::writev:
        case OpKind::pwritev: write(task, number, op); break;
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice: copy(task, number, op); break;
        case OpKind::uring_submit:
        case OpKind::aio_submit: request(op); break;
        case OpKind::mmap: map(op); break;
        case OpKind::touch: touch(task, number, op); break;
        case OpKind::fallocate: allocate(op); break;
        case OpKind::fcntl:
            if (op.arg == F_SETFL && op.handle != 0) {
                appends_[op.handle] = (op.flags & O_APPEND) != 0;
            }
            break;
        case OpKind::ftruncate: on_file([&](ModelFile& file) { resize(file, unsigned_of(op.size), op); }); break;
        case OpKind::truncate:
            on_path([&](const std::string& path) {
                if (const ModelFilePointer file = find(resolved(path, true))) {
                    resize(*file, unsigned_of(op.size), op);
                }
            });
            break;
        case OpKind::mkdir:
            on_path([&](const std::string& path) { make(resolved(path, false), FileType::directory); });
            break;
        case OpKind::symlink:
            on_path([&](const std::string& path) {
                // Where its target lies below the root is the engine's affair.
                make(resolved(path, false), FileType::symlink)->unordered = true;
            });
            break;
        case OpKind::unlink:
        case OpKind::rmdir: on_path([&](const std::string& path) { unname(resolved(path, false), op.begin); }); break;
        case OpKind::rename: rename(op); break;
        case OpKind::link: link(op); break;
        case OpKind::fsync:
        case OpKind::fdatasync:
        case OpKind::syncfs: synced(task, number, op); break;
        default: break;
    }
}

/// Of a file that was opened when another had its name.
ModelFilePointer FileModel::behind_descriptor(FileId file) const {
    const auto behind = plan_.behind_descriptors.find(file);
    if (behind == plan_.behind_descriptors.end()) {
        return nullptr;
    }
    for (auto handle = behind->second.rbegin(); handle != behind->second.rend(); ++handle) {
        if (const auto found = handles_.find(*handle); found != handles_.end()) {
            return found->second;
        }
    }
    return nullptr;
}

void FileModel::open(const Op& op) {
    const std::string path = path_of(op.file);
    if (path.empty() || op.handle == 0) {
        return;
    }
    if ((op.flags & O_TMPFILE) == O_TMPFILE) {
        nameless_[op.file] = handles_[op.handle] = make("", FileType::regular);
        return;
    }
    if (plan_.log->tables().files[op.file].type == FileType::fifo) {
        return;  // an open makes none, and nothing stays in it
    }
    const std::string place = resolved(path, (op.flags & O_NOFOLLOW) == 0);
    ModelFilePointer file = behind_descriptor(op.file);
    file = file == nullptr ? find(place) : file;
    if (file == nullptr) {
        const bool directory = (op.flags & O_DIRECTORY) != 0 || place.empty();
        if (directory) {
            return;  // without a name of its own, as the root is
        }
        file = make(place, FileType::regular);
        if ((op.flags & O_CREAT) == 0) {
            doubt(*file, "opened, and not known before");
        }
    } else if ((op.flags & O_TRUNC) != 0 && (op.flags & O_ACCMODE) != O_RDONLY) {
        resize(*file, 0, op);
    }
    handles_[op.handle] = file;
}

/// Where a call of another task that overlapped in time wrote, too, either may have been the last.
void FileModel::put(ModelFile& file, uint64_t from, uint64_t to, const Source& source, const Op& op) {
    for (const Extent& was : file.extents.of(from, to)) {
        const bool races = was.source.task != 0 && was.source.task != source.task && was.source.end > op.begin;
        Source now = source;
        if (races) {
            now.is = Source::Is::unknown;
            now.end = std::max(now.end, was.source.end);
        }
        file.extents.put(was.from, was.to, now);
    }
    file.size = std::max(file.size, to);
}

bool FileModel::appends(HandleId handle) const {
    const auto changed = appends_.find(handle);
    return changed != appends_.end() ? changed->second : (plan_.log->tables().handles[handle].flags & O_APPEND) != 0;
}

void FileModel::write(TaskId task, uint64_t number, const Op& op) {
    const ModelFilePointer file = of(op.handle);
    if (file == nullptr || op.result == 0) {
        return;
    }
    const bool appends = goes_to_end(op.kind, op.flags, this->appends(op.handle));
    if (op.offset < 0) {
        doubt(*file, "written where the log does not tell");
    } else if (appends && file->appends != 0 && file->appends != op.handle) {
        doubt(*file, "appended to by several instances");
    } else if (appends && file->appender != 0 && file->appender != task && file->appended > op.begin) {
        doubt(*file, "appended to by several tasks at once");
    }
    if (appends) {
        file->appends = op.handle;
        file->appender = task;
        file->appended = std::max(file->appended, op.end());
    }
    // Engines write what belongs to the call's offset, wherever Linux puts it.
    const uint64_t asked = unsigned_of(op.offset), from = appends ? file->size : asked;
    put(*file, from, from + unsigned_of(op.result),
        {Source::Is::written, write_seed(task, number), asked - from, task, number, op.end()}, op);
}

void FileModel::copy(TaskId task, uint64_t number, const Op& op) {
    const ModelFilePointer to = of(op.handle2);
    if (to == nullptr) {
        return;
    }
    const bool clones = op.kind == OpKind::copy_file_range && (op.flags & kCopyClones) != 0;
    const uint64_t bytes = unsigned_of(clones ? op.size : op.result);
    const ModelFilePointer from = of(op.handle);
    if (op.offset2 < 0 || (clones && bytes == 0)) {
        doubt(*to, "written where the log does not tell");
        return;
    }
    const uint64_t at = unsigned_of(op.offset2);
    if (from == nullptr || op.offset < 0 || from->unordered || op.kind == OpKind::splice) {
        put(*to, at, at + bytes, {Source::Is::unknown, 0, 0, task, number, op.end()}, op);
        return;
    }
    const uint64_t begin = unsigned_of(op.offset);
    for (const Extent& part : from->extents.of(begin, begin + bytes)) {
        Source source = part.source;
        source.shift += begin - at;
        source.task = task;
        source.op = number;
        source.end = op.end();
        put(*to, part.from - begin + at, part.to - begin + at, source, op);
    }
}

void FileModel::request(const Op& op) {
    const AsyncRequest asked = async_request(op.kind, op.arg, op.flags);
    if (const ModelFilePointer file = asked.alters() ? of(op.handle) : nullptr) {
        doubt(*file, "written asynchronously");
    }
}

void FileModel::map(const Op& op) {
    const bool writes = op.map < plan_.map_flags.size() && (plan_.map_flags[op.map] & kMapWritesFile) != 0;
    if (const ModelFilePointer file = writes && op.offset >= 0 ? of(op.handle) : nullptr) {
        maps_[op.map] = {file, unsigned_of(op.offset)};
    }
}

void FileModel::touch(TaskId task, uint64_t number, const Op& op) {
    const auto found = op.flags == kTouchWrites ? maps_.find(op.map) : maps_.end();
    if (found == maps_.end()) {
        return;
    }
    ModelFile& file = *found->second.file;
    each_touched(op.offset, op.size, op.list, [&](int64_t offset, int64_t bytes) {
        const uint64_t from = found->second.begin + static_cast<uint64_t>(offset);
        const uint64_t to = std::min(from + static_cast<uint64_t>(bytes), file.size);
        if (from < to) {
            put(file, from, to, {Source::Is::written, write_seed(task, number), 0, task, number, op.end()}, op);
        }
    });
}

void FileModel::allocate(const Op& op) {
    const ModelFilePointer file = of(op.handle);
    if (file == nullptr) {
        return;
    }
    const uint64_t from = unsigned_of(op.offset), to = from + unsigned_of(op.size);
    if ((op.flags & ~int64_t{FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE}) != 0) {
        doubt(*file, "changed by fallocate");
        return;
    }
    if ((op.flags & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
        file->extents.put(from, std::min(to, file->size), {});
        file->resized = std::max(file->resized, op.end());
    }
    if ((op.flags & FALLOC_FL_KEEP_SIZE) == 0) {
        file->size = std::max(file->size, to);
    }
}

void FileModel::resize(ModelFile& file, uint64_t size, const Op& op) {
    file.extents.cut(size);
    file.size = size;
    file.resized = std::max(file.resized, op.end());
}

void FileModel::move(const std::string& from, const std::string& to, int64_t time) {
    const ModelFilePointer file = find(from);
    unname(to, time);
    unname(from, time);
    name(to, file);
}

void FileModel::rename(const Op& op) {
    const std::string from = path_of(op.file), to = path_of(op.file2);
    if (from.empty() || to.empty()) {
        return;
    }
    const std::string old_place = resolved(from, false), place = resolved(to, false);
    const ModelFilePointer file = find(old_place), other = find(place);
    if (file == nullptr || file == other) {
        return;
    }
    if ((op.flags & RENAME_EXCHANGE) != 0 && other != nullptr) {
        return exchange(old_place, place, op.begin);
    }
    move(old_place, place, op.begin);
    for (const std::string& one : below(old_place)) {
        move(one, place + one.substr(old_place.size()), op.begin);
    }
}

std::vector<std::string> FileModel::below(const std::string& directory) const {
    const std::string prefix = directory + "/";
    std::vector<std::string> inside;
    for (auto one = names_.lower_bound(prefix); one != names_.end() && one->first.starts_with(prefix); ++one) {
        inside.push_back(one->first);
    }
    return inside;
}

/// With all below them.
void FileModel::exchange(const std::string& a, const std::string& b, int64_t time) {
    std::vector<std::pair<std::string, ModelFilePointer>> moved;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
        std::vector<std::string> names = below(from);
        names.push_back(from);
        for (const std::string& one : names) {
            moved.emplace_back(to + one.substr(from.size()), find(one));
            unname(one, time);
        }
    }
    for (const auto& [to, file] : moved) {
        name(to, file);
    }
}

void FileModel::link(const Op& op) {
    const std::string to = path_of(op.file2);
    if (to.empty()) {
        return;
    }
    const auto nameless = nameless_.find(op.file);
    if (op.flags != 0 && nameless != nameless_.end()) {
        name(resolved(to, false), nameless->second);
        return;
    }
    const std::string from = path_of(op.file);
    if (const ModelFilePointer file = from.empty() ? nullptr : find(resolved(from, false))) {
        name(resolved(to, false), file);
    } else {
        doubt(*make(resolved(to, false), FileType::regular), "linked, and not known before");
    }
}

void FileModel::synced(TaskId task, uint64_t number, const Op& op) {
    const Sync sync{op.begin, op.end(), task, number};
    if (op.kind == OpKind::syncfs) {
        syncs_.push_back(sync);
    } else if (const ModelFilePointer file = of(op.handle)) {
        file->syncs.push_back(sync);
    }
}

}  // namespace reprise
