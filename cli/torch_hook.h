// SPDX-License-Identifier: MIT
// The start-up hook for PyTorch jobs: where it is installed and the environment that enables it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace reprise {

/// The folder with the hook's sitecustomize.py: installed beside this program (../share/reprise/python/hook), or in the
/// source tree that a build folder lies in. Empty where there is none.
std::optional<std::filesystem::path> torch_hook_directory();

/// The value of PYTHONPATH that arms the hook in every Python the job starts, and lets it import `reprise` where it has
/// no such module itself; `before` is the job's own value or empty.
/// Throws Error (machine) where the hook is not installed.
std::string torch_hook_python_path(const std::string& before);

}  // namespace reprise
