// SPDX-License-Identifier: MIT
#include "replay/plan/awaited_names.h"

#include <cerrno>
#include <utility>

#include "formats/oplog/op_fields.h"
#include "replay/plan/plan.h"

namespace reprise {

AwaitedNames::AwaitedNames(const Plan& plan)
    : plan_(plan), tables_(plan.log->tables()), makers_(tables_.files.size()) {}

void AwaitedNames::see(const OpBlock& block, size_t i) {
    if (i == 0) {
        began_.try_emplace(block.task, block.begin[0]);
    }
    const FileId file = block.file[i];
    if (file == 0 || file >= tables_.files.size()) {
        return;
    }
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const bool looks = kind == OpKind::stat || kind == OpKind::access || kind == OpKind::open;
    const FileRow& row = tables_.files[file];
    const uint64_t key = uint64_t{block.task} << 32 | row.path;
    if (looks && block.result[i] == -ENOENT) {
        if (plan_.tasks[block.task].looks.has(block.first + i)) {
            return;
        }
        Found& of = looks_[key];
        of.count += of.found == 0 ? 1 : 0;
        of.before = std::exchange(of.last, block.begin[i]);
        return;
    }
    if (block.result[i] < 0 || row.origin != Origin::created) {
        return;
    }
    Maker& maker = makers_[file];
    if (block.begin[i] < maker.since) {
        maker = {block.task, block.begin[i]};
    }
    if (const auto found = looks_.find(key); looks && found != looks_.end() && found->second.found == 0) {
        found->second.found = file;
    }
}

AwaitedName AwaitedNames::most() const {
    constexpr uint64_t kFew = 3;
    AwaitedName out;
    for (const auto& [key, looks] : looks_) {
        const auto task = static_cast<TaskId>(key >> 32);
        if (looks.found == 0 || looks.count < kFew || looks.count < out.looks) {
            continue;
        }
        const Maker& maker = makers_[looks.found];
        const auto began = began_.find(maker.task);
        const bool at_work = maker.task != task && began != began_.end() && began->second < looks.before;
        if (at_work && (looks.count > out.looks || task < out.task)) {
            out = {task, looks.count, std::string(tables_.path(looks.found))};
        }
    }
    return out;
}

}  // namespace reprise
