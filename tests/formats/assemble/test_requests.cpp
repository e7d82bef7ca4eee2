// SPDX-License-Identifier: MIT
// Asynchronous requests: what they tell of the files that they read.
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {

TEST_CASE("requests: a file that was open before is as long as their reads reach") {
    Feeder f;
    uint32_t number = 0;
    const auto read = [&](int32_t fd, int64_t offset, int64_t size, int64_t got) {
        RawCall call = f.raw(OpKind::uring_submit, 0);
        call.fd = fd;
        call.arg = 22;  // IORING_OP_READ
        call.offset = offset;
        call.size = size;
        call.request = ++number;
        f.assembler.call(call);
        RawCall done = f.raw(OpKind::uring_complete, got);
        done.size = size;
        done.request = number;
        f.assembler.call(done);
    };
    for (const int32_t fd : {3, 4, 5}) {
        f.open("/q/" + std::to_string(fd), fd);
    }
    read(3, 8'192, 4'096, 4'096);
    read(3, 0, 4'096, 4'096);
    read(4, 8'192, 4'096, 100);  // ended there
    read(5, 4'096, 4'096, -5);
    read(5, -1, 4'096, 4'096);  // at its position
    const auto log = f.finish();
    CHECK(log.file("/q/3").size == 12'288);
    CHECK_FALSE(log.file("/q/3").size_exact);
    CHECK(log.file("/q/4").size == 8'292);
    CHECK(log.file("/q/5").size == 0);
}

}  // namespace reprise::test
