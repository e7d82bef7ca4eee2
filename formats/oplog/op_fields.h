// SPDX-License-Identifier: MIT
// The fields of an op by name, for whatever prints or compares ops without knowing their kinds.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "formats/oplog/op.h"

namespace reprise {

namespace op_fields_detail {
constexpr int64_t scalar(int64_t value) { return value; }
constexpr int64_t scalar(std::span<const int64_t> list) { return static_cast<int64_t>(list.size()); }
}  // namespace op_fields_detail

/// Value of a field; for `list` its length.
inline int64_t field_value(const Op& op, Field field) {
    switch (field) {
// Version 14 joins the two directives otherwise.
// clang-format off
#define FIELD(name, type, meaning) \
    case Field::name: return op_fields_detail::scalar(op.name);
#include "formats/oplog/ops.def"
        // clang-format on
    }
    return 0;
}

/// Whether a write goes to the end of its file, whatever its offset: by O_APPEND of its instance, or by its own RWF_*.
inline bool goes_to_end(OpKind kind, int64_t flags, bool instance_appends) {
    constexpr int64_t kAppend = 0x10, kNoAppend = 0x20;  // RWF_APPEND, RWF_NOAPPEND
    if (kind == OpKind::pwritev || kind == OpKind::writev) {
        return (flags & kNoAppend) == 0 && (instance_appends || (flags & kAppend) != 0);
    }
    return instance_appends;
}

/// Begin plus duration without overflow, whatever a file says (ns).
inline int64_t end_of(int64_t begin, int64_t duration) {
    int64_t end;
    if (!__builtin_add_overflow(begin, duration, &end)) {
        return end;
    }
    return duration < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
/// `to` minus `from`, likewise.
inline int64_t distance_ns(int64_t from, int64_t to) {
    int64_t distance;
    if (!__builtin_sub_overflow(to, from, &distance)) {
        return distance;
    }
    return to < from ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
inline int64_t end_of(const Op& op) { return end_of(op.begin, op.duration); }

}  // namespace reprise
