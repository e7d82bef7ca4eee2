// SPDX-License-Identifier: MIT
// Files of text for other programs: written whole or not at all, and what XML and Markdown need escaped.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace reprise::cli {

/// By way of FILE.partial and rename. Throws Error (machine).
void write_text(const std::filesystem::path& path, std::string_view text);
/// As text or as the value of an attribute; what XML 1.0 cannot hold becomes printable first.
std::string xml_escaped(std::string_view text);
/// As text of a cell: no markup, no new cell, no HTML.
std::string markdown_escaped(std::string_view text);

}  // namespace reprise::cli
