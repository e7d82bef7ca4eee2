// SPDX-License-Identifier: MIT
#include "formats/oplog/cached_pages.h"

#include <string>
#include <string_view>
#include <utility>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kFetched = "fetched", kRefetched = "refetched", kCached = "cached", kHoles = "holes",
                           kHolesBefore = "holes_before";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostPages = UINT64_MAX / RangeSet::kPage;

/// `put(value, bytes)` writes what a file has.
template <class Map, class Put>
Derived encode(std::string_view name, const Map& by_file, Put put) {
    Derived out{std::string(name), kVersion, {}};
    put_varint(out.bytes, by_file.size());
    FileId last = 0;
    for (const auto& [file, value] : by_file) {
        put_varint(out.bytes, file - last);
        last = file;
        put(value, out.bytes);
    }
    return out;
}

/// `take(in, value)` reads what `put` wrote.
template <class Map, class Take>
Map decode(ByteView bytes, size_t files, Take take) {
    ByteReader in(bytes);
    Map out;
    FileId file = 0;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        const uint64_t step = in.varint();
        if (step == 0 || step >= files || file + step >= files) {
            throw Corrupt("a file that is not in the log");
        }
        file += static_cast<FileId>(step);
        take(in, out[file]);
    }
    if (in.left() != 0) {
        throw Corrupt("bytes are left over at its end");
    }
    return out;
}

template <class Decode>
auto decoded(const LogReader& log, std::string_view name, Decode decode) {
    return stored_derived(log, name, kVersion, "what it holds of the page cache", "capture again",
                          [&](ByteView bytes) { return decode(bytes, log.tables().files.size()); });
}

void put_ranges(const RangeSet& pages, Bytes& out) {
    put_varint(out, pages.count());
    uint64_t before = 0;
    for (const auto& [from, to] : pages.ranges()) {
        put_varint(out, (from - before) / RangeSet::kPage);
        put_varint(out, (to - from) / RangeSet::kPage);
        before = to;
    }
}

void take_ranges(ByteReader& in, RangeSet& pages) {
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

void put_count(uint64_t pages, Bytes& out) { put_varint(out, pages); }

void take_count(ByteReader& in, uint64_t& pages) {
    pages = in.varint();
    if (pages > kMostPages) {
        throw Corrupt("more pages than any file has");
    }
}

}  // namespace

Derived encode_fetched(const FetchedPages& fetched) { return encode(kFetched, fetched, put_ranges); }

FetchedPages decode_fetched(ByteView bytes, size_t files) { return decode<FetchedPages>(bytes, files, take_ranges); }

std::optional<FetchedPages> fetched_pages(const LogReader& log) { return decoded(log, kFetched, decode_fetched); }

Derived encode_refetched(const RefetchedPages& pages) { return encode(kRefetched, pages, put_count); }

RefetchedPages decode_refetched(ByteView bytes, size_t files) {
    return decode<RefetchedPages>(bytes, files, take_count);
}

std::optional<RefetchedPages> refetched_pages(const LogReader& log) {
    return decoded(log, kRefetched, decode_refetched);
}

Derived encode_cached(const CachedPages& cached) { return encode(kCached, cached, put_count); }

CachedPages decode_cached(ByteView bytes, size_t files) { return decode<CachedPages>(bytes, files, take_count); }

std::optional<CachedPages> cached_pages(const LogReader& log) { return decoded(log, kCached, decode_cached); }

bool passes_page_cache(const FetchedPages& fetched, const std::optional<CachedPages>& cached, FileId file) {
    const auto seen = cached ? cached->find(file) : CachedPages::const_iterator{};
    return cached && seen != cached->end() && seen->second == 0 && !fetched.contains(file);
}

Derived encode_holes(const Holes& holes) { return encode(kHoles, holes, put_ranges); }

Holes decode_holes(ByteView bytes, size_t files) { return decode<Holes>(bytes, files, take_ranges); }

Holes recorded_holes(const LogReader& log) { return decoded(log, kHoles, decode_holes).value_or(Holes()); }

Derived encode_holes_before(const Holes& holes) { return encode(kHolesBefore, holes, put_ranges); }

Holes holes_before(const LogReader& log) { return decoded(log, kHolesBefore, decode_holes).value_or(Holes()); }

bool keeps_holes(const FileRow& row) {
    return row.type == FileType::regular && row.origin != Origin::created && row.origin != Origin::absent &&
           row.role != Role::program && row.role != Role::system && row.role != Role::ipc && row.size >= kLeastHoles;
}

void copy_page_cache(const LogReader& from, LogWriter& to) {
    for (const std::string_view name : {kFetched, kRefetched, kCached, kHoles, kHolesBefore}) {
        if (std::optional<Derived> stored = from.derived(name)) {
            to.keep(std::move(*stored));
        }
    }
}

}  // namespace reprise
