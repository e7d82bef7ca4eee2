// SPDX-License-Identifier: MIT
// Several recordings of one job, as replay and prepare take them.
#include "cli/recordings.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>

#include "formats/oplog/cached_pages.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A job that reads a file of 10 MiB, whose first `fetched` bytes came from the device, then `again` pages of it.
std::string recording(const std::filesystem::path& path, uint64_t fetched, uint64_t again, int64_t seconds) {
    LogWriter writer(path, {});
    ProcessRow process;
    process.pid = 1;
    TaskRow task;
    task.process = writer.add_process(process);
    FileRow row;
    row.path = writer.intern("/d/f");
    row.type = FileType::regular;
    row.origin = Origin::existed;
    row.size = 10 << 20;
    row.size_exact = true;
    const FileId file = writer.add_file(row);
    const HandleId handle = writer.add_handle({.file = file, .flags = O_RDONLY});
    writer.append(writer.add_task(task), {.kind = OpKind::pread,
                                          .begin = 0,
                                          .duration = seconds * 1'000'000'000,
                                          .result = 10 << 20,
                                          .handle = handle,
                                          .size = 10 << 20});
    FetchedPages pages;
    pages[file].add(0, fetched);
    writer.keep(encode_fetched(pages));
    writer.keep(encode_cached({{file, 10}}));
    writer.keep(encode_refetched({{file, again}}));
    writer.finish();
    return path.string();
}

}  // namespace

TEST_CASE("what recordings fetched is what info says: as often as it came, and no further than the file goes") {
    const TempDir dir;
    const cli::Recordings all({recording(dir / "a.oplog", 2 << 20, 256, 3), recording(dir / "b.oplog", 3 << 20, 0, 4),
                               recording(dir / "c.oplog", (10 << 20) + 4096, 0, 5)});
    const cli::Json rows = all.json().at("recordings");
    CHECK(rows.at(0).at("fetched_bytes") == 3 << 20);
    CHECK(rows.at(1).at("fetched_bytes") == 3 << 20);
    CHECK(rows.at(2).at("fetched_bytes") == 10 << 20);
}
