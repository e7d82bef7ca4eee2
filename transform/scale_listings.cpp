// SPDX-License-Identifier: MIT
#include "transform/scale_listings.h"

#include <map>

namespace reprise {
namespace {

/// Bytes that getdents64 returns for a name: 19 before it, its NUL, a multiple of 8.
int64_t listed_bytes(std::string_view path) {
    const size_t name = path.size() - (path.rfind('/') + 1);
    return static_cast<int64_t>((19 + name + 1 + 7) / 8 * 8);
}

std::string_view directory_of(std::string_view path) { return path.substr(0, std::max<size_t>(path.rfind('/'), 1)); }

}  // namespace

ScaledListings::ScaledListings(const Tables& tables, const LargerSet& set) : tables_(tables) {
    for (const LargerSet::Added& one : set.added()) {
        more_[directory_of(tables.path(one.like))] += listed_bytes(one.path);
    }
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (set.gone(file)) {
            more_[directory_of(tables.path(file))] -= listed_bytes(tables.path(file));
        }
    }
}

void ScaledListings::look_at(const std::vector<PieceOp>& ops) {
    struct Listing {
        int64_t total = 0, most = 0, last = 0, asked = 0;
        uint64_t key = 0;
        uint32_t parts = 0;
    };
    std::map<HandleId, Listing> listings;
    for (const PieceOp& op : ops) {
        if (op.op.kind == OpKind::getdents && op.op.result > 0) {
            Listing& of = listings[op.op.handle];
            of.total += op.op.result;
            of.most = std::max(of.most, op.op.result);
            of.last = op.op.result;
            of.asked = std::max(of.asked, op.op.size);
            of.key = key(op);
            ++of.parts;
        }
    }
    last_.clear();
    for (const auto& [handle, of] : listings) {
        const FileId file = handle < tables_.handles.size() ? tables_.handles[handle].file : 0;
        const auto more = more_.find(tables_.path(file));
        if (more == more_.end() || more->second == 0) {
            continue;
        }
        // A part ends where the next name does not fit.
        constexpr int64_t kRecord = 48;
        const int64_t full = std::max(of.most, of.parts > 1 ? of.most : of.asked - kRecord);
        const int64_t rest = std::max(of.last + more->second, kRecord);
        const int64_t parts = (rest + full - 1) / full;
        last_[of.key] = {parts - 1, full, rest - (parts - 1) * full};
    }
}

}  // namespace reprise
