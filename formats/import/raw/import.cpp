// SPDX-License-Identifier: MIT
// Raw recordings of `reprise capture` that were not assembled: kept on purpose, or left by a recorder that was killed.
#include "formats/assemble/recording/recording.h"
#include "formats/import/importer.h"
#include "formats/raw/log.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

bool sniff(std::string_view head) {
    return RawReader::sniff(ByteView(reinterpret_cast<const uint8_t*>(head.data()), head.size()));
}

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    if (inputs.size() != 1) {
        throw usage_error("raw recordings are imported one at a time", "a log holds one recording");
    }
    RawAssembleOptions how;
    how.roles = options.roles;
    // The input is read twice.
    if (options.progress) {
        how.progress = [&](uint64_t done, uint64_t) { options.progress(done / 2); };
    }
    assemble_raw_file(inputs.front(), output, how, options.writer);
}

}  // namespace

extern const Importer import_raw;
const Importer import_raw{"raw", "raw recording of reprise capture, also one that was cut", sniff, import};

}  // namespace reprise
