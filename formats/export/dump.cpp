// SPDX-License-Identifier: MIT
#include "formats/export/dump.h"

#include "formats/oplog/kernel_names.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/reap_arg.h"
#include "formats/support/escape.h"

namespace reprise {
namespace {

// key=value pairs of one line.
class Line {
public:
    explicit Line(std::string& out) : out_(out) {}
    Line& word(std::string_view word) {
        gap();
        out_ += word;
        return *this;
    }
    Line& number(std::string_view key, int64_t value) {
        word(key);
        out_ += '=';
        append_number(out_, value);
        return *this;
    }
    Line& large(std::string_view key, uint64_t value) {
        word(key);
        out_ += '=';
        append_number(out_, value);
        return *this;
    }
    Line& name(std::string_view key, std::string_view value) {
        word(key);
        out_ += '=';
        out_ += value;
        return *this;
    }
    Line& text(std::string_view key, std::string_view value) {
        word(key);
        out_ += '=';
        append_quoted(out_, value);
        return *this;
    }

private:
    void gap() {
        if (!first_) {
            out_ += ' ';
        }
        first_ = false;
    }
    std::string& out_;
    bool first_ = true;
};

void append_list(std::string& out, std::span<const int64_t> list) {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
        if (i) {
            out += ',';
        }
        append_number(out, list[i]);
    }
    out += ']';
}

}  // namespace

void append_edges(std::string& out, std::span<const Edge> edges, char separator) {
    for (size_t i = 0; i < edges.size(); ++i) {
        const Edge& edge = edges[i];
        if (i) {
            out += separator;
        }
        out += edge_name(edge.kind);
        out += ':';
        append_number(out, uint64_t{edge.task});
        out += '#';
        append_number(out, edge.op);
        out += ':';
        append_number(out, uint64_t{edge.confidence});
    }
}

void append_dump(std::string& out, const Tables& tables, TaskId task, const Op& op, uint64_t number) {
    const OpInfo& row = info(op.kind);
    Line line(out);
    line.number("begin", op.begin).number("duration", op.duration).number("task", task).large("op", number);
    line.word(row.name).number("result", op.result);
    for (const FieldInfo& field : all_fields()) {
        if (!row.has(field.field)) {
            continue;
        }
        if (field.field == Field::text) {
            line.text("text", tables.strings[op.text]);
        } else if (field.field == Field::list) {
            line.word("list=");
            append_list(out, op.list);
        } else {
            line.word(field.name);
            out += '=';
            append_field(out, op, field.field);
        }
    }
    if (takes_results(op.kind) && looks_more(op.arg) != 0) {
        line.number("looks", looks_more(op.arg) + 1);
    }
    if (!op.edges.empty()) {
        line.word("edges=[");
        append_edges(out, op.edges, ',');
        out += ']';
    }
    if (const FileId file = tables.file_of(op)) {
        line.text("path", tables.path(file));
    }
    if (const FileId file = tables.file2_of(op)) {
        line.text("path2", tables.path(file));
    }
    out += '\n';
}

void append_dump_json(std::string& out, const Tables& tables, TaskId task, const Op& op, uint64_t number) {
    const OpInfo& row = info(op.kind);
    const auto key = [&](std::string_view name) {
        out += ",\"";
        out += name;
        out += "\":";
    };
    out += "{\"begin\":";
    append_number(out, op.begin);
    key("duration");
    append_number(out, op.duration);
    key("task");
    append_number(out, uint64_t{task});
    key("op");
    append_number(out, number);
    key("kind");
    append_json(out, row.name);
    key("result");
    append_number(out, op.result);
    for (const FieldInfo& field : all_fields()) {
        if (!row.has(field.field)) {
            continue;
        }
        key(field.name);
        if (field.field == Field::text) {
            append_json(out, tables.strings[op.text]);
        } else if (field.field == Field::list) {
            append_list(out, op.list);
        } else {
            append_number(out, field_value(op, field.field));
        }
    }
    if (!op.edges.empty()) {
        key("edges");
        out += '[';
        for (size_t i = 0; i < op.edges.size(); ++i) {
            const Edge& edge = op.edges[i];
            out += i ? ",{\"kind\":" : "{\"kind\":";
            append_json(out, edge_name(edge.kind));
            key("task");
            append_number(out, uint64_t{edge.task});
            key("op");
            append_number(out, edge.op);
            key("confidence");
            append_number(out, uint64_t{edge.confidence});
            out += '}';
        }
        out += ']';
    }
    if (const FileId file = tables.file_of(op)) {
        key("path");
        append_json(out, tables.path(file));
    }
    if (const FileId file = tables.file2_of(op)) {
        key("path2");
        append_json(out, tables.path(file));
    }
    out += "}\n";
}

std::string dump_header(const Header& header) {
    std::string out;
    const auto text = [&](std::string_view key, std::string_view value) {
        if (!out.empty()) {
            out += '\n';
        }
        Line(out).word("header").text(key, value);
    };
    const auto number = [&](std::string_view key, int64_t value) {
        if (!out.empty()) {
            out += '\n';
        }
        Line(out).word("header").number(key, value);
    };
    number("time_unit_ns", header.time_unit_ns);
    number("origin_unix_ns", header.origin_unix_ns);
    text("clock", header.clock);
    text("source", header.source);
    text("tool", header.tool);
    text("host", header.host);
    text("kernel", header.kernel);
    text("command", header.command);
    for (const auto& [key, value] : header.extra) {
        out += "\nheader extra ";
        append_quoted(out, key);
        out += '=';
        append_quoted(out, value);
    }
    return out;
}

std::string dump_counter(const Counter& counter) {
    std::string out;
    Line(out)
        .word("counter")
        .text("name", counter.name)
        .name("severity", severity_name(counter.severity))
        .large("value", counter.value)
        .text("meaning", counter.meaning);
    return out;
}

std::string dump_process(const Tables& tables, ProcessId id) {
    const ProcessRow& row = tables.processes[id];
    std::string out;
    Line(out)
        .word("process")
        .number("id", id)
        .number("pid", row.pid)
        .number("parent", row.parent)
        .text("command", tables.strings[row.command])
        .text("host", tables.strings[row.host]);
    return out;
}

std::string dump_task(const Tables& tables, TaskId id) {
    const TaskRow& row = tables.tasks[id];
    std::string out;
    Line(out)
        .word("task")
        .number("id", id)
        .number("process", row.process)
        .number("tid", row.tid)
        .text("name", tables.strings[row.name]);
    return out;
}

std::string dump_file(const Tables& tables, FileId id) {
    const FileRow& row = tables.files[id];
    std::string out;
    Line line(out);
    line.word("file")
        .number("id", id)
        .text("path", tables.strings[row.path])
        .large("device", row.device)
        .large("inode", row.inode);
    line.number("generation", row.generation).large("size", row.size).number("size_exact", row.size_exact);
    line.name("type", file_type_name(row.type))
        .name("role", role_name(row.role))
        .name("origin", origin_name(row.origin))
        .name("mode", mode_text(row.mode));
    line.text("target", tables.strings[row.target]);
    return out;
}

std::string dump_handle(const Tables& tables, HandleId id) {
    const HandleRow& row = tables.handles[id];
    std::string out;
    Line(out)
        .word("handle")
        .number("id", id)
        .number("file", row.file)
        .name("flags", open_flags_text(row.flags))
        .name("kind", handle_kind_name(row.kind))
        .number("inherited", row.inherited)
        .number("process", row.process)
        .number("fd", row.fd);
    return out;
}

}  // namespace reprise
