// SPDX-License-Identifier: MIT
// What was measured so far, a line of JSON for each run: complete after each, so that what was killed goes on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/support/unique_fd.h"

namespace reprise {

/// One writer at a time.
class RowFile {
public:
    using Json = nlohmann::ordered_json;

    /// `what`: what rows are of, "sweep". `conditions`: what makes rows comparable, as text. Throws Error (usage) where
    /// `path` has rows of other ones, or is not there in a folder that has other files, unless `fresh`, which forgets
    /// what there is; Error (machine) where it cannot be written, or another process does. `aside`: where that which
    /// `fresh` forgets is copied to, in place of what is there; empty: nowhere.
    RowFile(std::filesystem::path path, const std::string& what, std::string conditions, bool fresh,
            const std::filesystem::path& aside = {});

    /// All rows of a file, under whatever conditions; none where it is not there.
    static std::vector<Json> peek(const std::filesystem::path& path);

    /// Those that were there. What is no JSON with these conditions is left out.
    const std::vector<Json>& found() const { return found_; }
    /// Throws Error (machine) where it cannot be written.
    void add(Json row);

private:
    [[noreturn]] void fail() const;
    void write(const std::string& text) const;

    std::filesystem::path path_;
    std::string conditions_;
    UniqueFd file_;
    std::vector<Json> found_;
};

}  // namespace reprise
