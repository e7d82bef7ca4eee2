// SPDX-License-Identifier: MIT
#include "experiment/row_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : ".";
}

bool is_row(const RowFile::Json& json) {
    return json.is_object() && json.contains("conditions") && json["conditions"].is_string();
}

/// The folder of `path` is empty, or `path` is as this left it, maybe killed before or in the first row. What cannot be
/// read is told where it is opened.
bool is_own(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
        return std::filesystem::is_empty(folder_of(path), error) || error;
    }
    std::ifstream in(path, std::ios::binary);
    std::string line;
    if (!in.is_open()) {
        return true;
    }
    if (!std::getline(in, line) || (in.eof() && line.starts_with('{'))) {
        return in.eof();
    }
    return !RowFile::peek(path).empty();
}

}  // namespace

std::vector<RowFile::Json> RowFile::peek(const std::filesystem::path& path) {
    std::vector<Json> rows;
    std::ifstream in(path, std::ios::binary);
    for (std::string line; std::getline(in, line);) {
        if (Json json = Json::parse(line, nullptr, false); is_row(json)) {
            rows.push_back(std::move(json));
        }
    }
    return rows;
}

RowFile::RowFile(std::filesystem::path path, const std::string& what, std::string conditions, bool fresh,
                 const std::filesystem::path& aside)
    : path_(std::move(path)), conditions_(std::move(conditions)) {
    if (!fresh && !is_own(path_)) {
        throw usage_error(escape_line(folder_of(path_).string()) + " has files, and not those of a " + what,
                          "choose another folder with -o; -f uses this one, and replaces files of the names that a " +
                              what + " writes");
    }
    file_.reset(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (!file_.valid()) {
        fail();
    }
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        throw machine_error(escape_line(path_.string()) + " is in use by another " + what,
                            "wait until it has ended, or choose another folder with -o");
    }
    if (fresh && !aside.empty()) {
        std::error_code error;
        std::filesystem::copy_file(path_, aside, std::filesystem::copy_options::overwrite_existing, error);
        if (error) {
            throw machine_error("cannot write " + escape_line(aside.string()) + ": " + error.message(),
                                "choose another folder with -o");
        }
    }
    if (fresh && ::ftruncate(file_.get(), 0) != 0) {
        fail();
    }
    std::ifstream in(path_, std::ios::binary);
    bool cut = false;  // the last line has no end
    for (std::string line; std::getline(in, line);) {
        cut = in.eof();
        Json json = Json::parse(line, nullptr, false);
        if (!json.is_object() || !json.contains("conditions") || !json["conditions"].is_string()) {
            continue;
        }
        if (const auto then = json["conditions"].get<std::string>(); then != conditions_) {
            throw usage_error(escape_line(path_.string()) + " has runs of another " + what,
                              "then: " + escape_line(then) + "\n  now:  " + escape_line(conditions_) +
                                  "\n  choose another folder with -o, or begin anew with -f");
        }
        found_.push_back(std::move(json));
    }
    if (cut) {
        write("\n");
    }
}

void RowFile::fail() const {
    throw machine_error("cannot write " + escape_line(path_.string()) + ": " + reason(errno),
                        remedy(errno, "choose another folder with -o"));
}

void RowFile::write(const std::string& text) const {
    errno = ENOSPC;  // where less is written
    if (::write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        fail();
    }
}

void RowFile::add(Json row) {
    row["conditions"] = conditions_;
    write(row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace reprise
