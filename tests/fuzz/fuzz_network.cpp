// SPDX-License-Identifier: MIT
// Any text as the network of `predict --network`: refused, or numbers with which every all-reduce takes a time.
#include "replay/cluster/network.h"

#include <cmath>

#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const fuzz::MemoryFile file(data, size);
    NetworkModel model;
    try {
        model = read_network_model(file.path());
    } catch (const Error&) {
        return 0;
    }
    fuzz::require(model.overlap >= 0 && model.overlap <= 1, "the overlap is a share");
    for (const uint64_t hosts : {uint64_t{1}, uint64_t{2}, uint64_t{1'250}}) {
        const double ns = model.all_reduce_ns(hosts * 8, hosts);
        fuzz::require(std::isfinite(ns) && ns >= 0, "an all-reduce takes a time");
    }
    return 0;
}
