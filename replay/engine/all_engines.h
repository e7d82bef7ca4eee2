// SPDX-License-Identifier: MIT
// Makes an engine of a kind that is only known at run time.
#pragma once

#include <type_traits>
#include <utility>

#include "replay/engine/engine.h"
#include "replay/engine/engines.h"
#define ENGINE_HEADERS
#include "replay/engine/engines.def"
#undef ENGINE_HEADERS

namespace reprise {

#define ENGINE(name, type, help) static_assert(Engine<type>, "see the contract in replay/engine/engine.h");
#include "replay/engine/engines.def"
#undef ENGINE

/// Calls `use` with std::type_identity of the kind's class.
template <class Use>
decltype(auto) with_engine_type(EngineKind kind, Use&& use) {
    switch (kind) {
#define ENGINE(name, type, help) \
    case EngineKind::name:       \
        return std::forward<Use>(use)(std::type_identity<type>{});
#include "replay/engine/engines.def"
#undef ENGINE
    }
    __builtin_unreachable();
}

}  // namespace reprise
