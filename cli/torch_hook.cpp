// SPDX-License-Identifier: MIT
#include "cli/torch_hook.h"

#include <system_error>

#include "formats/support/error.h"

namespace reprise {

std::optional<std::filesystem::path> torch_hook_directory() {
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) {
        return std::nullopt;
    }
    const auto holds_hook = [&](const std::filesystem::path& directory) {
        return std::filesystem::is_regular_file(directory / "sitecustomize.py", error);
    };
    const auto installed = self.parent_path().parent_path() / "share/reprise/python/hook";
    if (holds_hook(installed)) {
        return installed;
    }
    for (auto above = self.parent_path(); above.has_relative_path(); above = above.parent_path()) {
        if (const auto sources = above / "markers/python/hook"; holds_hook(sources)) {
            return sources;
        }
    }
    return std::nullopt;
}

std::string torch_hook_python_path(const std::string& before) {
    const auto directory = torch_hook_directory();
    if (!directory) {
        throw machine_error("the PyTorch hook is not installed: no share/reprise/python/hook",
                            "install all of reprise (cmake --install), or record without --torch");
    }
    const std::string markers = directory->parent_path().string();
    return directory->string() + ":" + (before.empty() ? markers : before + ":" + markers);
}

}  // namespace reprise
