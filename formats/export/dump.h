// SPDX-License-Identifier: MIT
// The exact text of a log: every field of every op by name, so that two equal logs give equal text and golden files
// work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/oplog/op.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/tables.h"

namespace reprise {

/// Appends one line:
///   begin=1000 duration=250 task=1 op=0 open result=3 handle=1 fd=-1 ... path="/data/x"
/// Times in ns. All fields of the op's schema in the order of the table, zeros too; `text` as the string itself;
/// list=[1,2]; edges=[message:2#17:100] as kind:task#op:confidence where there are any; path and path2 of the files the
/// op names or its instances belong to, where there are any. Strings are quoted as by append_quoted.
void append_dump(std::string& out, const Tables& tables, TaskId task, const Op& op, uint64_t number);

/// Appends kind:task#op:confidence of each edge.
void append_edges(std::string& out, std::span<const Edge> edges, char separator);

/// The same as one line of JSON; strings escaped as by append_json.
void append_dump_json(std::string& out, const Tables& tables, TaskId task, const Op& op, uint64_t number);

/// Header and tables, one row per line: header, counter, process, task, file, handle. `emit` takes whole lines.
template <class Emit>
void dump_tables(const LogReader& log, Emit emit);

/// One row each, without a newline; ids from 1.
std::string dump_header(const Header& header);  // several lines, one per key
std::string dump_counter(const Counter& counter);
std::string dump_process(const Tables& tables, ProcessId id);
std::string dump_task(const Tables& tables, TaskId id);
std::string dump_file(const Tables& tables, FileId id);
std::string dump_handle(const Tables& tables, HandleId id);

template <class Emit>
void dump_tables(const LogReader& log, Emit emit) {
    const Tables& tables = log.tables();
    emit(dump_header(log.header()));
    for (const Counter& counter : tables.counters) {
        emit(dump_counter(counter));
    }
    for (ProcessId id = 1; id < tables.processes.size(); ++id) {
        emit(dump_process(tables, id));
    }
    for (TaskId id = 1; id < tables.tasks.size(); ++id) {
        emit(dump_task(tables, id));
    }
    for (FileId id = 1; id < tables.files.size(); ++id) {
        emit(dump_file(tables, id));
    }
    for (HandleId id = 1; id < tables.handles.size(); ++id) {
        emit(dump_handle(tables, id));
    }
}

}  // namespace reprise
