// SPDX-License-Identifier: MIT
// Which open instance, mapping, request, made file or task stands for which, where a piece of a recording is played
// again: what the piece makes is made anew, what it found is what the piece before left in its place.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "transform/scale_cuts.h"

namespace reprise {

/// Recorded ids to those of the larger log. What is not here keeps its id.
struct Stand {
    static constexpr uint32_t kNone = UINT32_MAX;  // nothing stands for it: its ops are left out
    /// `held`: rows of ScaleRecording::held(), to instances of the larger log.
    enum Kind : uint8_t { handle, held, map, request, file, task, kKinds };
    std::array<std::unordered_map<uint32_t, uint32_t>, kKinds> of;

    uint32_t get(Kind kind, uint32_t id) const {
        const auto found = of[kind].find(id);
        return found == of[kind].end() ? id : found->second;
    }
};

/// What stands for what after the job went from cut `from` to cut `to`, given what did at the end of the passage
/// before.
Stand carry(const ScaleRecording& recording, const Cut& from, const Cut& to, const Stand& before);

/// Whether the object was made before the cut and is used after it.
bool lives_at(const ScaleObject& object, const Cut& cut);
/// Whether the object was made before the cut, and no op had ended any of it by then.
bool never_ended(const ScaleObject& object, const Cut& cut);
/// Whether it is made between two cuts.
inline bool made_between(const ScaleObject& object, const Cut& from, const Cut& to) {
    return object.task != 0 && object.op >= from[object.task] && object.op < to[object.task];
}

}  // namespace reprise
