// SPDX-License-Identifier: MIT
// Feeds an Assembler and gives back what the log holds.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/oplog/oplog.h"
#include "tests/support.h"

namespace reprise::test {

struct AssembledLog {
    struct Row {
        Op op;
        std::vector<int64_t> list;
    };
    explicit AssembledLog(const std::filesystem::path& path) : reader(path) {
        for (TaskId task = 1; task < reader.tables().tasks.size(); ++task) {
            reader.for_each(task, [&](const Op& op, uint64_t) {
                rows[task].push_back({op, {op.list.begin(), op.list.end()}});
                rows[task].back().op.list = {};
                rows[task].back().op.edges = {};
            });
        }
    }
    const Tables& tables() const { return reader.tables(); }
    std::vector<Op> ops(TaskId task = 1) const {
        std::vector<Op> out;
        if (const auto it = rows.find(task); it != rows.end()) {
            for (const Row& row : it->second) {
                out.push_back(row.op);
            }
        }
        return out;
    }
    std::vector<Op> of_kind(OpKind kind) const {
        std::vector<Op> out;
        for (const auto& [task, list] : rows) {
            for (const Row& row : list) {
                if (row.op.kind == kind) {
                    out.push_back(row.op);
                }
            }
        }
        return out;
    }
    size_t op_count() const {
        size_t n = 0;
        for (const auto& [task, list] : rows) {
            n += list.size();
        }
        return n;
    }
    std::string path_of(const Op& op) const { return std::string(tables().path(tables().file_of(op))); }
    /// All rows with this path, oldest generation first.
    std::vector<FileRow> files(std::string_view path) const {
        std::vector<FileRow> out;
        for (const FileRow& row : tables().files) {
            if (row.path && tables().strings[row.path] == path) {
                out.push_back(row);
            }
        }
        return out;
    }
    FileRow file(std::string_view path) const {
        const auto all = files(path);
        return all.empty() ? FileRow{} : all.back();
    }
    uint64_t counter(std::string_view name) const {
        for (const Counter& c : tables().counters) {
            if (c.name == name) {
                return c.value;
            }
        }
        return 0;
    }

    /// "path", or "path#2" from the second generation on; "-" for none.
    std::string name_of(FileId id) const {
        if (!id) {
            return "-";
        }
        const FileRow& row = tables().files[id];
        return std::string(tables().strings[row.path]) + (row.generation ? "#" + std::to_string(row.generation) : "");
    }
    /// One line for each op with all that the log holds of it but its times: what is 0 is left out.
    std::string text() const {
        std::string out;
        for (const auto& [task, list] : rows) {
            for (const Row& row : list) {
                out += line_of(task, row) + "\n";
            }
        }
        return out;
    }
    std::string line_of(TaskId task, const Row& row) const {
        const Op& op = row.op;
        std::string out = (task == 1 ? "" : "task " + std::to_string(task) + ": ") + std::string(info(op.kind).name);
        const auto number = [&out](const char* name, int64_t value, int64_t none) {
            if (value != none) {
                out += std::string(" ") + name + "=" + std::to_string(value);
            }
        };
        if (op.file) {
            out += " " + name_of(op.file);
        }
        if (op.file2) {
            out += " to " + name_of(op.file2);
        }
        number("handle", op.handle, 0), number("fd", op.fd, -1);
        number("handle2", op.handle2, 0), number("fd2", op.fd2, -1);
        number("offset", op.offset, 0), number("offset2", op.offset2, 0), number("size", op.size, 0);
        number("flags", op.flags, 0), number("mode", op.mode, 0), number("arg", op.arg, 0);
        number("map", op.map, 0), number("peer", op.peer, 0), number("request", op.request, 0);
        if (op.text) {
            out += " \"" + std::string(tables().strings[op.text]) + "\"";
        }
        for (const int64_t value : row.list) {
            out += " " + std::to_string(value);
        }
        return out + " = " + std::to_string(op.result);
    }
    /// One line for each file: "path type origin size mode target", without what is unknown; a size that is certain
    /// ends in "!".
    std::string files_text() const {
        std::vector<std::string> lines;
        for (FileId id = 1; id < tables().files.size(); ++id) {
            const FileRow& row = tables().files[id];
            std::string line = name_of(id);
            line += row.type != FileType::unknown ? " " + std::string(file_type_name(row.type)) : "";
            line += " " + std::string(origin_name(row.origin));
            line += row.size || row.size_exact ? " " + std::to_string(row.size) + (row.size_exact ? "!" : "") : "";
            char mode[16];
            std::snprintf(mode, sizeof mode, " 0%o", row.mode);
            line += row.mode ? mode : "";
            line += row.target ? " -> " + std::string(tables().strings[row.target]) : "";
            lines.push_back(line + "\n");
        }
        std::sort(lines.begin(), lines.end());
        std::string out;
        for (const std::string& line : lines) {
            out += line;
        }
        return out;
    }
    /// One line for each open instance: "kind file flags", and where it was first seen, if it was inherited.
    std::string handles_text() const {
        std::string out;
        for (HandleId id = 1; id < tables().handles.size(); ++id) {
            const HandleRow& row = tables().handles[id];
            out += std::to_string(id) + " " + std::string(handle_kind_name(row.kind)) + " " + name_of(row.file);
            out += row.flags ? " flags " + std::to_string(row.flags) : "";
            out += row.inherited ? " inherited " + std::to_string(row.process) + ":" + std::to_string(row.fd) : "";
            out += "\n";
        }
        return out;
    }
    /// "name value" of all counters, sorted.
    std::string counters_text() const {
        std::map<std::string, uint64_t> all;
        for (const Counter& c : tables().counters) {
            all[std::string(c.name)] += c.value;
        }
        std::string out;
        for (const auto& [name, value] : all) {
            out += name + " " + std::to_string(value) + "\n";
        }
        return out;
    }

    LogReader reader;
    std::map<TaskId, std::vector<Row>> rows;
};

/// Calls by name; time goes on by 1000 ns a call, each takes 100 ns.
class Feeder {
public:
    explicit Feeder(Assembler::Options options = {})
        : writer(dir / "a.oplog", header()), assembler(writer, std::move(options)) {}

    RawCall raw(OpKind kind, int64_t result) {
        RawCall call;
        call.pid = pid;
        call.tid = tid;
        call.kind = kind;
        call.begin = now += 1000;
        call.duration = 100;
        call.result = result;
        return call;
    }
    void open(std::string_view path, int64_t result, int64_t flags = 0, std::string_view fd_path = {}) {
        RawCall call = raw(OpKind::open, result);
        call.path = path;
        call.flags = flags;
        call.fd_path = fd_path;
        assembler.call(call);
    }
    void on_fd(OpKind kind, int32_t fd, int64_t result, int64_t size = 0, std::string_view fd_path = {}) {
        RawCall call = raw(kind, result);
        call.fd = fd;
        call.size = size;
        call.fd_path = fd_path;
        assembler.call(call);
    }
    void at(OpKind kind, int32_t fd, int64_t result, int64_t size, int64_t offset) {
        RawCall call = raw(kind, result);
        call.fd = fd;
        call.size = size;
        call.offset = offset;
        assembler.call(call);
    }
    void lseek(int32_t fd, int64_t offset, int64_t whence, int64_t result) {
        RawCall call = raw(OpKind::lseek, result);
        call.fd = fd;
        call.offset = offset;
        call.arg = whence;
        assembler.call(call);
    }
    void on_path(OpKind kind, std::string_view path, int64_t result, std::optional<uint64_t> size = {},
                 std::optional<uint32_t> mode = {}) {
        RawCall call = raw(kind, result);
        call.path = path;
        call.stat_size = size;
        call.stat_mode = mode;
        assembler.call(call);
    }
    void two(OpKind kind, std::string_view from, std::string_view to, int64_t result = 0, int64_t flags = 0) {
        RawCall call = raw(kind, result);
        call.path = from;
        call.path2 = to;
        call.flags = flags;
        assembler.call(call);
    }
    void spawn(int32_t child, int64_t flags = 17) {
        RawCall call = raw(OpKind::spawn, child);
        call.arg = child;
        call.flags = flags;
        assembler.call(call);
    }
    void as(int32_t p, int32_t t) {
        pid = p;
        tid = t;
    }
    AssembledLog finish() {
        assembler.finish();
        writer.finish();
        return AssembledLog(dir / "a.oplog");
    }

    static Header header() {
        Header h;
        h.source = "test";
        return h;
    }

    TempDir dir;
    LogWriter writer;
    Assembler assembler;
    int32_t pid = 100, tid = 100;
    int64_t now = 0;
};

}  // namespace reprise::test
