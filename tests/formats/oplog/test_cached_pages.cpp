// SPDX-License-Identifier: MIT
// What a recording found in the page cache and what it fetched, in the log and out of it.
#include <doctest/doctest.h>

#include "formats/oplog/cached_pages.h"
#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr uint64_t kPage = RangeSet::kPage;

FetchedPages some() {
    FetchedPages fetched;
    fetched[2].add(0, 5 * kPage);
    fetched[2].add(9 * kPage, 10 * kPage);
    fetched[4].add(uint64_t{1} << 50, (uint64_t{1} << 50) + kPage);
    return fetched;
}

/// A log of four files that keeps `known`.
std::filesystem::path write_log(const TempDir& dir, const std::optional<Derived>& known, WriterOptions options = {}) {
    const auto path = dir / "a.oplog";
    LogWriter writer(path, Header{}, options);
    for (int i = 0; i < 4; ++i) {
        writer.add_file({.path = writer.intern("/d/" + std::to_string(i))});
    }
    if (known) {
        writer.keep(*known);
    }
    writer.finish();
    return path;
}

}  // namespace

TEST_CASE("fetched pages: kept in the log, beside what is derived of it") {
    const TempDir dir;
    WriterOptions options;
    SUBCASE("alone") {}
    SUBCASE("with something derived") {
        options.derive = [](const LogReader& log) {
            CHECK(fetched_pages(log) == some());
            return Derived{"other", 1, {1, 2, 3}};
        };
    }
    const LogReader log(write_log(dir, encode_fetched(some()), options));
    CHECK(fetched_pages(log) == some());
    CHECK(log.derived("other").has_value() == static_cast<bool>(options.derive));

    LogWriter copy(dir / "copy.oplog", Header{});
    for (size_t i = 1; i < log.tables().files.size(); ++i) {
        copy.add_file({});
    }
    copy_page_cache(log, copy);
    copy.finish();
    CHECK(fetched_pages(LogReader(dir / "copy.oplog")) == some());
    CHECK_FALSE(cached_pages(LogReader(dir / "copy.oplog")));
}

TEST_CASE("cached pages: kept in the log, copied, and refused where they cannot be that") {
    const TempDir dir;
    const CachedPages some{{1, 0}, {2, 7}, {4, uint64_t{1} << 40}};
    CHECK_FALSE(cached_pages(LogReader(write_log(dir, {}))));
    const LogReader log(write_log(dir, encode_cached(some)));
    CHECK(cached_pages(log) == some);
    CHECK_FALSE(fetched_pages(log));
    LogWriter copy(dir / "copy.oplog", Header{});
    for (size_t i = 1; i < log.tables().files.size(); ++i) {
        copy.add_file({});
    }
    copy_page_cache(log, copy);
    copy.finish();
    CHECK(cached_pages(LogReader(dir / "copy.oplog")) == some);

    const Bytes good = encode_cached(some).bytes;
    CHECK_THROWS_AS(decode_cached(good, 4), Corrupt);  // no such file
    for (size_t cut = 0; cut < good.size(); ++cut) {
        CHECK_THROWS_AS(decode_cached(ByteView(good).first(cut), 5), Corrupt);
    }
    const Bytes no_file{1, 0, 0}, longer{1, 1, 1, 1};
    CHECK_THROWS_AS(decode_cached(no_file, 5), Corrupt);
    CHECK_THROWS_AS(decode_cached(longer, 5), Corrupt);
    Bytes beyond{1, 1};
    put_varint(beyond, UINT64_MAX / kPage + 1);
    CHECK_THROWS_AS(decode_cached(beyond, 5), Corrupt);
    Derived bad = encode_cached(some);
    bad.bytes.push_back(7);
    CHECK_THROWS_AS(cached_pages(LogReader(write_log(dir, bad))), Error);
}

TEST_CASE("pages that came again: kept in the log, copied, and refused where they cannot be that") {
    const TempDir dir;
    const RefetchedPages some{{2, 7}, {4, 1}};
    CHECK_FALSE(refetched_pages(LogReader(write_log(dir, encode_cached(some)))));
    const LogReader log(write_log(dir, encode_refetched(some)));
    CHECK(refetched_pages(log) == some);
    LogWriter copy(dir / "copy.oplog", Header{});
    for (size_t i = 1; i < log.tables().files.size(); ++i) {
        copy.add_file({});
    }
    copy_page_cache(log, copy);
    copy.finish();
    CHECK(refetched_pages(LogReader(dir / "copy.oplog")) == some);
    CHECK_THROWS_AS(decode_refetched(encode_refetched(some).bytes, 4), Corrupt);  // no such file
    Derived bad = encode_refetched(some);
    bad.bytes.push_back(7);
    CHECK_THROWS_AS(refetched_pages(LogReader(write_log(dir, bad))), Error);
}

TEST_CASE("holes: kept, copied, and none where the log has none") {
    const TempDir dir;
    const Holes holes = some();
    CHECK(decode_holes(encode_holes(holes).bytes, 5) == holes);
    CHECK(recorded_holes(LogReader(write_log(dir, encode_holes(holes)))) == holes);
    CHECK(recorded_holes(LogReader(write_log(dir, {}))).empty());
    CHECK(holes_before(LogReader(write_log(dir, encode_holes_before(holes)))) == holes);
    CHECK(holes_before(LogReader(write_log(dir, encode_holes(holes)))).empty());
    CHECK(recorded_holes(LogReader(write_log(dir, encode_holes_before(holes)))).empty());
    CHECK(recorded_holes(LogReader(write_log(dir, encode_fetched(holes)))).empty());
    Derived bad = encode_holes(holes);
    bad.bytes.push_back(7);
    CHECK_THROWS_AS(recorded_holes(LogReader(write_log(dir, bad))), Error);
}

TEST_CASE("fetched pages: none is not unknown") {
    const TempDir dir;
    SUBCASE("unknown") { CHECK_FALSE(fetched_pages(LogReader(write_log(dir, {})))); }
    SUBCASE("none") {
        const auto found = fetched_pages(LogReader(write_log(dir, encode_fetched({}))));
        REQUIRE(found);
        CHECK(found->empty());
    }
    SUBCASE("a later version") {
        Derived later = encode_fetched(some());
        ++later.version;
        CHECK_FALSE(fetched_pages(LogReader(write_log(dir, later))));
    }
}

TEST_CASE("files whose file system has no page cache: seen open with no page, and none came") {
    const FetchedPages fetched = some();  // of files 2 and 4
    const CachedPages cached{{1, 0}, {2, 0}, {3, 7}};
    CHECK(passes_page_cache(fetched, cached, 1));
    CHECK_FALSE(passes_page_cache(fetched, cached, 2));
    CHECK_FALSE(passes_page_cache(fetched, cached, 3));
    CHECK_FALSE(passes_page_cache(fetched, cached, 4));  // not seen
    CHECK_FALSE(passes_page_cache(fetched, std::nullopt, 1));
}

TEST_CASE("fetched pages: damage is told") {
    const Bytes good = encode_fetched(some()).bytes;
    CHECK(decode_fetched(good, 5) == some());
    CHECK_THROWS_AS(decode_fetched(good, 4), Corrupt);  // no such file
    for (size_t cut = 0; cut < good.size(); ++cut) {
        CHECK_THROWS_AS(decode_fetched(ByteView(good).first(cut), 5), Corrupt);
    }
    Bytes longer = good;
    longer.push_back(0);
    CHECK_THROWS_AS(decode_fetched(longer, 5), Corrupt);
    const Bytes no_file{1, 0, 0}, empty_range{1, 1, 1, 0, 0};
    CHECK_THROWS_AS(decode_fetched(no_file, 5), Corrupt);
    CHECK_THROWS_AS(decode_fetched(empty_range, 5), Corrupt);
    Bytes beyond{1, 1, 1};
    put_varint(beyond, UINT64_MAX / kPage);
    put_varint(beyond, 1);
    CHECK_THROWS_AS(decode_fetched(beyond, 5), Corrupt);
    const TempDir dir;
    Derived bad = encode_fetched(some());
    bad.bytes.push_back(7);
    CHECK_THROWS_AS(fetched_pages(LogReader(write_log(dir, bad))), Error);
}

}  // namespace reprise::test
