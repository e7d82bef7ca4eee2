// SPDX-License-Identifier: MIT
// Any bytes as two parts of a run's log, joined in pieces: an error, or a log that can be read.
#include <algorithm>
#include <cstring>

#include "formats/oplog/join.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

using namespace reprise;

ByteSource pieces(const uint8_t* data, size_t size) {
    return [=, at = size_t{0}](std::span<uint8_t> into) mutable {
        const size_t n = std::min({into.size(), size - at, size_t{777}});
        std::memcpy(into.data(), data + at, n);
        at += n;
        return n;
    };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto path = fuzz::scratch() / "joined.oplog";
    for (const bool recover : {false, true}) {
        LogJoin join(path, {.sync = false, .recover = recover});
        bool joined = false;
        try {
            join.add("whole", pieces(data, size));
            join.add("again", pieces(data, size));  // refused where it has ops
        } catch (const Error&) {
        }
        try {
            static_cast<void>(join.header());
            join.finish();
            joined = true;
        } catch (const Error&) {
        } catch (const std::logic_error&) {  // no part
        }
        if (!joined) {
            join.discard();
            continue;
        }
        try {
            fuzz::read_all(LogReader(path, {.verify_checksums = false}), false);
        } catch (const Error&) {  // blocks are not decoded when they are copied
        }
    }
    return 0;
}
