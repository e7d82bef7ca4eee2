// SPDX-License-Identifier: MIT
// strace output to op logs in tests.
#pragma once

#include <string>
#include <vector>

#include "formats/import/importer.h"
#include "formats/support/error.h"
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise {
extern const Importer import_strace;
}

namespace reprise::test {

class StraceImported {
public:
    explicit StraceImported(const char* text) : StraceImported(std::string(text)) {}
    explicit StraceImported(const std::string& text) {
        write_file(dir_ / "t.strace", text);
        run({dir_ / "t.strace"});
    }
    explicit StraceImported(const std::vector<std::pair<std::string, std::string>>& files) {
        std::vector<std::filesystem::path> paths;
        for (const auto& [name, text] : files) {
            write_file(dir_ / name, text);
            paths.push_back(dir_ / name);
        }
        run(paths);
    }
    explicit StraceImported(const std::filesystem::path& path) { run({path}); }
    AssembledLog* operator->() { return &*log_; }
    AssembledLog& operator*() { return *log_; }

private:
    void run(const std::vector<std::filesystem::path>& paths) {
        import_strace.import(paths, dir_ / "out.oplog", {});
        log_.emplace(dir_ / "out.oplog");
    }
    TempDir dir_;
    std::optional<AssembledLog> log_;
};

/// One line a call, by pid 100, 1 ms apart, each 10 us long.
inline std::string strace_lines(const std::vector<std::string>& calls) {
    std::string text;
    int ms = 0;
    for (const std::string& call : calls) {
        char time[64];
        std::snprintf(time, sizeof time, "100   1700000000.%03d000 ", ms++ % 1000);
        text += time + call + " <0.000010>\n";
    }
    return text;
}

/// The message of the error that importing `text` ends with.
inline std::string strace_error(const std::string& text) {
    try {
        StraceImported log(text);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        return error.what();
    }
    return "no error";
}

}  // namespace reprise::test
