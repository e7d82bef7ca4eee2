// SPDX-License-Identifier: MIT
#include "fit/job_trace.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/job/sample_order.h"
#include "formats/oplog/epochs.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/loader_marks.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "transform/scale_recording.h"

namespace reprise {
namespace {

constexpr uint64_t kMostOps = 100'000'000;

std::string_view ending_of(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t point = name.rfind('.');
    return point == name.npos ? std::string_view() : name.substr(point);
}

/// A file that may be of a data set.
bool may_hold_data(const FileRow& row) {
    return row.role == Role::dataset && row.origin == Origin::existed &&
           (row.type == FileType::regular || row.type == FileType::unknown);
}

bool reads_data(const TraceOp& op) {
    return op.kind == OpKind::touch || (info(op.kind).is(Trait::reads) && op.result > 0);
}

bool submits_read(OpKind kind) { return info(kind).is(Trait::submits); }

OpPart part_of(const Op& op, Role role, bool data) {
    const OpInfo& row = info(op.kind);
    if (op.kind == OpKind::marker) {
        return OpPart::mark;
    }
    if (row.is(Trait::accelerator)) {
        return OpPart::device;
    }
    if (op.kind == OpKind::compute || (op.kind == OpKind::wait && wait_class(op.arg) == kWaitSleep)) {
        return OpPart::computes;
    }
    if (row.is(Trait::waits) && !(op.kind == OpKind::wait && is_lock_wait(op.arg))) {
        return OpPart::waits;
    }
    if (data) {
        return OpPart::data;
    }
    return role == Role::checkpoint ? OpPart::saves : OpPart::other;
}

}  // namespace

size_t TraceTask::at(uint64_t op) const {
    return static_cast<size_t>(
        std::partition_point(ops.begin(), ops.end(), [&](const TraceOp& each) { return each.op < op; }) - ops.begin());
}

JobTrace::JobTrace(const LogReader& log) : tables(log.tables()), tasks(tables.tasks.size()) {
    choose_data(log);
    read(log);
    join_loaders();
    const bool captured = log.header().source != "generate";
    every_touch = !captured || read_fact(log.header(), fact::mapped_uses).value_or(false);
}

/// Of what scaling takes for samples, the kind of files that most is read of. Few files that are little read are none
/// to scaling; here they are asked for.
void JobTrace::choose_data(const LogReader& log) {
    struct Family {
        int64_t bytes = 0;
        uint64_t files = 0;
    };
    std::map<std::string, Family> families;
    const auto look = [&](const std::vector<SampleOverride>& as) {
        const ScaleRecording recording(log, as);
        std::vector<int64_t> bytes(tables.files.size());
        for (const SampleUnit& unit : recording.units()) {
            bytes[unit.file] += unit.bytes;
        }
        for (FileId file = 1; file < tables.files.size(); ++file) {
            if (may_hold_data(tables.files[file]) && recording.class_of(file) != SampleClass::fixed) {
                Family& family = families[std::string(ending_of(tables.path(file)))];
                family.bytes += bytes[file];
                ++family.files;
            }
        }
        epochs = recording.late_share() > EpochNumbers::kMostLate ? 0 : recording.epochs().size();
        return std::any_of(families.begin(), families.end(), [](const auto& each) { return each.second.bytes > 0; });
    };
    if (!look({})) {
        families.clear();
        std::set<std::string> endings;
        for (FileId file = 1; file < tables.files.size(); ++file) {
            if (may_hold_data(tables.files[file])) {
                endings.emplace(ending_of(tables.path(file)));
            }
        }
        std::vector<SampleOverride> as;
        as.reserve(endings.size());
        for (const std::string& each : endings) {
            as.push_back({"*" + each, SampleClass::records});
        }
        if (as.empty() || !look(as)) {
            epochs = 0;
            return;
        }
    }
    const auto most = std::max_element(families.begin(), families.end(),
                                       [](const auto& x, const auto& y) { return x.second.bytes < y.second.bytes; });
    ending = most->first;
    for (const auto& [name, family] : families) {
        if (name != ending && family.bytes > 0) {
            left_out.push_back(counted(family.files, "file") + " *" + name + ", " +
                               format_bytes(static_cast<uint64_t>(family.bytes)) + " read");
        }
    }
    is_data.assign(tables.files.size(), 0);
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (may_hold_data(tables.files[file]) && tables.files[file].size > 0 &&
            ending_of(tables.path(file)) == ending) {
            is_data[file] = 1;
            data.push_back(file);
        }
    }
    std::sort(data.begin(), data.end(),
              [&](FileId x, FileId y) { return natural_less(tables.path(x), tables.path(y)); });
    places_.assign(tables.files.size(), 0);
    for (uint32_t place = 0; place < data.size(); ++place) {
        places_[data[place]] = place;
    }
}

void JobTrace::read(const LogReader& log) {
    std::unordered_map<uint32_t, FileId> map_files;
    // A task may touch what another has mapped.
    for (TaskId task = 1; task < tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            if (op.kind == OpKind::mmap && op.handle != 0) {
                map_files[op.map] = tables.file_of(op);
            }
        });
    }
    uint64_t kept = 0, touches = 0, reads = 0;
    for (TaskId task = 1; task < tasks.size(); ++task) {
        TraceTask& of = tasks[task];
        of.process = tables.tasks[task].process;
        std::set<HandleId> sends;
        log.for_each(task, [&](const Op& op, uint64_t number) {
            for (const Edge& edge : op.edges) {
                if (edge.task != task && edge.task != 0 && edge.task < tasks.size()) {
                    TraceEdge& made = of.edges.emplace_back();
                    made = {number, edge.task, edge.op, edge.kind, 0, 0};
                    if (op.kind == OpKind::receive) {
                        made.channel = op.handle;
                        made.size = op.size;
                    }
                }
            }
            if (op.kind == OpKind::spawn && op.peer != 0 && op.peer < tasks.size()) {
                tasks[op.peer].parent = task;
            }
            if (op.kind == OpKind::send && op.handle != 0) {
                sends.insert(op.handle);
            }
            of.idle = of.idle && op.kind == OpKind::exit;
            FileId file = tables.file_of(op);
            if (file == 0 && op.map != 0) {
                const auto found = map_files.find(op.map);
                file = found == map_files.end() ? 0 : found->second;
            }
            const bool known = file != 0 && file < tables.files.size();
            const OpPart part = part_of(op, known ? tables.files[file].role : Role::unknown,
                                        known && !is_data.empty() && is_data[file] != 0);
            arrivals += waits_until(op.kind, op.arg) && until_ns(op.arg) > 0 ? 1 : 0;
            const bool of_a_job =
                known && (tables.files[file].role == Role::dataset || tables.files[file].role == Role::cache) &&
                tables.files[file].type == FileType::regular;
            if (part == OpPart::other && of_a_job) {
                const bool moves = info(op.kind).is(Trait::reads) || submits_read(op.kind);
                other_bytes += op.kind == OpKind::touch ? op.size
                               : !moves                 ? 0
                               : submits_read(op.kind)  ? op.size
                                                        : std::max<int64_t>(op.result, 0);
            }
            if (part == OpPart::other && !of.ops.empty() && of.ops.back().part == OpPart::other) {
                of.ops.back().duration += op.duration;
                return;
            }
            if (++kept > kMostOps) {
                throw bad_input(log.path().string(),
                                "too many ops to fit a job to: more than " + format_count(kMostOps),
                                "record a shorter part of the job");
            }
            TraceOp& made = of.ops.emplace_back();
            made.begin = op.begin;
            made.duration = op.duration;
            made.offset = op.offset;
            made.size = op.size;
            made.result = part == OpPart::mark || part == OpPart::device ? op.arg
                          : submits_read(op.kind)                        ? op.size
                                                                         : op.result;
            made.op = number;
            made.file = file;
            made.object = part == OpPart::mark ? op.text : op.handle != 0 ? op.handle : op.map;
            made.kind = op.kind;
            made.part = part;
            made.phase = part == OpPart::mark ? static_cast<uint8_t>(op.flags) : 0;
            if (part == OpPart::data && reads_data(made)) {
                ++of.reads;
                (op.kind == OpKind::touch ? touches : reads) += 1;
                read_bytes += op.kind == OpKind::touch ? op.size : std::max<int64_t>(made.result, 0);
                if (!op.list.empty()) {  // one row for each range
                    const TraceOp whole = made;
                    of.ops.pop_back();
                    each_touched(op.offset, op.size, op.list, [&](int64_t offset, int64_t bytes) {
                        TraceOp& range = of.ops.emplace_back(whole);
                        range.offset = offset;
                        range.size = bytes;
                    });
                }
            }
        });
        of.sends.assign(sends.begin(), sends.end());
    }
    maps = touches > reads;
}

/// Where each epoch has a new loader, the marks of all are those of one.
void JobTrace::join_loaders() {
    std::map<uint32_t, uint64_t> most;  // epochs, by loader
    std::map<StringId, StringId> names;
    const auto id_of = [&](std::string_view text) {
        StringId id = 0;
        while (id < tables.strings.size() && tables.strings[id] != text) {
            ++id;
        }
        return id;
    };
    for (const TraceTask& task : tasks) {
        std::map<uint32_t, uint64_t> epochs;
        for (const TraceOp& op : task.ops) {
            const auto mark = op.part == OpPart::mark ? loader_mark(tables.strings[op.object]) : std::nullopt;
            if (!mark) {
                continue;
            }
            epochs[mark->loader] += mark->what == "epoch" && op.phase == 1 ? 1 : 0;
            if (mark->loader > 1 && !names.contains(op.object)) {
                names[op.object] = id_of(mark->what);
            }
        }
        for (const auto& [loader, count] : epochs) {
            if (count > 0) {
                most[loader] = std::max(most[loader], count);
            }
        }
    }
    if (which_epoch_marks(most, this->epochs) != EpochMarks::every) {
        return;
    }
    for (TraceTask& task : tasks) {
        for (TraceOp& op : task.ops) {
            const auto found = op.part == OpPart::mark ? names.find(op.object) : names.end();
            if (found != names.end() && found->second < tables.strings.size()) {
                op.object = found->second;
            }
        }
    }
}

}  // namespace reprise
