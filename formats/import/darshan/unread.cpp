// SPDX-License-Identifier: MIT
#include "formats/import/darshan/unread.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "formats/support/error.h"
#include "formats/support/path.h"

namespace reprise::darshan {
namespace {

constexpr uint64_t kSmall = uint64_t{1} << 20;
constexpr std::string_view kSettings[] = {".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".xml"};

// Settings are only read, as a data set is, and get its role.
bool holds_settings(std::string_view path, uint64_t bytes_read) {
    if (path.find("/.") != path.npos) {
        return true;
    }
    return bytes_read < kSmall && std::any_of(std::begin(kSettings), std::end(kSettings),
                                              [&](std::string_view ending) { return path.ends_with(ending); });
}

// The first path of the command line that speaks of data and below which no file was used; empty: none.
std::string named_data(const Lines& lines) {
    for (const Log& log : lines.logs) {
        const std::string& words = log.command;
        for (size_t at = words.find('/'); at != words.npos; at = words.find('/', at)) {
            const size_t end = std::min(words.find_first_of(" \t'\",;:", at), words.size());
            const bool begins = at == 0 || words[at - 1] == ' ' || words[at - 1] == '=';
            std::string path = begins ? clean_path("/", words.substr(at, end - at)) : std::string();
            at = end;
            const std::string_view last = std::string_view(path).substr(std::min(path.rfind('/'), path.size()));
            if (last.find("data") == last.npos && path.find("/data") == path.npos) {
                continue;
            }
            const bool used = std::any_of(lines.files.begin(), lines.files.end(),
                                          [&](const File& file) { return is_or_lies_below(file.name, path); });
            if (!used) {
                return path;
            }
        }
    }
    return {};
}

}  // namespace

void count_unread(const Lines& lines, LogWriter& writer) {
    std::vector<uint64_t> bytes(lines.files.size());
    uint64_t reads = 0;
    for (const Row& row : lines.rows) {
        if (!row.writes) {
            ++reads;
            bytes[row.file] += static_cast<uint64_t>(row.length);
        }
    }
    std::unordered_map<std::string_view, uint64_t> read_of;
    for (size_t i = 0; i < lines.files.size(); ++i) {
        read_of[lines.files[i].name] = bytes[i];
    }
    const Tables& tables = writer.tables();
    const bool read = std::any_of(tables.files.begin(), tables.files.end(), [&](const FileRow& file) {
        const std::string_view path = tables.strings[file.path];
        const auto found = file.role == Role::dataset ? read_of.find(path) : read_of.end();
        return found != read_of.end() && found->second > 0 && !holds_settings(path, found->second);
    });
    if (!read) {
        const std::string named = named_data(lines);
        writer.count(Count::dataset_never_read, reads,
                     named.empty() ? "" : "; the command names " + escape_line(named) + ", where nothing was read");
    }
}

}  // namespace reprise::darshan
