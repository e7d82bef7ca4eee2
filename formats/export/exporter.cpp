// SPDX-License-Identifier: MIT
#include "formats/export/exporter.h"

#include <string>

#include "formats/support/error.h"
#include "formats/support/new_file.h"

namespace reprise {

#define EXPORTER(symbol) extern const Exporter symbol;
#include "formats/export/exporters.def"
#undef EXPORTER

namespace {
#define EXPORTER(symbol) &symbol,
const Exporter* const exporter_rows[] = {
#include "formats/export/exporters.def"
};
#undef EXPORTER
}  // namespace

std::span<const Exporter* const> all_exporters() { return exporter_rows; }

const Exporter& find_exporter(std::string_view name) {
    std::string names;
    for (const Exporter* exporter : exporter_rows) {
        if (exporter->name == name) {
            return *exporter;
        }
        names += (names.empty() ? "" : ", ") + std::string(exporter->name);
    }
    throw usage_error("unknown export format '" + escape_line(name) + "'", "expected one of: " + names);
}

void check_written(const std::filesystem::path& file, const ExportOptions& options) {
    check_output(file, options.overwrite);
    if (options.check) {
        options.check(file);
    }
}

}  // namespace reprise
