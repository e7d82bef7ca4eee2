// SPDX-License-Identifier: MIT
#include "transform/merge_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/contents.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/sockets.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

using Logs = std::vector<const LogReader*>;

std::string named(const LogReader& log) { return escape_line(log.path().string()); }

/// Throws where a log's `value` differs from the first one's.
template <class Value>
void check_same(const Logs& logs, const Value& value, const std::string& what, const std::string& todo) {
    const auto first = value(logs.front()->header());
    for (const LogReader* log : logs) {
        if (const auto other = value(log->header()); other != first) {
            throw bad_input(
                log->path().string(),
                what + " '" + escape_line(other) + "'; " + named(*logs.front()) + ": '" + escape_line(first) + "'",
                todo);
        }
    }
}

template <class Fact, class Join>
void join_numbers(Header& out, const Logs& logs, const Fact& which, const Join& join) {
    std::optional<int64_t> all;
    for (const LogReader* log : logs) {
        if (const std::optional<int64_t> one = read_fact(log->header(), which)) {
            all = all ? join(*all, *one) : *one;
        }
    }
    if (all) {
        write_fact(out, which, *all);
    }
}

/// Objects by device number; of what several say, the first.
void join_objects(Header& out, const Logs& logs, const HeaderFact<FactType::json>& which) {
    auto all = nlohmann::ordered_json::object();
    for (const LogReader* log : logs) {
        const auto one = nlohmann::ordered_json::parse(read_fact(log->header(), which).value_or("{}"), nullptr, false);
        if (one.is_object()) {
            for (const auto& [key, value] : one.items()) {
                if (!all.contains(key)) {
                    all[key] = value;
                }
            }
        }
    }
    if (!all.empty()) {
        write_fact(out, which, all.dump());
    }
}

template <class Values, class Of, class Id, class Join>
Values joined(const Logs& logs, const Of& of, const Id& id, const Join& join) {
    Values all;
    for (size_t log = 0; log < logs.size(); ++log) {
        for (const auto& [key, value] : of(*logs[log])) {
            if (const auto to = id(log, key); to != 0) {
                const auto [at, is_new] = all.try_emplace(to, value);
                if (!is_new) {
                    join(at->second, value);
                }
            }
        }
    }
    return all;
}

void keep_page_cache(const Logs& logs, const std::vector<MergedRows>& rows, LogWriter& to) {
    const auto file = [&](size_t log, FileId id) { return rows[log].file(id); };
    const auto add_ranges = [](RangeSet& all, const RangeSet& one) {
        for (const auto& [from, end] : one.ranges()) {
            all.add(from, end);
        }
    };
    const auto every = [&](const auto& of) {
        return std::all_of(logs.begin(), logs.end(), [&](const LogReader* log) { return of(*log).has_value(); });
    };
    if (every(fetched_pages)) {
        to.keep(encode_fetched(joined<FetchedPages>(
            logs, [](const LogReader& log) { return *fetched_pages(log); }, file, add_ranges)));
    }
    if (every(refetched_pages)) {
        to.keep(encode_refetched(joined<RefetchedPages>(
            logs, [](const LogReader& log) { return *refetched_pages(log); }, file,
            [](uint64_t& all, uint64_t one) { all += one; })));
    }
    if (every(cached_pages)) {
        // What a rank found may be what another had brought there.
        to.keep(encode_cached(joined<CachedPages>(
            logs, [](const LogReader& log) { return *cached_pages(log); }, file,
            [](uint64_t& all, uint64_t one) { all = std::min(all, one); })));
    }
    if (const Holes holes = joined<Holes>(logs, recorded_holes, file, add_ranges); !holes.empty()) {
        to.keep(encode_holes(holes));
    }
    if (const Holes before = joined<Holes>(logs, holes_before, file, add_ranges); !before.empty()) {
        to.keep(encode_holes_before(before));
    }
}

}  // namespace

void check_merged_ranks(const Logs& logs, bool allow_missing) {
    for (const LogReader* log : logs) {
        if (!read_fact(log->header(), fact::rank)) {
            const bool whole = read_fact(log->header(), fact::ranks).has_value();
            throw bad_input(log->path().string(),
                            whole ? "is a log of several ranks already" : "does not say which rank of a job it is",
                            "merge takes what `mpirun reprise capture` leaves: one log per rank");
        }
    }
    check_same(
        logs, [](const Header& header) { return header.tool; }, "was recorded by",
        "record all ranks with the same version of reprise");
    check_same(
        logs, [](const Header& header) { return read_fact(header, fact::ranks_job).value_or(""); }, "is of job",
        "merge the logs of one run");
    check_same(
        logs, [](const Header& header) { return std::to_string(read_fact(header, fact::ranks_world).value_or(0)); },
        "is of a job whose number of ranks is", "merge the logs of one run");
    const int64_t world = read_fact(logs.front()->header(), fact::ranks_world).value_or(0);
    int64_t expected = 0;
    for (const LogReader* log : logs) {
        const int64_t rank = *read_fact(log->header(), fact::rank);
        if (rank < expected) {
            throw bad_input(log->path().string(), "is rank " + std::to_string(rank) + ", as another log is",
                            "give the log of each rank once");
        }
        if (rank > expected && !allow_missing) {
            throw bad_input(log->path().string(),
                            "the log of rank " + std::to_string(expected) + " of " + std::to_string(world) +
                                " is not among those given",
                            "give the logs of all ranks, or --allow-missing to merge those that there are");
        }
        expected = rank + 1;
    }
    if (expected < world && !allow_missing) {
        throw bad_input(logs.back()->path().string(),
                        "the log of rank " + std::to_string(expected) + " of " + std::to_string(world) +
                            " is not among those given",
                        "give the logs of all ranks, or --allow-missing to merge those that there are");
    }
}

Header merged_header(const Logs& logs, int64_t offset_ns) {
    Header out = logs.front()->header();
    out.origin_unix_ns = out.origin_unix_ns != 0 ? out.origin_unix_ns - offset_ns : 0;
    for (const LogReader* log : logs) {
        const Header& header = log->header();
        out.time_unit_ns = std::min(out.time_unit_ns, header.time_unit_ns);
        if (!header.host.empty() && (", " + out.host + ",").find(", " + header.host + ",") == std::string::npos) {
            out.host += ", " + header.host;
        }
    }
    for (const std::string_view key : {fact::rank.key, fact::boot.key, fact::origin_monotonic.key}) {
        out.extra.erase(std::string(key));
    }
    const auto sum = [](int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; };
    const auto most = [](int64_t a, int64_t b) { return std::max(a, b); };
    for (const auto& which : {fact::taken_off, fact::dear, fact::compute, fact::stolen, fact::run_queue}) {
        join_numbers(out, logs, which, sum);
    }
    for (const auto& which :
         {fact::dear_pages, fact::pinned_tasks, fact::refetched, fact::mapped_uses_huge, fact::mapped_uses_unplaced}) {
        join_numbers(out, logs, which, sum);
    }
    for (const auto& which : {fact::peak_memory, fact::pinned_cpus, fact::sparse_files, fact::hole_bytes}) {
        join_numbers(out, logs, which, most);
    }
    for (const auto& which : {fact::longest_lag, fact::call_gap}) {
        join_numbers(out, logs, which, most);
    }
    join_objects(out, logs, fact::file_systems);
    join_objects(out, logs, fact::recorded_read_ahead);
    join_objects(out, logs, fact::uncounted_devices);
    return out;
}

void keep_merged_derived(const Logs& logs, const std::vector<MergedRows>& rows,
                         const std::function<int64_t(size_t)>& offset_ns, LogWriter& to) {
    const auto keep_first = [](auto&, const auto&) {};
    const Sockets sockets = joined<Sockets>(
        logs, recorded_sockets, [&](size_t log, HandleId id) { return rows[log].handle(id); }, keep_first);
    if (!sockets.empty()) {
        to.keep(encode_sockets(sockets));
    }
    HeldMemories held;
    for (size_t log = 0; log < logs.size(); ++log) {
        for (auto& [process, points] : held_memory(*logs[log]).value_or(HeldMemories())) {
            std::vector<HeldMemory>& into = held[rows[log].process(process)];
            for (HeldMemory point : points) {
                point.time_ns = std::max<int64_t>(point.time_ns + offset_ns(log), 0);
                into.push_back(point);
            }
        }
    }
    if (!held.empty()) {
        to.keep(encode_held_memory(held));
    }
    keep_page_cache(logs, rows, to);
    Contents contents;
    for (const LogReader* log : logs) {
        for (const auto& [name, sample] : recorded_contents(*log).value_or(Contents())) {
            ContentSample& all = contents[name];
            all.bytes += sample.bytes;
            all.compressed += sample.compressed;
            all.lz4 += sample.lz4;
        }
    }
    if (!contents.empty()) {
        keep_contents(contents, to);
    }
}

}  // namespace reprise
