// SPDX-License-Identifier: MIT
// A log without the names of who made it: the same ops, sizes, times and equalities.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct AnonymizeOptions {
    /// Tokens are a keyed hash of the names, the same in every log with this key. Empty: they are numbers in the order
    /// in which this log first uses the names, and reveal nothing.
    std::string key;
    std::vector<std::string> keep;  // absolute paths; they and all below them stay as they are
    WriterOptions writer = {};
};

struct AnonymizeResult {
    uint64_t ops = 0;
    uint64_t names = 0;  // different names that were replaced
};

/// Names to tokens. A token depends on the whole name (and the key) only: equal names have equal tokens, others not.
class NameTokens {
public:
    explicit NameTokens(const AnonymizeOptions& options);
    ~NameTokens();
    NameTokens(const NameTokens&) = delete;
    NameTokens& operator=(const NameTokens&) = delete;

    /// A path, absolute or relative: component by component, with its depth, its slashes and every name's ending.
    std::string path(std::string_view path);
    /// Words apart by blanks, those with a slash as paths.
    std::string words(std::string_view text);
    /// A whole text as one name.
    std::string name(std::string_view text);
    uint64_t size() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Throws Error (machine) where `output` cannot be written. Memory is bounded by the reader's blocks and the tables.
AnonymizeResult anonymize(const LogReader& log, const std::filesystem::path& output, const AnonymizeOptions& options);

}  // namespace reprise
