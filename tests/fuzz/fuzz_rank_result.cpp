// SPDX-License-Identifier: MIT
// Any bytes as what a rank tells rank 0 after a run, and such words with some bytes changed: refused, or a result and
// sums that pack and unpack again. The first byte chooses.
#include <memory>

#include "analyze/run_sums.h"
#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

using namespace reprise;

const Tables& tables() {
    static const auto made = [] {
        auto of = std::make_unique<Tables>();
        for (int i = 0; i < 4; ++i) {
            of->processes.push_back({.pid = i});
        }
        return of;
    }();
    return *made;
}

Bytes packed(const RankPlace& place, const ReplayResult& result, const RunSums& sums) {
    Bytes out;
    pack(place, out);
    pack(result, out);
    pack(sums, out);
    return out;
}

const Bytes& good() {
    static const Bytes made = [] {
        RankPlace place;
        place.row.host = "node1";
        place.boot = "boot";
        ReplayResult result;
        result.latency.resize(kOpKindLimit);
        result.latency[static_cast<size_t>(OpKind::pread)].add(1'000, 3);
        result.rank_waits = {1, 2};
        result.rank_holds.emplace_back().ns = 3;
        result.notes = {"a note"};
        result.examples.emplace_back().path = "/data";
        result.open_loops.emplace_back().name = "loop";
        result.counters.push_back({"a_counter", Severity::note, 3, "meaning"});
        result.interval = TimeInterval{1, 2, {{error_source_name("CPU speed"), 1.5, 2.5}}};
        result.cache.emplace().stayed.push_back({"a", 1, "mapped"});
        result.verified.emplace().unchecked["why"] = 3;
        result.epochs.emplace_back().device_bytes = 7;
        result.queues.queues.emplace_back().readers = {1, 2};
        FigureCounter recorded(tables()), here(tables());
        AcceleratorObserver recorded_use(tables()), here_use(tables());
        RunSums sums{sums_of(recorded, recorded_use), sums_of(here, here_use), {1, 2}};
        sums.here.use.devices.emplace_back().epochs.emplace_back();
        sums.here.figures.requests.rings.emplace_back();
        return packed(place, result, sums);
    }();
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    Bytes bytes(data + 1, data + size);
    if ((data[0] & 1) != 0) {
        bytes = good();
        for (size_t i = 1; i + 2 < size; i += 3) {
            bytes[(data[i] << 8 | data[i + 1]) % bytes.size()] ^= data[i + 2];
        }
    }
    ByteReader in(bytes);
    RankPlace place;
    ReplayResult result;
    RunSums sums;
    try {
        place = unpack_place(in);
        result = unpack_result(in);
        sums = unpack_sums(in, tables());
    } catch (const Corrupt&) {
        fuzz::require(size != 1 || (data[0] & 1) == 0, "what was packed can be unpacked");
        return 0;
    }
    const Bytes once = packed(place, result, sums);
    ByteReader again(once);
    const RankPlace same_place = unpack_place(again);
    const ReplayResult same_result = unpack_result(again);
    const RunSums same_sums = unpack_sums(again, tables());
    fuzz::require(again.left() == 0, "what was packed unpacks whole");
    fuzz::require(packed(same_place, same_result, same_sums) == once, "what was unpacked packs to the same bytes");
    return 0;
}
