// SPDX-License-Identifier: MIT
// Where a machine keeps its programs and its own state, as opposed to what a job works on.
#pragma once

#include <cstdint>
#include <string_view>

namespace reprise {

/// "/proc", "/etc" and others, or below one. Paths are absolute.
bool is_system_place(std::string_view path);
/// "/usr", "/opt" and others, or below one, except for what is known to hold data.
bool is_program_place(std::string_view path);
/// "/opt/data" and others, or below one.
bool holds_data_below_programs(std::string_view path);
/// A directory that package managers fill: "site-packages", "python3.11", "x.dist-info".
bool is_package_directory(std::string_view name);
/// The directory that every system has in which a path lies, as far as what is said here of the path depends on its
/// name: "/usr/lib/locale". Empty: none.
std::string_view known_place(std::string_view path);
/// In one of the above.
bool is_installed(std::string_view path);
/// Whether a file there is one that programs need to start and to work: a library, a module, a header, a font, the
/// state of a package manager, or a small file. Others that lie there are data that a job reads, as a data base below
/// /var/lib. `size`: bytes.
bool is_part_of_program(std::string_view path, uint64_t size);

}  // namespace reprise
