// SPDX-License-Identifier: MIT
// Files of the right size whose data is gone: what a copy without data, or a punched hole, leaves behind.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "replay/prepare/layout.h"

namespace reprise {

/// Whether the file `name` of a directory descriptor has a hole where prepare writes data, beside the bytes that the
/// log changes itself. Compressed and inline data is data. False where the file cannot be opened: writing will tell.
bool has_lost_data(const Layout& layout, uint32_t entry, const struct stat& status, int directory, const char* name);

}  // namespace reprise
