// SPDX-License-Identifier: MIT
// What the fuzzers share: bytes as a file, a folder for outputs, and reading a log to its last field.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/import/importer.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"

namespace reprise::fuzz {

/// The input as a file in memory.
class MemoryFile {
public:
    MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
        if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) {
            std::abort();
        }
    }
    ~MemoryFile() { close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

/// For outputs; in memory where possible, removed at exit.
inline const std::filesystem::path& scratch() {
    static const std::filesystem::path folder = [] {
        const std::filesystem::path shm = "/dev/shm";
        std::string pattern =
            (std::filesystem::is_directory(shm) ? shm : std::filesystem::temp_directory_path()) / "reprise-fuzz-XXXXXX";
        if (!mkdtemp(pattern.data())) {
            std::abort();
        }
        return std::filesystem::path(pattern);
    }();
    static const int at_exit = std::atexit([] {
        std::error_code ignored;
        std::filesystem::remove_all(scratch(), ignored);
    });
    static_cast<void>(at_exit);
    return folder;
}

inline void require(bool holds, const char* what) {
    if (holds) {
        return;
    }
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

/// Decodes every block both ways and touches every field. Throws Error.
/// `ordered`: the log was written by us, so that its ops must be in order, too.
inline uint64_t read_all(const LogReader& log, bool ordered) {
    const Tables& tables = log.tables();
    uint64_t sum = 0, ops = 0;
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        require(block.count() == where.ops, "a block holds as many ops as the index says");
        int64_t before = INT64_MIN;
        for (size_t i = 0; i < block.count(); ++i) {
            const Op op = block.row(i);
            require(is_op(static_cast<uint8_t>(op.kind)), "kinds are of the table");
            require(!ordered || op.begin >= before, "ops of a task are in the order of their begin");
            before = op.begin;
            require(op.handle < tables.handles.size() && op.handle2 < tables.handles.size(),
                    "handles are of the table");
            require(op.file < tables.files.size() && op.file2 < tables.files.size(), "files are of the table");
            require(op.text < tables.strings.size() && op.peer < tables.tasks.size(),
                    "strings and tasks are of the table");
            for (const int64_t value : op.list) {
                sum += static_cast<uint64_t>(value);
            }
            for (const Edge& edge : op.edges) {
                sum += edge.op + edge.task;
            }
            sum += static_cast<uint64_t>(data_bytes(op)) + tables.path(tables.file_of(op)).size();
            ++ops;
        }
    }
    require(ops == log.op_count(), "the blocks hold all ops");
    uint64_t visited = 0;
    log.for_each_in_time([&](TaskId, const Op&, uint64_t) { ++visited; });
    require(visited == ops, "a visit in time order sees all ops");
    return sum;
}

/// Imports the bytes by one importer. An Error is a fine answer; a log that cannot be read back is not.
inline int import_bytes(const char* importer, const uint8_t* data, size_t size) {
    const MemoryFile input(data, size);
    const std::filesystem::path inputs[] = {input.path()};
    const std::filesystem::path output = scratch() / "out.oplog";
    ImportOptions options;
    options.writer.sync = false;
    options.writer.memory_bytes = size_t{1} << 20;
    options.all_spans = true;
    options.run_programs = false;
    try {
        find_importer(inputs, importer).import(inputs, output, options);
    } catch (const Error&) {
        require(!std::filesystem::exists(output.native() + ".partial"), "a refusal leaves no .partial behind");
        return 0;
    }
    read_all(LogReader(output), true);
    std::filesystem::remove(output);
    return 0;
}

}  // namespace reprise::fuzz
