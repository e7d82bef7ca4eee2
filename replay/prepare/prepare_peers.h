// SPDX-License-Identifier: MIT
// The other ranks that lay out the same root.
#pragma once

#include <cstdint>

namespace reprise {

class PreparePeers {
public:
    PreparePeers() = default;
    virtual ~PreparePeers() = default;
    PreparePeers(const PreparePeers&) = delete;
    PreparePeers& operator=(const PreparePeers&) = delete;

    /// This rank among those that share the root; 0 makes what one must make for all, and has the lock.
    virtual uint32_t place() const = 0;
    virtual uint32_t count() const = 0;
    /// Waits for all ranks, those of other roots, too. Throws Error (machine) where one failed.
    virtual void gate() = 0;
};

}  // namespace reprise
