// SPDX-License-Identifier: MIT
#include "formats/oplog/copy_tables.h"

namespace reprise {

std::vector<StringId> copy_tables(const Tables& from, LogWriter& to) {
    std::vector<StringId> strings(from.strings.size());
    for (StringId id = 1; id < strings.size(); ++id) {
        strings[id] = to.intern(from.strings[id]);
    }
    const auto text = [&](StringId id) { return id < strings.size() ? strings[id] : StringId{0}; };
    for (size_t i = 1; i < from.files.size(); ++i) {
        FileRow row = from.files[i];
        row.path = text(row.path);
        row.target = text(row.target);
        to.add_file(row);
    }
    for (size_t i = 1; i < from.handles.size(); ++i) {
        to.add_handle(from.handles[i]);
    }
    for (size_t i = 1; i < from.processes.size(); ++i) {
        ProcessRow row = from.processes[i];
        row.command = text(row.command);
        row.host = text(row.host);
        to.add_process(row);
    }
    for (size_t i = 1; i < from.tasks.size(); ++i) {
        TaskRow row = from.tasks[i];
        row.name = text(row.name);
        to.add_task(row);
    }
    return strings;
}

}  // namespace reprise
