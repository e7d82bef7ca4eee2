// SPDX-License-Identifier: MIT
// The registry of importers and the choice of one by content.
#include "formats/import/importer.h"

#include <algorithm>
#include <set>

#include "formats/support/error.h"

namespace reprise {

#define IMPORTER(symbol) extern const Importer symbol;
#include "formats/import/importers.def"
#undef IMPORTER

namespace {

const Importer* const importer_rows[] = {
#define IMPORTER(symbol) &symbol,
#include "formats/import/importers.def"
#undef IMPORTER
};

std::string formats_tried() {
    std::string text = "known formats:";
    for (const Importer* importer : importer_rows) {
        text.append("\n    ").append(importer->name).append(": ").append(importer->summary);
    }
    return text;
}

// What a file looks like to someone who expected a trace.
std::string look_of(std::string_view head) {
    if (head.empty()) {
        return "is empty";
    }
    const bool binary = std::any_of(head.begin(), head.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
    });
    if (binary) {
        return "is not text, and in no format that can be imported";
    }
    const std::string_view first = head.substr(0, std::min<size_t>(head.find('\n'), 80));
    return "is text in no format that can be imported; it begins with: " + escape_line(first);
}

const Importer* by_name(std::string_view name) {
    for (const Importer* importer : importer_rows) {
        if (importer->name == name) {
            return importer;
        }
    }
    return nullptr;
}

const Importer* by_content(std::string_view head) {
    for (const Importer* importer : importer_rows) {
        if (importer->sniff(head)) {
            return importer;
        }
    }
    return nullptr;
}

// A program's own output hides strace's where they went to one file.
std::string strace_within(std::string_view head) {
    const Importer& strace = *by_name("strace");
    for (size_t line = 1; !head.empty(); ++line) {
        const size_t end = std::min(head.find('\n'), head.size());
        if (strace.sniff(head.substr(0, end))) {
            return "line " + std::to_string(line) + " is strace's; to import it all the same: --from strace\n  ";
        }
        head.remove_prefix(std::min(end + 1, head.size()));
    }
    return {};
}

}  // namespace

std::span<const Importer* const> all_importers() { return importer_rows; }

const Importer& find_importer(std::span<const std::filesystem::path> inputs, std::string_view name) {
    if (!name.empty()) {
        const Importer* importer = by_name(name);
        if (!importer) {
            throw usage_error("unknown import format \"" + escape_line(name) + "\"", formats_tried());
        }
        return *importer;
    }
    const Importer* found = nullptr;
    const std::filesystem::path* first = nullptr;
    for (const auto& input : inputs) {
        const std::string head = read_head(input);
        const Importer* importer = by_content(head);
        if (!importer) {
            throw bad_input(input.native(), look_of(head),
                            strace_within(head) + formats_tried() + "\n  --from NAME reads it as one of these anyway");
        }
        if (found && found != importer) {
            throw bad_input(input.native(),
                            "is " + std::string(importer->name) + ", but " + escape_line(first->native()) + " is " +
                                std::string(found->name),
                            "import the files of one run and one format together");
        }
        found = importer;
        first = &input;
    }
    if (!found) {
        throw usage_error("no input to import", {});
    }
    return *found;
}

std::vector<std::filesystem::path> importable_files(std::span<const std::filesystem::path> inputs) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (const auto& input : inputs) {
        std::error_code error;
        const fs::file_status status = fs::status(input, error);
        if (error || status.type() == fs::file_type::not_found) {
            throw bad_input(input.native(), "cannot open: " + (error ? error.message() : "no such file"),
                            "check the path");
        }
        if (status.type() == fs::file_type::regular) {
            files.push_back(input);
        } else if (status.type() == fs::file_type::directory) {
            std::vector<fs::path> inside;
            for (const auto& entry : fs::directory_iterator(input, error)) {
                if (entry.is_regular_file() && by_content(read_head(entry.path()))) {
                    inside.push_back(entry.path());
                }
            }
            if (error) {
                throw machine_error(escape_line(input.native()) + ": cannot list: " + error.message(), {});
            }
            if (inside.empty()) {
                throw bad_input(input.native(), "holds no file in a format that can be imported", formats_tried());
            }
            std::sort(inside.begin(), inside.end());
            files.insert(files.end(), inside.begin(), inside.end());
        } else {
            throw bad_input(input.native(), "is neither a file nor a directory",
                            "an input is read twice, so pipes cannot be imported; save it to a file first");
        }
    }
    std::set<fs::path> seen;
    for (const fs::path& file : files) {
        if (!seen.insert(fs::canonical(file)).second) {
            throw usage_error(escape_line(file.native()) + " is given twice", "name each input once");
        }
    }
    return files;
}

}  // namespace reprise
