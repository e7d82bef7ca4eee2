// SPDX-License-Identifier: MIT
// Workloads of DLIO and MLPerf Storage (YAML) as jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "generate/job.h"

namespace reprise {

/// Whether the file's name says that it is YAML.
bool is_yaml_name(const std::filesystem::path& file);

/// `gpus`: accelerators, which DLIO is told by the number of MPI ranks. Notes name every key that is given and has no
/// effect, and what is made otherwise than DLIO does it. Throws Error (bad_input) with file and line.
Job read_dlio(const std::filesystem::path& file, uint64_t gpus);
/// `name`: in messages.
Job parse_dlio(std::string_view yaml, const std::string& name, uint64_t gpus);

}  // namespace reprise
