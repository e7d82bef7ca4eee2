// SPDX-License-Identifier: MIT
// The engines by name; their types are in replay/engine/all_engines.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise {

enum class EngineKind : uint8_t {
#define ENGINE(name, type, help) name,
#include "replay/engine/engines.def"
#undef ENGINE
};

struct EngineInfo {
    EngineKind kind;
    std::string_view name;
    std::string_view help;
};

/// In the order of engines.def.
inline constexpr std::array kEngines{
#define ENGINE(name, type, help) EngineInfo{EngineKind::name, #name, help},
#include "replay/engine/engines.def"
#undef ENGINE
};

constexpr std::string_view engine_name(EngineKind kind) { return kEngines[static_cast<size_t>(kind)].name; }
constexpr std::optional<EngineKind> engine_by_name(std::string_view name) {
    for (const EngineInfo& engine : kEngines) {
        if (engine.name == name) {
            return engine.kind;
        }
    }
    return std::nullopt;
}

/// Whether the engine performs calls below the replay root (Engine::kUsesRoot).
bool uses_root(EngineKind kind);

}  // namespace reprise
