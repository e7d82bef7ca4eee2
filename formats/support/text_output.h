// SPDX-License-Identifier: MIT
// Text files written in passing: exports, dumps.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace reprise {

/// Writes FILE by way of FILE.partial and rename; compressed where FILE ends in ".gz"; "-" is standard output. A
/// device, pipe or socket is written to as it is, never replaced. Append to `text` and call drain() after each line:
/// memory stays bounded. Throws Error (machine) where writing fails. Destroyed without finish() it removes the .partial
/// file.
class TextOutput {
public:
    explicit TextOutput(std::filesystem::path path);
    ~TextOutput();
    TextOutput(const TextOutput&) = delete;
    TextOutput& operator=(const TextOutput&) = delete;

    std::string text;
    void drain() {
        if (text.size() >= kFull) {
            write_out(false);
        }
    }
    void put(std::string_view bytes) {
        text += bytes;
        drain();
    }
    void finish();
    const std::filesystem::path& path() const { return path_; }

private:
    static constexpr size_t kFull = size_t{1} << 18;
    void write_out(bool last);

    struct Sink;
    std::filesystem::path path_;
    std::unique_ptr<Sink> sink_;
};

}  // namespace reprise
