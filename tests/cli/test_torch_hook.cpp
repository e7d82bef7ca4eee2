// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>

#include "cli/torch_hook.h"

using namespace reprise;

TEST_CASE("torch hook: a program in a build folder finds the hook of its source tree") {
    const auto directory = torch_hook_directory();
    REQUIRE(directory);
    CHECK(std::filesystem::exists(*directory / "sitecustomize.py"));
    CHECK(std::filesystem::exists(*directory / "reprise_torch.py"));
    CHECK(std::filesystem::exists(directory->parent_path() / "reprise.py"));
    const std::string markers = directory->parent_path().string();
    CHECK(torch_hook_python_path("") == directory->string() + ":" + markers);
    CHECK(torch_hook_python_path("/a:/b") == directory->string() + ":/a:/b:" + markers);
}
