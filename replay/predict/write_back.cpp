// SPDX-License-Identifier: MIT
#include "replay/predict/write_back.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kMostOffset = int64_t{1} << 60;  // malformed logs have larger ones

/// Time of that amount; at most 115 days, as a rate may be next to nothing.
int64_t takes(int64_t amount, double per_second) {
    return per_second > 0 ? static_cast<int64_t>(std::min(static_cast<double>(amount) * 1e9 / per_second, 1e16)) : 0;
}

}  // namespace

int64_t WriteBack::write(int64_t bytes, int64_t requests, int64_t begin) {
    free_ =
        std::max(free_, begin) + std::max(takes(bytes, model_.write_bytes_per_s), takes(requests, model_.writes_per_s));
    return free_;
}

int64_t WriteBack::blocks_ns(int64_t blocks) const {
    return std::max(takes(blocks * 4096, model_.write_bytes_per_s), takes(blocks, model_.writes_per_s));
}

int64_t WriteBack::write_direct(int64_t bytes, double per_s, int64_t begin) {
    const double rate = std::max(per_s, model_.write_bytes_per_s);
    free_ = std::max(free_, begin) + takes(bytes, rate);
    return free_;
}

int64_t WriteBack::first_page_ns(FileId id) const {
    const auto found = files_.find(id);
    return found == files_.end() || found->second.dirty == 0 || model_.writes_per_s <= 0
               ? 0
               : static_cast<int64_t>(1e9 / model_.writes_per_s);
}

/// The first pages of the file that have so many bytes; all where all of it goes.
void WriteBack::send(FileId id, File& file, int64_t bytes, int64_t now) {
    int64_t pages = 0, asked = 0;
    while (!file.pages.empty() && (bytes == file.dirty || pages < bytes)) {
        const auto [from, to] = *file.pages.ranges().begin();
        const auto most = bytes == file.dirty ? to - from : static_cast<uint64_t>(bytes - pages);
        const uint64_t until = std::min(to, from + most);
        const uint64_t unit = file.pages.unit();
        const uint64_t whole = std::min(to, from + (until - from + unit - 1) / unit * unit);
        file.pages.remove(from, whole);
        pages += static_cast<int64_t>(whole - from);
        asked += requests(static_cast<int64_t>(whole - from));
    }
    file.written = write(std::min(bytes, pages), asked, now);
    file.dirty -= bytes;
    dirty_ -= bytes;
    if (file.dirty == 0) {
        oldest_.erase({file.since, id});
    }
}

/// What has been dirty for long is written when that time was up.
void WriteBack::expire(int64_t now) {
    while (!oldest_.empty() && oldest_.begin()->first + model_.dirty_expire_ns <= now) {
        const auto [since, id] = *oldest_.begin();
        File& file = files_[id];
        send(id, file, file.dirty, since + model_.dirty_expire_ns);
    }
}

int64_t WriteBack::dirty(FileId id, int64_t offset, int64_t bytes, int64_t now) {
    expire(now);
    if (bytes <= 0) {
        return now;
    }
    File& file = files_[id];
    if (file.dirty == 0) {
        file.since = now;
        oldest_.insert({now, id});
    }
    const int64_t from = offset < 0 || offset > kMostOffset ? file.end : offset;
    file.end = std::min(from, kMostOffset) + std::min(bytes, kMostOffset);
    file.pages.add(static_cast<uint64_t>(from), static_cast<uint64_t>(file.end));
    file.dirty += bytes;
    dirty_ += bytes;
    while (model_.dirty_background_bytes > 0 && dirty_ > model_.dirty_background_bytes) {
        const FileId first = oldest_.begin()->second;
        File& oldest = files_[first];
        send(first, oldest, std::min(oldest.dirty, dirty_ - model_.dirty_background_bytes), now);
    }
    if (model_.dirty_bytes <= 0 || model_.write_bytes_per_s <= 0) {
        return now;
    }
    // A writer runs freely up to half-way between the two thresholds (balance_dirty_pages); then it waits until the
    // device has written as much as it is beyond that.
    const double on_its_way = static_cast<double>(std::max<int64_t>(free_ - now, 0)) * model_.write_bytes_per_s / 1e9;
    const double freely =
        (static_cast<double>(model_.dirty_background_bytes) + static_cast<double>(model_.dirty_bytes)) / 2;
    const double beyond = std::min(static_cast<double>(dirty_) + on_its_way - freely, on_its_way);
    return beyond > 0 ? now + static_cast<int64_t>(beyond * 1e9 / model_.write_bytes_per_s) : now;
}

int64_t WriteBack::sync(FileId id, int64_t now) {
    expire(now);
    const auto found = files_.find(id);
    if (found == files_.end()) {
        return now;
    }
    if (found->second.dirty > 0) {
        send(id, found->second, found->second.dirty, now);
    }
    return std::max(now, found->second.written);
}

int64_t WriteBack::sync_all(int64_t now) {
    expire(now);
    while (!oldest_.empty()) {
        const FileId id = oldest_.begin()->second;
        File& file = files_[id];
        send(id, file, file.dirty, now);
    }
    return std::max(now, free_);
}

void WriteBack::drop(FileId id, int64_t now) {
    expire(now);
    if (const auto found = files_.find(id); found != files_.end()) {
        dirty_ -= found->second.dirty;
        oldest_.erase({found->second.since, id});
        files_.erase(found);
    }
}

}  // namespace reprise
