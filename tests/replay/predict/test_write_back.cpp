// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "replay/predict/virtual_data.h"
#include "replay/predict/write_back.h"
#include "tests/units.h"

namespace reprise {
namespace {

constexpr int64_t kSecond = 1'000 * kMs;

/// A byte takes a microsecond.
StorageModel slow() {
    StorageModel m;
    m.write_bytes_per_s = 1e6;
    return m;
}

TEST_CASE("write-back of a prediction: nothing is written before a sync, which waits for its own file") {
    const StorageModel m = slow();
    WriteBack cache(m);
    CHECK(cache.dirty(1, -1, 1'000, 0) == 0);
    CHECK(cache.dirty(2, -1, 5'000, 0) == 0);
    CHECK(cache.sync(3, kSecond) == kSecond);
    CHECK(cache.sync(1, kSecond) == kSecond + kMs);
    CHECK(cache.sync(1, 2 * kSecond) == 2 * kSecond);
    CHECK(cache.dirty(1, -1, 2'000, 2 * kSecond) == 2 * kSecond);
    CHECK(cache.sync_all(2 * kSecond) == 2 * kSecond + 7 * kMs);
    CHECK(cache.sync_all(3 * kSecond) == 3 * kSecond);
    // What goes past the cache comes after what was sent to the device.
    CHECK(cache.dirty(1, -1, 1'000, 4 * kSecond) == 4 * kSecond);
    CHECK(cache.sync(1, 4 * kSecond) == 4 * kSecond + kMs);
    CHECK(cache.write(1'000, 4 * kSecond) == 4 * kSecond + 2 * kMs);
}

TEST_CASE("write-back of a prediction: what is old is written, what goes away is not") {
    StorageModel m = slow();
    m.dirty_expire_ns = 10 * kSecond;
    WriteBack cache(m);
    CHECK(cache.dirty(1, -1, 4'000'000, 0) == 0);
    CHECK(cache.dirty(1, -1, 1'000'000, 9 * kSecond) == 9 * kSecond);  // as old as the file's oldest
    CHECK(cache.sync(1, 12 * kSecond) == 15 * kSecond);                // written from 10 s on
    CHECK(cache.dirty(2, -1, 1'000'000, 20 * kSecond) == 20 * kSecond);
    cache.drop(2, 21 * kSecond);
    CHECK(cache.sync_all(40 * kSecond) == 40 * kSecond);
    CHECK(cache.dirty(2, -1, 1'000, 40 * kSecond) == 40 * kSecond);
    CHECK(cache.sync(2, 40 * kSecond) == 40 * kSecond + kMs);
}

TEST_CASE("write-back of a prediction: beyond the thresholds the kernel writes, then writers are held up") {
    StorageModel m = slow();
    m.dirty_background_bytes = 1'000'000;
    m.dirty_bytes = 3'000'000;
    WriteBack cache(m);
    CHECK(cache.dirty(1, -1, 1'000'000, 0) == 0);
    CHECK(cache.dirty(2, -1, 500'000, 0) == 0);  // half of a second's worth of file 1 is sent
    CHECK(cache.sync(1, 0) / kMs == 999);        // its other half follows, in whole pages
    CHECK(cache.dirty(2, -1, 500'000, kSecond) == kSecond);
    // 1 MB dirty and up to 1 MB on its way go freely.
    CHECK(cache.dirty(2, -1, 1'000'000, kSecond) == kSecond);
    CHECK(cache.dirty(2, -1, 500'000, kSecond) == kSecond + kSecond / 2);
    CHECK(cache.dirty(2, -1, 100'000, 10 * kSecond) == 10 * kSecond);
    m.dirty_bytes = 0;  // not known
    CHECK(cache.dirty(2, -1, 100'000'000, 10 * kSecond) == 10 * kSecond);
}

TEST_CASE("write-back of a prediction: pages that lie apart are requests of their own") {
    StorageModel m = slow();
    m.write_bytes_per_s = 1e12;
    m.writes_per_s = 100;
    m.request_bytes = 8'192;
    WriteBack cache(m);
    constexpr int64_t kRequest = kSecond / 100;
    for (int64_t i = 0; i < 5; ++i) {
        CHECK(cache.dirty(1, i << 20, 4'096, 0) == 0);
        CHECK(cache.dirty(1, i << 20, 4'096, 0) == 0);  // again, before it is written
    }
    CHECK(cache.first_page_ns(1) == kRequest);
    CHECK(cache.sync(1, 0) == 5 * kRequest);
    CHECK(cache.first_page_ns(1) == 0);
    // Neighbours share one, up to its size.
    for (int64_t i = 0; i < 5; ++i) {
        cache.dirty(1, i * 4'096, 4'096, kSecond);
    }
    CHECK(cache.sync(1, kSecond) == kSecond + 3 * kRequest);
    // Files of their own.
    for (FileId file = 2; file < 9; ++file) {
        cache.dirty(file, 0, 100, 2 * kSecond);
    }
    CHECK(cache.sync_all(2 * kSecond) == 2 * kSecond + 7 * kRequest);
    CHECK(cache.write(20'000, 3 * kSecond) == 3 * kSecond + 3 * kRequest);
    // What is sent early, and what is left of it.
    m.dirty_background_bytes = 8'192;
    WriteBack early(m);
    for (int64_t i = 0; i < 4; ++i) {
        early.dirty(1, i << 20, 4'096, 0);
    }
    CHECK(early.sync(1, 0) == 4 * kRequest);
    CHECK(early.dirty(1, INT64_MAX, INT64_MAX, 0) >= 0);  // malformed
}

struct Rows {
    FileId add(std::string_view path, uint64_t inode, Origin origin, FileType type = FileType::regular) {
        FileRow row;
        row.path = tables.strings.intern(path);
        row.inode = inode;
        row.device = 1;
        row.origin = origin;
        row.type = type;
        tables.files.push_back(row);
        return static_cast<FileId>(tables.files.size() - 1);
    }
    Tables tables;
};

TEST_CASE_FIXTURE(Rows, "a file's data in a prediction: links from before, renames, links, removals") {
    const FileId a = add("/a", 7, Origin::existed), b = add("/b", 7, Origin::existed);
    const FileId c = add("/c", 7, Origin::created);  // the inode of a removed file, used again
    const FileId plain = add("/plain", 0, Origin::existed), other = add("/other", 0, Origin::existed);
    VirtualData data(tables);
    CHECK(data.of(b) == a);
    CHECK(data.of(c) == c);
    CHECK(data.of(other) == other);
    data.renamed(plain, other);
    CHECK(data.of(other) == plain);
    data.linked(a, c);
    CHECK(data.of(c) == a);
    CHECK_FALSE(data.removed(c));
    CHECK(data.removed(a));
    CHECK(data.removed(other));
    CHECK(data.of(1'000'000) == 1'000'000);
    data.renamed(1'000'000, 2'000'000);
    data.renamed(a, 2'000'000);
}

TEST_CASE_FIXTURE(Rows, "a file's data in a prediction: a directory takes what lies below it along") {
    const FileId from = add("/run/tmp", 2, Origin::created, FileType::directory);
    const FileId weights = add("/run/tmp/weights", 3, Origin::created);
    const FileId beside = add("/run/tmp-weights", 4, Origin::created);
    const FileId to = add("/run/final", 2, Origin::created, FileType::directory);
    const FileId moved = add("/run/final/weights", 3, Origin::created);
    const FileId same = add("/run/final/beside", 4, Origin::created);
    VirtualData data(tables);
    CHECK(data.of(moved) == moved);
    data.renamed(from, to);
    CHECK(data.of(moved) == weights);
    CHECK(data.of(same) == same);
    CHECK(data.of(beside) == beside);
}

}  // namespace
}  // namespace reprise
