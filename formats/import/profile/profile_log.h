// SPDX-License-Identifier: MIT
// A log made of a profile: accelerator work and the host calls that drove it.
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/import/importer.h"
#include "formats/import/profile/kineto_events.h"

namespace reprise {

/// `source` for the header. Sorts the events. Throws Error (machine) where `output` cannot be written.
void write_profile_log(kineto::Events& events, std::string_view source, const std::filesystem::path& output,
                       const ImportOptions& options);

}  // namespace reprise
