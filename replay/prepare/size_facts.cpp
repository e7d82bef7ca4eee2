// SPDX-License-Identifier: MIT
#include "replay/prepare/size_facts.h"

#include <sys/mman.h>

#include "formats/oplog/touched.h"

namespace reprise {

namespace {

uint64_t add_saturating(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

}  // namespace

SizeFacts::SizeFacts(const Tables& tables, std::vector<SizeFact>& into) : into_(into), now_(tables.files.size()) {
    for (FileId id = 1; id < now_.size(); ++id) {
        const FileRow& row = tables.files[id];
        now_[id].taken = row.origin == Origin::created ? 0 : row.size;
    }
}

void SizeFacts::wrote(FileId id, int64_t time, uint64_t end, uint64_t bytes) {
    if (id == 0 || id >= now_.size()) {
        return;
    }
    Now& file = now_[id];
    file.reach = std::max(file.reach, end);
    file.most = add_saturating(file.most, bytes);
    const uint64_t size = std::min(file.reach, add_saturating(file.taken, file.most));
    if (size <= std::max(file.told, file.taken)) {
        return;
    }
    file.told = size;
    if (file.grown != 0) {
        SizeFact& fact = into_[file.grown - 1];
        fact.time = std::max(fact.time, time);
        fact.size = size;
        return;
    }
    into_.push_back({SizeFact::Kind::grown, id, 0, time, size});
    file.grown = into_.size();
}

void SizeFacts::cut(FileId id, int64_t time, uint64_t size) {
    if (id == 0 || id >= now_.size()) {
        return;
    }
    into_.push_back({SizeFact::Kind::cut, id, 0, time, size});
    Now& file = now_[id];
    file = {.taken = std::min(size, std::max(file.taken, file.told))};
}

void SizeFacts::moved(FileId from, FileId to, int64_t time) {
    if (from == 0 || from >= now_.size() || to == 0 || to >= now_.size() || from == to) {
        return;
    }
    into_.push_back({SizeFact::Kind::moved, from, to, time, 0});
    now_[to] = {.taken = std::max(now_[from].taken, now_[from].told)};
    now_[from] = {};
}

void MappedSizes::mapped(uint32_t map, FileId file, uint64_t offset) { mappings_[map] = {file, offset}; }

void MappedSizes::touched(const Op& op) {
    const bool populates = op.kind == OpKind::madvise && op.arg == MADV_POPULATE_WRITE;
    if (!populates && !(op.kind == OpKind::touch && op.flags == kTouchWrites)) {
        return;
    }
    Touched all{op.begin, 0, 0};
    each_touched(op.offset, op.size, op.list, [&](int64_t at, int64_t bytes) {
        all.end = std::max(all.end, static_cast<uint64_t>(at + bytes));
        all.bytes = add_saturating(all.bytes, static_cast<uint64_t>(bytes));
    });
    const auto found = mappings_.find(op.map);
    if (found != mappings_.end()) {
        const Mapping& of = found->second;
        sizes_.wrote(of.file, all.time, add_saturating(of.offset, all.end), all.bytes);
        return;
    }
    Touched& early = early_[op.map];
    early.time = std::max(early.time, all.time);
    early.end = std::max(early.end, all.end);
    early.bytes = add_saturating(early.bytes, all.bytes);
}

void MappedSizes::finish() {
    for (const auto& [map, touched] : early_) {
        const auto found = mappings_.find(map);
        if (found != mappings_.end()) {
            const Mapping& of = found->second;
            sizes_.wrote(of.file, touched.time, add_saturating(of.offset, touched.end), touched.bytes);
        }
    }
}

}  // namespace reprise
