// SPDX-License-Identifier: MIT
// CSV (RFC 4180, CRLF, header row): one record per op in the order of time, a column per field of the op table. Fields
// that are not in an op's schema are empty. The result of an asynchronous request has that request's path. Byte strings
// are escaped (formats/support/escape.h), so a record is one line of UTF-8.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "formats/export/dump.h"
#include "formats/export/exporter.h"
#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/time_order.h"
#include "formats/support/escape.h"
#include "formats/support/text_output.h"

namespace reprise {
namespace {

// A field with quotes where RFC 4180 asks for them.
void append_csv(std::string& out, std::string_view bytes) {
    std::string text;
    append_escaped(text, bytes);
    if (text.find_first_of(",\"") == std::string::npos) {
        out += text;
        return;
    }
    out += '"';
    for (const char c : text) {
        if (c == '"') {
            out += '"';
        }
        out += c;
    }
    out += '"';
}

void append_header(std::string& out) {
    out += "begin_ns,duration_ns,pid,tid,task,op,kind,result,bytes,path,path2";
    for (const FieldInfo& field : all_fields()) {
        out += ',';
        out += field.name;
    }
    out += ",edges\r\n";
}

void append_fields(std::string& out, const Tables& tables, const Op& op) {
    const OpInfo& row = info(op.kind);
    for (const FieldInfo& field : all_fields()) {
        out += ',';
        if (!row.has(field.field)) {
            continue;
        }
        if (field.field == Field::text) {
            append_csv(out, tables.strings[op.text]);
        } else if (field.field == Field::list) {
            for (size_t i = 0; i < op.list.size(); ++i) {
                if (i) {
                    out += ' ';
                }
                append_number(out, op.list[i]);
            }
        } else {
            append_number(out, field_value(op, field.field));
        }
    }
}

/// Asynchronous requests without a result yet: a result has the file of its request, and what that moved.
class OpenRequests {
public:
    struct Moved {
        FileId file = 0;
        int64_t bytes = 0;
    };
    /// Ops in the order of time. None: not a result of a request that was seen.
    std::optional<Moved> see(const Tables& tables, const Op& op) {
        if (info(op.kind).is(Trait::submits)) {
            const AsyncRequest asked = async_request(op);
            open_[op.request] = {tables.file_of(op), asked.reads() || asked.writes()};
            return std::nullopt;
        }
        const auto found = info(op.kind).is(Trait::completes) ? open_.find(op.request) : open_.end();
        if (found == open_.end()) {
            return std::nullopt;
        }
        const Asked asked = found->second;
        open_.erase(found);
        return Moved{asked.file, asked.moves ? std::max<int64_t>(op.result, 0) : 0};
    }

private:
    struct Asked {
        FileId file = 0;
        bool moves = false;
    };
    std::unordered_map<uint32_t, Asked> open_;
};

ExportReport write(const LogReader& log, const std::filesystem::path& output, const ExportOptions& options) {
    const Tables& tables = log.tables();
    const OpSelector selector(log, options.filter);
    ExportReport report;
    check_written(output, options);
    TextOutput out(output);
    append_header(out.text);
    OpenRequests requests;
    for_each_between(log, {}, options.tasks, [&](TaskId task, const Op& op, uint64_t number) {
        if (!selector.keeps(op)) {
            ++report.left_out;
            return;
        }
        const TaskRow who = task < tables.tasks.size() ? tables.tasks[task] : TaskRow{};
        const int32_t pid = who.process < tables.processes.size() ? tables.processes[who.process].pid : 0;
        std::string& text = out.text;
        const int64_t leading[] = {op.begin, op.duration, pid, who.tid, task, static_cast<int64_t>(number)};
        for (const int64_t value : leading) {
            append_number(text, value);
            text += ',';
        }
        text += info(op.kind).name;
        text += ',';
        append_number(text, op.result);
        text += ',';
        const std::optional<OpenRequests::Moved> moved = requests.see(tables, op);
        append_number(text, moved ? moved->bytes : data_bytes(op));
        text += ',';
        append_csv(text, tables.path(moved ? moved->file : tables.file_of(op)));
        text += ',';
        append_csv(text, tables.path(tables.file2_of(op)));
        append_fields(text, tables, op);
        text += ',';
        append_edges(text, op.edges, ' ');
        text += "\r\n";
        out.drain();
        ++report.ops;
        if (options.progress) {
            options.progress(report.ops + report.left_out);
        }
    });
    out.finish();
    report.files.push_back(output);
    return report;
}

}  // namespace

extern const Exporter export_csv;
const Exporter export_csv{"csv", "one record per op with all its fields (RFC 4180)", write};

}  // namespace reprise
