// SPDX-License-Identifier: MIT
#include "formats/oplog/op.h"

#include <iterator>

namespace reprise {
namespace {

constexpr FieldInfo kFields[] = {
#define FIELD(name, type, meaning) {Field::name, #name, meaning},
#include "formats/oplog/ops.def"
};

constexpr TraitInfo kTraits[] = {
#define TRAIT(name, meaning) {Trait::name, #name, meaning},
#include "formats/oplog/ops.def"
};
static_assert(std::size(kTraits) <= 32, "OpInfo::traits has one bit per trait");

// Ids are dense, so that kind - 1 is the row: checked here once.
constexpr bool ids_are_dense() {
    uint8_t expected = 1;
    for (const OpInfo& op : all_ops()) {
        if (static_cast<uint8_t>(op.kind) != expected++) {
            return false;
        }
    }
    return true;
}
static_assert(ids_are_dense(), "ops.def: ids must be 1, 2, 3, ...");

}  // namespace

std::span<const FieldInfo> all_fields() { return kFields; }
std::span<const TraitInfo> all_traits() { return kTraits; }

bool is_op(uint8_t id) { return id >= 1 && id < kOpKindLimit; }

std::optional<OpKind> op_by_name(std::string_view name) {
    for (const OpInfo& op : all_ops()) {
        if (op.name == name) {
            return op.kind;
        }
    }
    return std::nullopt;
}

std::string_view edge_name(EdgeKind kind) {
    switch (kind) {
        case EdgeKind::marker: return "marker";
        case EdgeKind::message: return "message";
        case EdgeKind::wake: return "wake";
        case EdgeKind::lifecycle: return "lifecycle";
        case EdgeKind::resource: return "resource";
        case EdgeKind::queue: return "queue";
        case EdgeKind::reaped: return "reaped";
    }
    return "?";
}

int64_t data_bytes(const Op& op) {
    const OpInfo& row = info(op.kind);
    if (op.result <= 0 || (!row.is(Trait::reads) && !row.is(Trait::writes))) {
        return 0;
    }
    return op.result;
}

}  // namespace reprise
