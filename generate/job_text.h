// SPDX-License-Identifier: MIT
// The lines of a job file: sections and their words, each with the line that it is from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// What a word of words.def takes.
enum class WordValue : uint8_t {
    text,
    yes,
    count,
    bytes,
    range,
    share,
    duration,
    micros,
    sizes,
    times,
    rate,
    tokens,
    choice
};
/// In which sections it may stand.
enum class WordPlace : uint8_t {
    io = 1,
    training = 2,
    kv = 4,
    load = 8,
    prep = 16,
    open = io | kv,
    data = training | prep,
    ranked = training | load,
    accelerated = training | kv,
    written = io | prep,
    special = kv | load | prep,
    both = 31,
};
/// Whether a word of that place may stand in a section of that kind.
constexpr bool fits(WordPlace place, WordPlace kind) {
    return (static_cast<uint8_t>(place) & static_cast<uint8_t>(kind)) != 0;
}
/// "sections with rw= or workload=kv-cache"
std::string place_text(WordPlace place);
/// "io", or "io,kv"; "both": all
std::string place_names(WordPlace place);

struct WordInfo {
    std::string_view name;
    WordPlace place;
    WordValue value;
    std::string_view otherwise;  // the default; empty: none, or it follows from others
    std::string_view meaning;
};
std::span<const WordInfo> all_words();
const WordInfo* find_word(std::string_view name);

struct GivenWord {
    std::string value;
    size_t line = 0;
};

struct SectionText {
    std::string name;
    size_t line = 0;
    std::map<std::string, GivenWord> words;  // those of [global] among them
    std::map<std::string, GivenWord> own;    // without those
    WordPlace kind = WordPlace::io;
};

/// A word or value that is wrong: says where, what, and what to do.
[[noreturn]] void wrong_line(const std::string& file, size_t line, const std::string& what, const std::string& todo);

/// A file's text, as far as check_size() looks at it. Throws Error (bad_input) where it cannot be read. `what`: "job
/// file"
std::string read_text(const std::filesystem::path& file, size_t most, const std::string& what);
/// Throws Error (bad_input) for more than `most` bytes. `name`: of the file.
void check_size(std::string_view text, size_t most, const std::string& name, const std::string& what);

/// Throws Error (bad_input) for what is no job file: words that nobody knows, that do not belong into their section, or
/// stand in it twice. Words of [global] apply to the sections below that take them. `name`: of the file, in messages.
/// `accelerator`: in place of what the file says, where it has figures of several; empty: what the file says.
std::vector<SectionText> read_sections(std::string_view text, const std::string& name, std::string_view accelerator);

}  // namespace reprise
