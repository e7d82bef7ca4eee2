// SPDX-License-Identifier: MIT
// Importers: other tools' recordings to op logs. Adding one is one file that defines an Importer and one row in
// formats/import/importers.def; help, completion, the sniff tests and a fuzzer follow from the row.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/assemble/roles.h"
#include "formats/oplog/oplog.h"
#include "formats/support/input.h"

namespace reprise {

struct ImportOptions {
    /// Called with the bytes of the input files, as stored on disk, done so far (LineReader::file_bytes); may be empty.
    std::function<void(uint64_t)> progress;
    uint32_t time_unit_ns = 0;  // 0: the source's own resolution
    /// Application spans that mean a busy accelerator, besides those the importer knows: patterns of fnmatch on NAME or
    /// CATEGORY:NAME.
    std::vector<std::string> compute_spans;
    bool all_spans = false;    // keep every application span as a marker, not only epochs, steps, fetches, checkpoints
    bool run_programs = true;  // else an input that another program must decode is refused
    RoleOverrides roles;       // what files are for, where the user knows better (formats/assemble/roles.h)
    WriterOptions writer;
};

struct Importer {
    std::string_view name;     // --from NAME
    std::string_view summary;  // one line for --help
    /// True if a file that begins with `head` (up to 64 KiB, decompressed) is in this format.
    bool (*sniff)(std::string_view head);
    /// Reads all inputs as one run and writes `output`. Throws Error with file:line for what cannot be read at all;
    /// anything smaller is a counter in the log.
    void (*import)(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
                   const ImportOptions& options);
    bool profile = false;  // its source records accelerator work and no I/O: something to graft
};

std::span<const Importer* const> all_importers();
/// Directories replaced by the files in them that some importer knows, sorted by name. Error (bad_input) for what is
/// missing, is neither file nor directory, or holds nothing importable.
std::vector<std::filesystem::path> importable_files(std::span<const std::filesystem::path> inputs);
/// By name, else by sniffing every input (all must agree); Error (bad_input) says what was tried.
const Importer& find_importer(std::span<const std::filesystem::path> inputs, std::string_view name);

}  // namespace reprise
