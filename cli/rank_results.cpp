// SPDX-License-Identifier: MIT
#include "cli/rank_results.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "cli/show_replay.h"
#include "formats/oplog/join.h"
#include "formats/support/bytes.h"
#include "formats/support/error.h"
#include "hosts/file_transfer.h"
#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

std::string packed(const RankPlace& place, const SeriesRun& run) {
    Bytes bytes;
    pack(place, bytes);
    pack(run.result, bytes);
    pack(run.figures->sums(), bytes);
    return {bytes.begin(), bytes.end()};
}

struct Unpacked {
    RankRun run;
    RunSums sums;
};
/// Throws Error that names the rank.
Unpacked unpacked(const std::string& bytes, const Tables& tables, const std::string& rank) {
    ByteReader in({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    try {
        Unpacked out;
        out.run.place = unpack_place(in);
        out.run.result = unpack_result(in);
        out.sums = unpack_sums(in, tables);
        if (in.left() != 0) {
            throw Corrupt("bytes are left over at its end");
        }
        return out;
    } catch (const Corrupt& problem) {
        throw machine_error(rank + " sent a result that cannot be read: " + problem.what(),
                            "run it again, and where that is no accident, report it");
    }
}

/// Size of a rank's log, as it tells the others; none: it has none.
std::optional<uint64_t> size_in(const std::string& text) {
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(size) : std::nullopt;
}

}  // namespace

void merge_ranks(Hosts& hosts, const PeerRow& mine, const LogReader& log, const fs::path& root, SeriesRun& run) {
    RankPlace place{mine, boot_id(), root.empty() ? std::string() : device_number(root)};
    place.row.rank = hosts.rank();
    place.row.host = place.row.host.empty() ? hosts.name_of(hosts.rank()) : place.row.host;
    std::vector<std::string> results;
    run.ranks = hosts.report(mine, packed(place, run), results);
    if (hosts.rank() != 0) {
        return;
    }
    std::vector<RankRun> ranks;
    std::optional<RunSums> sums;
    for (uint32_t from = 0; from < results.size(); ++from) {
        if (results[from].empty()) {
            continue;
        }
        Unpacked rank = unpacked(results[from], log.tables(), hosts.name_of(from));
        if (sums) {
            merge(*sums, rank.sums);
        } else {
            sums = std::move(rank.sums);
        }
        ranks.push_back(std::move(rank.run));
    }
    const size_t answered = ranks.size();
    if (answered < 2) {
        return;
    }
    run.result = merge_results(std::move(ranks));
    for (size_t i = 0; i < std::min(run.ranks.rows.size(), run.result.rank_waits.size()); ++i) {
        run.ranks.rows[i].held_up_ns = run.result.rank_waits[i];
    }
    if (answered < results.size()) {
        run.result.notes.push_back("The figures are of " + std::to_string(answered) + " of " +
                                   std::to_string(results.size()) + " ranks: the others did not answer.");
    }
    run.figures = std::make_unique<RunFigures>(log.tables(), std::move(*sums));
}

std::string join_logs(Hosts& hosts, const fs::path& part, const fs::path& output) {
    std::error_code error;
    const uint64_t size = fs::file_size(part, error);
    const std::vector<std::string> told = hosts.ranks().share(error ? "none" : std::to_string(size));
    std::vector<uint64_t> sizes;
    for (const std::string& one : told) {
        const std::optional<uint64_t> known = size_in(one);
        if (!known) {
            return "rank " + std::to_string(sizes.size()) + " has no log of its part; the others are kept";
        }
        sizes.push_back(*known);
    }
    std::ifstream mine(part, std::ios::binary);
    std::string lost;
    std::optional<LogJoin> join;
    const auto trying = [&](const std::function<void()>& work) {
        try {
            if (lost.empty()) {
                work();
            }
        } catch (const Error& cannot) {
            lost = cannot.what();
        }
    };
    const bool joins = hosts.rank() == 0;
    if (joins) {
        trying([&] { join.emplace(output); });
    }
    for (uint32_t rank = 0; rank < sizes.size(); ++rank) {
        FileTransfer log(hosts.ranks(), rank, sizes[rank], mine);
        if (joins) {
            trying([&] { join->add(hosts.name_of(rank), [&](std::span<uint8_t> into) { return log.take(into); }); });
        }
        log.finish();
    }
    if (joins) {
        trying([&] { join->finish(); });
    }
    if (hosts.ranks().announce(lost.empty() ? "joined" : "") == "joined") {
        fs::remove(part, error);
    }
    return lost;
}

}  // namespace reprise::cli
