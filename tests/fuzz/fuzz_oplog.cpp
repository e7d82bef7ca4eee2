// SPDX-License-Identifier: MIT
// Any bytes as an op log, with and without recovery and checksums: an error or a whole read, never a crash.
#include "formats/oplog/cached_pages.h"
#include "replay/plan/stored_queues.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const fuzz::MemoryFile input(data, size);
    for (const bool recover : {false, true}) {
        for (const bool verify : {true, false}) {  // without checksums, mutations get past the door
            try {
                const LogReader log(input.path(), {.recover = recover, .verify_checksums = verify});
                fuzz::read_all(log, false);
                if (const std::optional<Derived> stored = log.derived("queues")) {
                    static_cast<void>(decode_queues(stored->bytes, log));
                }
                if (const std::optional<Derived> stored = log.derived("fetched")) {
                    static_cast<void>(decode_fetched(stored->bytes, log.tables().files.size()));
                }
                if (const std::optional<Derived> stored = log.derived("refetched")) {
                    static_cast<void>(decode_refetched(stored->bytes, log.tables().files.size()));
                }
                if (const std::optional<Derived> stored = log.derived("cached")) {
                    static_cast<void>(decode_cached(stored->bytes, log.tables().files.size()));
                }
            } catch (const Corrupt&) {
            } catch (const Error&) {
            }
        }
    }
    return 0;
}
