// SPDX-License-Identifier: MIT
// How far recorded files compress, as the log keeps it.
#include "formats/oplog/contents.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

namespace reprise::test {

TEST_CASE("contents: files are told apart by their last ending") {
    CHECK(content_class("/data/a.jpg") == "jpg");
    CHECK(content_class("/data/a.JPG") == "jpg");
    CHECK(content_class("data.d/a.tar.gz") == "gz");
    CHECK(content_class("/data.d/a").empty());
    CHECK(content_class("/data/.hidden").empty());
    CHECK(content_class("/data/a.").empty());
    CHECK(content_class("/data/a.b c").empty());
    CHECK(content_class("/data/a.123456789").empty());
    CHECK(content_class("").empty());
}

TEST_CASE("contents: permille of what was sampled") {
    CHECK(ContentSample{}.permille() == 1000);
    CHECK(ContentSample{1000, 250}.permille() == 250);
    CHECK(ContentSample{65536, 12}.permille() == 0);
    CHECK(ContentSample{10, 20}.permille() == 1000);
}

TEST_CASE("contents: kept in a log and copied from it") {
    const TempDir dir;
    const Contents contents{{"", {65536, 65536, 65000}}, {"csv", {1 << 20, 200'000, 300'000}}};
    JobBuilder job(dir / "job.oplog");
    job.add(job.lone_task(), {.kind = OpKind::compute, .duration = 1});
    keep_contents(contents, job.writer());
    const LogReader log = job.finish();
    CHECK(recorded_contents(log) == contents);
    JobBuilder other(dir / "copy.oplog");
    other.add(other.lone_task(), {.kind = OpKind::compute, .duration = 1});
    copy_contents(log, other.writer());
    const LogReader copy = other.finish();
    CHECK(recorded_contents(copy) == contents);
    JobBuilder without(dir / "without.oplog");
    without.add(without.lone_task(), {.kind = OpKind::compute, .duration = 1});
    CHECK_FALSE(recorded_contents(without.finish()));
    // Of recordings that did not look at lz4, or at other files.
    JobBuilder older(dir / "older.oplog");
    older.add(older.lone_task(), {.kind = OpKind::compute, .duration = 1});
    older.writer().keep(encode_contents(contents));
    older.writer().keep(encode_lz4_contents({{"csv", {5, 1, 1}}, {"jpg", {5, 1, 1}}}));
    CHECK(recorded_contents(older.finish()) == Contents{{"", {65536, 65536}}, {"csv", {1 << 20, 200'000}}});
}

TEST_CASE("contents: damaged ones are refused") {
    const Bytes good = encode_contents({{"csv", {100, 20}}}).bytes;
    CHECK(decode_contents(good).size() == 1);
    for (size_t size = 0; size < good.size(); ++size) {
        CHECK_THROWS_AS(decode_contents(ByteView(good).first(size)), Corrupt);
    }
    Bytes more = good;
    more.push_back(0);
    CHECK_THROWS_AS(decode_contents(more), Corrupt);
    CHECK_THROWS_AS(decode_contents(encode_contents({{"much too long", {1, 1}}}).bytes), Corrupt);
    CHECK_THROWS_AS(decode_contents(encode_contents({{"a", {UINT64_MAX, 1}}}).bytes), Corrupt);
}

}  // namespace reprise::test
