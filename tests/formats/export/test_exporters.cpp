// SPDX-License-Identifier: MIT
// What every exporter of the registry does, whatever its format.
#include <filesystem>
#include <set>

#include "formats/export/exporter.h"
#include "formats/support/error.h"
#include "tests/samples.h"
#include "tests/support.h"

namespace reprise::test {

TEST_CASE("every exporter writes a log of all ops, names its files, and counts what it leaves out") {
    std::set<std::string_view> names;
    for (const Exporter* exporter : all_exporters()) {
        CAPTURE(exporter->name);
        CHECK(names.insert(exporter->name).second);
        CHECK_FALSE(exporter->summary.empty());
        const TempDir dir;
        write_all_ops(dir / "a.oplog");
        const LogReader log(dir / "a.oplog");
        uint64_t seen = 0;
        ExportOptions options;
        options.progress = [&](uint64_t) { ++seen; };
        const ExportReport report = exporter->write(log, dir / "out", options);
        CHECK(report.ops > 0);
        CHECK(report.ops <= log.op_count());
        CHECK(report.left_out == 0);  // there is no filter
        CHECK(seen > 0);
        REQUIRE_FALSE(report.files.empty());
        for (const std::filesystem::path& file : report.files) {
            CHECK(std::filesystem::file_size(file) > 0);
        }
        if (report.ops < log.op_count()) {
            CHECK_FALSE(report.counters.empty());
        }

        options.filter = OpFilter::from_words({"/no/such/file"}, {});
        if (exporter->performed) {  // nothing to perform
            CHECK_THROWS_AS(exporter->write(log, dir / "none", options), Error);
            continue;
        }
        const ExportReport none = exporter->write(log, dir / "none", options);
        CHECK(none.left_out > 0);
        CHECK(none.ops < report.ops);
    }
}

}  // namespace reprise::test
