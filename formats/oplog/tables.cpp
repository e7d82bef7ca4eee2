// SPDX-License-Identifier: MIT
#include "formats/oplog/tables.h"

namespace reprise {

std::string_view file_type_name(FileType type) {
    switch (type) {
        case FileType::unknown: return "unknown";
        case FileType::regular: return "regular";
        case FileType::directory: return "directory";
        case FileType::symlink: return "symlink";
        case FileType::fifo: return "fifo";
        case FileType::socket: return "socket";
        case FileType::character: return "character";
        case FileType::block: return "block";
        case FileType::anonymous: return "anonymous";
    }
    return "?";
}

FileType file_type_of_mode(uint32_t stat_mode) {
    constexpr uint32_t kTypeMask = 0170000;  // S_IFMT
    switch (stat_mode & kTypeMask) {
        case 0100000: return FileType::regular;
        case 0040000: return FileType::directory;
        case 0120000: return FileType::symlink;
        case 0010000: return FileType::fifo;
        case 0140000: return FileType::socket;
        case 0020000: return FileType::character;
        case 0060000: return FileType::block;
        default: return FileType::unknown;
    }
}

std::string_view role_name(Role role) {
    switch (role) {
        case Role::unknown: return "unknown";
        case Role::dataset: return "dataset";
        case Role::checkpoint: return "checkpoint";
        case Role::log: return "log";
        case Role::cache: return "cache";
        case Role::ipc: return "ipc";
        case Role::program: return "program";
        case Role::system: return "system";
    }
    return "?";
}

std::optional<Role> role_by_name(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(Role::system); ++i) {
        if (role_name(static_cast<Role>(i)) == name) {
            return static_cast<Role>(i);
        }
    }
    return std::nullopt;
}

std::string_view origin_name(Origin origin) {
    switch (origin) {
        case Origin::unknown: return "unknown";
        case Origin::existed: return "existed";
        case Origin::created: return "created";
        case Origin::absent: return "absent";
    }
    return "?";
}

std::string_view handle_kind_name(HandleKind kind) {
    switch (kind) {
        case HandleKind::file: return "file";
        case HandleKind::directory: return "directory";
        case HandleKind::pipe: return "pipe";
        case HandleKind::socket: return "socket";
        case HandleKind::eventfd: return "eventfd";
        case HandleKind::memfd: return "memfd";
        case HandleKind::epoll: return "epoll";
        case HandleKind::other: return "other";
    }
    return "?";
}

StringTable::StringTable() {
    views_.emplace_back("");
    ids_.emplace(std::string_view{}, 0);
}

StringId StringTable::intern(std::string_view text) {
    if (auto found = ids_.find(text); found != ids_.end()) {
        return found->second;
    }
    const auto id = append(text);
    ids_.emplace(views_[id], id);
    return id;
}

StringId StringTable::append(std::string_view text) {
    views_.push_back(text.empty() ? std::string_view{""} : texts_.keep(text));
    return static_cast<StringId>(views_.size() - 1);
}

Tables::Tables() : files(1), handles(1), processes(1), tasks(1) {}

uint64_t Tables::losses() const {
    uint64_t sum = 0;
    for (const Counter& counter : counters) {
        if (counter.severity == Severity::loss) {
            sum += counter.value;
        }
    }
    return sum;
}

}  // namespace reprise
