// SPDX-License-Identifier: MIT
// Small logs and pictures of trees for the tests of preparation.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "replay/prepare/prepare.h"
#include "tests/support.h"

namespace reprise::test {

/// Writes a log row by row; every op succeeds unless it says otherwise.
class LogBuilder {
public:
    explicit LogBuilder(const std::filesystem::path& path) : path_(path), writer_(path, first_header()) {
        task_ = writer_.add_task({.process = writer_.add_process({.pid = 1, .command = 0}), .tid = 1, .name = 0});
    }

    FileId file(std::string_view path, uint64_t size = 0, Origin origin = Origin::existed,
                FileType type = FileType::regular, uint32_t mode = 0, std::string_view target = {}) {
        FileRow row;
        row.path = writer_.intern(path);
        row.size = size;
        row.size_exact = true;
        row.type = type;
        row.role = Role::dataset;
        row.origin = origin;
        row.mode = mode;
        if (!target.empty()) {
            row.target = writer_.intern(target);
        }
        return writer_.add_file(row);
    }
    FileId directory(std::string_view path, Origin origin = Origin::existed, uint32_t mode = 0) {
        return file(path, 0, origin, FileType::directory, mode);
    }
    FileId row(FileRow row, std::string_view path) {
        row.path = writer_.intern(path);
        return writer_.add_file(row);
    }

    HandleId open(FileId file, int flags, int64_t result = 3) {
        Op op;
        op.kind = OpKind::open;
        op.file = file;
        op.flags = flags;
        op.mode = 0644;
        op.handle = result < 0 ? 0 : writer_.add_handle({.file = file, .flags = flags});
        add(op, result);
        return op.handle;
    }
    void write(HandleId handle, int64_t offset, int64_t size) {
        Op op;
        op.kind = OpKind::pwrite;
        op.handle = handle;
        op.offset = offset;
        op.size = size;
        add(op, size);
    }
    /// Any op on paths.
    void named(OpKind kind, FileId file, FileId file2 = 0, int64_t size = 0, int64_t mode = 0, int64_t result = 0,
               int64_t flags = 0) {
        Op op;
        op.flags = flags;
        op.kind = kind;
        op.file = file;
        op.file2 = file2;
        op.size = size;
        op.mode = mode;
        add(op, result);
    }
    StringId text(std::string_view text) { return writer_.intern(text); }
    /// `size`: of the buffer or the value.
    void attribute(OpKind kind, FileId file, StringId name, int64_t size, int64_t result) {
        Op op;
        op.kind = kind;
        op.file = file;
        op.text = name;
        op.size = size;
        add(op, result);
    }
    void add(Op op, int64_t result = 0) {
        op.begin = ++time_ * 1000;
        op.duration = 500;
        op.result = result;
        writer_.append(task_, op);
    }
    HandleId handle(const HandleRow& row) { return writer_.add_handle(row); }
    /// As it is written in the end.
    Header& header() { return writer_.header(); }
    void keep(Derived known) { writer_.keep(std::move(known)); }
    LogReader finish() {
        writer_.finish();
        return LogReader(path_);
    }

private:
    static Header first_header() {
        Header header;
        header.source = "test";
        return header;
    }
    std::filesystem::path path_;
    LogWriter writer_;
    TaskId task_ = 0;
    int64_t time_ = 0;
};

inline void picture_into(std::map<std::string, std::string>& out, const std::filesystem::path& top,
                         const std::filesystem::path& relative) {
    for (const auto& item : std::filesystem::directory_iterator(top / relative)) {
        const auto name = relative / item.path().filename();
        if (name == std::filesystem::path(kMarkerName)) {
            continue;
        }
        struct stat status {};
        REQUIRE(::lstat(item.path().c_str(), &status) == 0);
        std::string text = std::to_string(status.st_mode);
        if (S_ISREG(status.st_mode)) {
            const std::string bytes = read_file(item.path());
            text += " " + std::to_string(bytes.size()) + " " + std::to_string(std::hash<std::string>()(bytes));
        } else if (S_ISLNK(status.st_mode)) {
            text += " -> " + std::filesystem::read_symlink(item.path()).string();
        }
        out[name.string()] = text;
        if (S_ISDIR(status.st_mode)) {
            picture_into(out, top, name);
        }
    }
}

/// Every path below `top` but the marker, with type, mode, size, hash of the bytes or target.
inline std::map<std::string, std::string> picture(const std::filesystem::path& top) {
    std::map<std::string, std::string> out;
    picture_into(out, top, "");
    return out;
}

/// Checks and runs. Whether it was complete.
inline bool prepare(const LogReader& log, PrepareOptions options) {
    options.threads = options.threads == 0 ? 2 : options.threads;
    Preparation preparation(log, std::move(options));
    preparation.check();
    WriteState state;
    return preparation.run(state, {});
}

/// The message of the Error that prepare ends with, after its exit code; empty where it does not.
inline std::string refusal(const LogReader& log, PrepareOptions options) {
    try {
        prepare(log, std::move(options));
    } catch (const Error& error) {
        return std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
    return {};
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace reprise::test
