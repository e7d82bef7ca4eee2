// SPDX-License-Identifier: MIT
// Reading what a log keeps as derived data (formats/FORMAT.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"
#include "formats/support/error.h"

namespace reprise {

/// `decode(bytes)` of what the log keeps under `name`. None: it keeps nothing, or of another version. Throws Error (bad
/// input), "LOG: WHAT: PROBLEM", where decode throws Corrupt.
template <class Decode>
auto stored_derived(const LogReader& log, std::string_view name, uint32_t version, std::string_view what,
                    std::string_view remedy, Decode decode) -> std::optional<decltype(decode(ByteView()))> {
    const std::optional<Derived> stored = log.derived(name);
    if (!stored || stored->version != version) {
        return std::nullopt;
    }
    try {
        return decode(ByteView(stored->bytes));
    } catch (const Corrupt& problem) {
        throw bad_input(log.path().string(), std::string(what) + ": " + problem.what(), std::string(remedy));
    }
}

}  // namespace reprise
