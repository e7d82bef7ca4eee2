// SPDX-License-Identifier: MIT
#include "tests/programs/support/program_scope.h"

namespace reprise::test {

ProgramScope::ProgramScope(const LogReader& log, std::string root, std::set<std::string> kinds)
    : tables_(log.tables()), root_(std::move(root)), kinds_(std::move(kinds)) {
    for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            if (op.kind != OpKind::mmap || op.map == 0 || op.handle == 0) {
                return;
            }
            if (op.map >= file_of_map_.size()) {
                file_of_map_.resize(op.map + 1);
            }
            file_of_map_[op.map] = tables_.handles[op.handle].file;
        });
    }
}

bool ProgramScope::file_inside(FileId file) const {
    if (file == 0) {
        return false;
    }
    const std::string_view path = tables_.path(file);
    return path == root_ || (path.starts_with(root_) && path[root_.size()] == '/');
}

bool ProgramScope::handle_inside(HandleId handle) const {
    if (handle == 0) {
        return false;
    }
    const HandleRow& row = tables_.handles[handle];
    return file_inside(row.file) || (row.kind == HandleKind::memfd && kinds_.contains("memfd"));
}

bool ProgramScope::has(const Op& op) const {
    const OpInfo& row = info(op.kind);
    if (kinds_.contains(std::string(row.name))) {
        return true;
    }
    if (op.kind == OpKind::marker || row.is(Trait::async)) {
        return true;
    }
    if (op.kind == OpKind::syncfs && op.handle == 0) {
        return true;
    }
    if (file_inside(op.file) || file_inside(op.file2) || handle_inside(op.handle) || handle_inside(op.handle2)) {
        return true;
    }
    return op.map != 0 && file_inside(file_of_map(op.map));
}

std::string op_text(const Tables& tables, const Op& op, const std::string& root) {
    const OpInfo& row = info(op.kind);
    std::string out(row.name);
    const auto file = [&](FileId id) -> std::string {
        if (id == 0) {
            return "-";
        }
        std::string_view path = tables.path(id);
        if (path.starts_with(root + "/")) {
            path.remove_prefix(root.size() + 1);
        }
        const uint32_t generation = tables.files[id].generation;
        return std::string(path) + (generation == 0 ? "" : "#" + std::to_string(generation));
    };
    for (const FieldInfo& field : all_fields()) {
        if (!row.has(field.field)) {
            continue;
        }
        out += " " + std::string(field.name) + "=";
        switch (field.field) {
            case Field::handle: out += std::to_string(op.handle); break;
            case Field::handle2: out += std::to_string(op.handle2); break;
            case Field::fd: out += std::to_string(op.fd); break;
            case Field::fd2: out += std::to_string(op.fd2); break;
            case Field::file: out += file(op.file); break;
            case Field::file2: out += file(op.file2); break;
            case Field::offset: out += std::to_string(op.offset); break;
            case Field::offset2: out += std::to_string(op.offset2); break;
            case Field::size: out += std::to_string(op.size); break;
            case Field::flags: out += std::to_string(op.flags); break;
            case Field::mode: out += std::to_string(op.mode); break;
            case Field::arg: out += std::to_string(op.arg); break;
            case Field::map: out += std::to_string(op.map); break;
            case Field::peer: out += op.peer == 0 ? "0" : std::to_string(tables.tasks[op.peer].tid); break;
            case Field::text: out += "\"" + std::string(tables.strings[op.text]) + "\""; break;
            case Field::request: out += std::to_string(op.request); break;
            case Field::list:
                for (size_t i = 0; i < op.list.size(); ++i) {
                    out += (i ? "," : "") + std::to_string(op.list[i]);
                }
                break;
        }
    }
    return out + " result=" + std::to_string(op.result);
}

}  // namespace reprise::test
