// SPDX-License-Identifier: MIT
#include "replay/engine/engines.h"

#include "replay/engine/all_engines.h"

namespace reprise {

bool uses_root(EngineKind kind) {
    return with_engine_type(kind, []<class E>(std::type_identity<E>) { return E::kUsesRoot; });
}

}  // namespace reprise
