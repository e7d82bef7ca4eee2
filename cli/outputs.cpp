// SPDX-License-Identifier: MIT
#include "cli/outputs.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "formats/oplog/unfinished.h"
#include "formats/support/error.h"
#include "formats/support/new_file.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

/// Links followed as far as the path exists.
fs::path resolved(const fs::path& path) {
    std::error_code error;
    const fs::path found = fs::weakly_canonical(fs::absolute(path, error), error);
    return error ? path.lexically_normal() : found;
}

}  // namespace

void check_log_name(const fs::path& path) {
    if (path.empty()) {
        throw usage_error("-o names no file", "name the op log to write");
    }
    if (path == "-") {
        throw usage_error("an op log cannot be written to standard output",
                          "name a file with -o; reprise dump prints a log as text");
    }
}

void check_log_output(const fs::path& path, bool overwrite) {
    check_log_name(path);
    check_output(path, overwrite);
    std::error_code ignored;
    const fs::file_status there = fs::status(path, ignored);
    if (fs::exists(there) && !fs::is_regular_file(there)) {
        throw usage_error(escape_line(path.native()) + " is not a regular file; an op log cannot be written to it",
                          "name a regular file with -o");
    }
    check_directory_of(path);
    check_unfinished_log(path);
}

void check_directory_of(const fs::path& path) {
    std::error_code ignored;
    const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!fs::is_directory(directory, ignored)) {
        throw machine_error(escape_line(path.native()) + " cannot be written: " + escape_line(directory.native()) +
                                " is not a directory",
                            "create the directory, or choose another file");
    }
}

void check_outside_root(const fs::path& path, std::string_view shown, const po::variables_map& values) {
    if (values.count("root") == 0) {
        return;
    }
    const fs::path root = resolved(values["root"].as<std::string>());
    if (root == root.root_path()) {
        return;  // everything is below it
    }
    const fs::path to = resolved(path);
    if (std::mismatch(root.begin(), root.end(), to.begin(), to.end()).first == root.end()) {
        throw usage_error(std::string(shown) + " is in the replay root " +
                              escape_line(values["root"].as<std::string>()) +
                              ", where it could replace a file of the job",
                          "choose a file outside the root");
    }
}

}  // namespace reprise::cli
