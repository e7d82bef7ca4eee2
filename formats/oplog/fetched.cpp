// SPDX-License-Identifier: MIT
#include "formats/oplog/fetched.h"

#include <string>
#include <string_view>
#include <utility>

#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr std::string_view kName = "fetched";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostPages = UINT64_MAX / RangeSet::kPage;

}  // namespace

Derived encode_fetched(const FetchedPages& fetched) {
    Derived out{std::string(kName), kVersion, {}};
    put_varint(out.bytes, fetched.size());
    FileId last = 0;
    for (const auto& [file, pages] : fetched) {
        put_varint(out.bytes, file - last);
        last = file;
        put_varint(out.bytes, pages.ranges().size());
        uint64_t before = 0;
        for (const auto& [from, to] : pages.ranges()) {
            put_varint(out.bytes, (from - before) / RangeSet::kPage);
            put_varint(out.bytes, (to - from) / RangeSet::kPage);
            before = to;
        }
    }
    return out;
}

FetchedPages decode_fetched(ByteView bytes, size_t files) {
    ByteReader in(bytes);
    FetchedPages fetched;
    uint64_t file = 0;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        const uint64_t step = in.varint();
        if (step == 0 || step >= files || file + step >= files) {
            throw Corrupt("a file that is not in the log");
        }
        file += step;
        RangeSet& pages = fetched[static_cast<FileId>(file)];
        uint64_t at = 0;
        for (size_t ranges = in.count(in.left()); ranges > 0; --ranges) {
            const uint64_t gap = in.varint(), length = in.varint();
            if (gap > kMostPages - at || length == 0 || length > kMostPages - at - gap) {
                throw Corrupt("a range beyond the end of any file");
            }
            pages.add((at + gap) * RangeSet::kPage, (at + gap + length) * RangeSet::kPage);
            at += gap + length;
        }
    }
    if (in.left() != 0) {
        throw Corrupt("bytes are left over at its end");
    }
    return fetched;
}

std::optional<FetchedPages> fetched_pages(const LogReader& log) {
    const std::optional<Derived> stored = log.derived(kName);
    if (!stored || stored->version != kVersion) {
        return std::nullopt;
    }
    try {
        return decode_fetched(stored->bytes, log.tables().files.size());
    } catch (const Corrupt& problem) {
        throw bad_input(log.path().string(), std::string("what it holds of the page cache: ") + problem.what(),
                        "capture again");
    }
}

void copy_fetched(const LogReader& from, LogWriter& to) {
    if (std::optional<Derived> stored = from.derived(kName)) {
        to.keep(std::move(*stored));
    }
}

}  // namespace reprise
