// SPDX-License-Identifier: MIT
// The reader of Nsight Systems' SQLite exports (`nsys export --type sqlite`).
#pragma once

#include <filesystem>

#include "formats/import/profile/kineto_events.h"

namespace reprise::nsys {

/// Adds work of devices (kernels, copies, fills), the calls that launched it or waited for it, NVTX ranges that are
/// steps
/// ("ProfilerStep#N", "step N"), and waits inside calls of the system's libraries. Throws Error (bad_input) for what is
/// no such export; a table or column that is not there is no fault.
void read_events(const std::filesystem::path& path, kineto::Events& into);

}  // namespace reprise::nsys
