// SPDX-License-Identifier: MIT
// What a device reads to find names of a part of a directory's files.
#include "replay/predict/cold_names.h"

#include "formats/oplog/header_facts.h"
#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

struct Sparse {
    TempDir dir;
    LogBuilder log{dir / "log"};
    std::vector<FileId> files;

    /// Every tenth file of a directory, of `count` named ones.
    LogReader every_tenth(int count) {
        for (int i = 0; i < count; ++i) {
            FileRow row;
            row.device = 0x801;
            row.inode = 1'000 + 10 * static_cast<uint64_t>(i);
            row.type = FileType::regular;
            row.origin = Origin::existed;
            files.push_back(log.row(row, "/d/image-" + std::to_string(1000 + i)));
        }
        return log.finish();
    }
    uint64_t all(ColdNames& names) const {
        uint64_t sum = 0;
        for (const FileId file : files) {
            const auto requests = names.look(file);
            REQUIRE(requests);
            CHECK(requests->needed <= requests->count);
            sum += requests->count;
        }
        return sum;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Sparse, "names of some files of many: ext4 reads each block of their inodes, once") {
    log.header().extra.emplace(std::string(fact::file_systems.key), R"({"8:1": "ext4"})");
    const LogReader reader = every_tenth(512);
    ColdNames names(reader, "ext4");
    const uint64_t reads = all(names);
    CHECK(reads > 5'120 / 16);
    CHECK(reads < 5'120 / 16 + 60);  // and the blocks of the directory
    CHECK(all(names) == 0);
    CHECK_FALSE(names.look(FileId{9'999}));
    ColdNames clusters(reader, "xfs");
    CHECK(all(clusters) < 5'120 / 32 + 60);
    ColdNames unknown(reader, "nfs4");
    CHECK_FALSE(unknown.look(files[0]));
}

TEST_CASE_FIXTURE(Sparse, "names of some files of many: a listing says how many there were") {
    log.handle({.file = log.directory("/d"), .kind = HandleKind::directory});
    const LogReader reader = every_tenth(512);
    ColdNames names(reader, "ext4");
    CHECK_FALSE(names.look(files[0]));
}

}  // namespace reprise::test
