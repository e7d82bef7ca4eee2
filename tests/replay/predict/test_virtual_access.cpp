// SPDX-License-Identifier: MIT
// What calls take whose access a what-if changes.
#include <sys/mman.h>

#include "tests/replay/predict/virtual_calls_fixture.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

constexpr int64_t kPage = 4096;

struct Changed : Calls {
    VirtualCalls& check_with(const AccessChange& wanted, bool warm = false) {
        change = wanted;
        return check(warm);
    }
    HandleId only_read = job.handle(file, O_RDONLY);

    void read(HandleId handle, int64_t offset, int64_t bytes, int64_t takes) {
        add({.kind = OpKind::pread, .result = bytes, .handle = handle, .fd = 3, .offset = offset, .size = bytes},
            takes);
    }
    void map() {
        add({.kind = OpKind::mmap,
             .handle = only_read,
             .fd = 3,
             .size = kMiB,
             .flags = MAP_SHARED,
             .mode = PROT_READ,
             .map = 1},
            0);
    }
    void touch(int64_t at, int64_t takes) {
        add({.kind = OpKind::touch, .offset = at, .size = kPage, .map = 1}, takes);
    }
};

}  // namespace

TEST_CASE_FIXTURE(Changed, "direct reads go to the storage each time, in whole blocks") {
    sized(file, kMiB);
    read(only_read, 0, kPage, kCall + kRead);
    read(only_read, 0, kPage, kCall + kRead);
    read(only_read, kPage - 100, 200, kCall + kRead);
    const VirtualCalls& calls = check_with({.direct = true}, true);
    CHECK_EQ(calls.storage().bytes_read, 4 * kPage);
    CHECK_EQ(calls.bytes_read, 2 * kPage + 200);
}

TEST_CASE_FIXTURE(Changed, "each write waits for the device") {
    add({.kind = OpKind::pwrite, .result = kPage, .handle = out, .fd = 3, .size = kPage},
        cached(kPage) + kPage + kSync);
    add({.kind = OpKind::pwrite, .result = kPage, .handle = out, .fd = 3, .size = kPage},
        cached(kPage) + kPage + kSync);
    check_with({.sync_writes = true});
}

TEST_CASE_FIXTURE(Changed, "touches of a mapping are reads, one after the other") {
    storage.read_ahead_bytes = storage.request_bytes = 0;
    sized(file, kMiB);
    map();
    touch(0, kCall + kRead + kPage);
    touch(kPage, kCall + kRead + kPage);
    touch(3 * kPage, 2 * (kCall + kRead + kPage));  // what lies between came with the fault before
    add({.kind = OpKind::madvise, .size = kMiB, .arg = MADV_WILLNEED, .map = 1}, 0);
    const VirtualCalls& calls = check_with({.mmap_as_read = kPage});
    CHECK_EQ(calls.bytes_read, 4 * kPage);
    CHECK_EQ(calls.touched_pages, 0);
}

TEST_CASE_FIXTURE(Changed, "touches far beyond the end of a file end there") {
    sized(file, 2 * kPage);
    map();
    add({.kind = OpKind::touch, .size = int64_t{1} << 60, .map = 1}, 2 * (kCall + kRead));
    CHECK_EQ(check_with({.direct = true, .mmap_as_read = kPage}).bytes_read, 2 * kPage);
}

TEST_CASE_FIXTURE(Changed, "direct reads in place of touches pass the cache by") {
    sized(file, kMiB);
    map();
    touch(0, kCall + kRead);
    touch(kMiB / 2 + kPage, kCall + kRead);
    CHECK_EQ(check_with({.direct = true, .mmap_as_read = kPage}, true).storage().bytes_read, 2 * kPage);
}

}  // namespace reprise::test
