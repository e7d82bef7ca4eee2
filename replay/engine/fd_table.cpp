// SPDX-License-Identifier: MIT
#include "replay/engine/fd_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "replay/engine/copy_each.h"

namespace reprise {

DescriptorTable::DescriptorTable(const Plan& plan, std::mutex& lock)
    : flags_(&plan.handle_flags), lock_(lock), size_(plan.handle_flags.size()), table_(size_) {
    for (HandleId handle = 0; handle < size_; ++handle) {
        int value = handle == 0 ? kClosed : kUnknown;
        if ((plan.handle_flags[handle] & kHandleNotFile) != 0) {
            value = absent(LeftOut::not_a_file);
        }
        if ((plan.handle_flags[handle] & kHandleLeftOut) != 0) {
            value = absent(LeftOut::filter);
        }
        table_[handle].store(value, std::memory_order_relaxed);
    }
}

DescriptorTable::DescriptorTable(const DescriptorTable& parent, std::mutex& lock)
    : flags_(parent.flags_), lock_(lock), size_(parent.size_), table_(size_), all_(parent.all_) {
    copy_each(parent.table_, table_);
}

void DescriptorTable::opened(HandleId handle, int real, int recorded) {
    if (many(handle)) {
        const std::lock_guard guard(lock_);
        all_[handle] = {{recorded, real}};
    }
    put(handle, real);
}

void DescriptorTable::duplicated(HandleId handle, int real, int recorded) {
    const std::lock_guard guard(lock_);
    all_[handle].emplace_back(recorded, real);
    if (get(handle) < 0) {
        put(handle, real);
    }
}

int DescriptorTable::get(HandleId handle, int recorded) const {
    if (!many(handle)) {
        return get(handle);
    }
    const std::lock_guard guard(lock_);
    if (const auto entry = all_.find(handle); entry != all_.end()) {
        for (const auto& [number, real] : entry->second) {
            if (number == recorded) {
                return real;
            }
        }
    }
    return get(handle);
}

int DescriptorTable::take(HandleId handle, int recorded) {
    const int primary = get(handle);
    if (primary < 0) {
        return primary;
    }
    if (!many(handle)) {
        put(handle, kClosed);
        return primary;
    }
    const std::lock_guard guard(lock_);
    const auto entry = all_.find(handle);
    if (entry == all_.end() || entry->second.empty()) {
        put(handle, kClosed);
        return primary;
    }
    auto& list = entry->second;
    auto found = std::find_if(list.begin(), list.end(), [&](const auto& pair) { return pair.first == recorded; });
    if (found == list.end()) {
        found = list.begin();
    }
    const int real = found->second;
    list.erase(found);
    if (list.empty()) {
        all_.erase(entry);
        put(handle, kClosed);
    } else if (real == primary) {
        put(handle, list.front().second);
    }
    return real;
}

void DescriptorTable::exec() {
    const std::lock_guard guard(lock_);
    const auto ends = [](int fd) {
        const int flags = fcntl(fd, F_GETFD);
        return flags >= 0 && (flags & FD_CLOEXEC) != 0;
    };
    for (auto entry = all_.begin(); entry != all_.end();) {
        auto& list = entry->second;
        std::erase_if(list, [&](const auto& pair) {
            const bool gone = ends(pair.second);
            if (gone) {
                close(pair.second);
            }
            return gone;
        });
        put(entry->first, list.empty() ? kClosed : list.front().second);
        entry = list.empty() ? all_.erase(entry) : std::next(entry);
    }
    for (HandleId handle = 1; handle < size_; ++handle) {
        const int fd = get(handle);
        if (fd >= 0 && !all_.contains(handle) && ends(fd)) {
            close(fd);
            put(handle, kClosed);
        }
    }
}

}  // namespace reprise
