// SPDX-License-Identifier: MIT
#include "transform/scale_recording.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "formats/support/nearest.h"
#include "formats/support/path.h"
#include "transform/scale_random.h"

namespace reprise {
namespace {

/// Fewer files of a kind are not samples, one each.
constexpr size_t kLeastSamples = 16;
/// Reads of one open instance from which on it holds many samples.
constexpr uint64_t kManyReads = 64;
/// Who reads in order may skip so much.
constexpr int64_t kAhead = 1 << 20;

std::string_view ending(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t point = name.rfind('.');
    return point == name.npos ? std::string_view() : name.substr(point);
}

bool matches(const std::string& pattern, std::string_view path) {
    return is_or_lies_below(path, pattern) || ::fnmatch(pattern.c_str(), std::string(path).c_str(), 0) == 0;
}

bool reads_data(OpKind kind) {
    return kind == OpKind::read || kind == OpKind::pread || kind == OpKind::readv || kind == OpKind::preadv;
}

}  // namespace

std::string_view sample_class_name(SampleClass kind) {
    switch (kind) {
        case SampleClass::fixed: return "fixed";
        case SampleClass::sample: return "sample";
        case SampleClass::records: return "records";
        case SampleClass::index: return "index";
    }
    return "?";
}

SampleOverride SampleOverride::parse(std::string_view text) {
    const size_t at = text.rfind('=');
    const std::string_view word = at == text.npos ? std::string_view() : text.substr(at + 1);
    for (const SampleClass kind : {SampleClass::fixed, SampleClass::sample, SampleClass::records, SampleClass::index}) {
        if (at != text.npos && at != 0 && word == sample_class_name(kind)) {
            std::string pattern(text.substr(0, at));
            while (pattern.size() > 1 && pattern.ends_with('/')) {
                pattern.pop_back();
            }
            return {std::move(pattern), kind};
        }
    }
    throw usage_error("--scale-as is '" + escape_line(text) + "', expected PATTERN=CLASS",
                      "classes are sample, records, index and fixed, e.g. --scale-as '/data/*.tar=records'");
}

ScaleRecording::ScaleRecording(const LogReader& log, const std::vector<SampleOverride>& overrides)
    : log_(log),
      tables_(log.tables()),
      facts_(tables_.files.size()),
      reads_of_handle_(tables_.handles.size()),
      next_of_handle_(tables_.handles.size(), -1),
      classes_(tables_.files.size(), SampleClass::fixed),
      given_(tables_.files.size()),
      tasks_(tables_.tasks.size()),
      handles_(tables_.handles.size()),
      made_files_(tables_.files.size()),
      task_objects_(tables_.tasks.size()),
      last_unit_(tables_.tasks.size(), kNoUnit) {
    first_pass();
    classify(overrides);
    second_pass();
    add_order();
    keep_shared();
    number_epochs();
}

uint8_t ScaleRecording::key_of(const OpBlock& block, size_t i) {
    return static_cast<OpKind>(block.kind[i]) == OpKind::wait ? static_cast<uint8_t>(128 + wait_class(block.arg[i]))
                                                              : block.kind[i];
}

FileId ScaleRecording::file_of_map(uint32_t map) const {
    const auto found = map_files_.find(map);
    return found == map_files_.end() ? 0 : found->second;
}

FileId ScaleRecording::file_at(const OpBlock& block, size_t i) const {
    if (block.file[i] != 0) {
        return block.file[i];
    }
    if (block.handle[i] != 0 && block.handle[i] < tables_.handles.size()) {
        return tables_.handles[block.handle[i]].file;
    }
    return block.map[i] != 0 ? file_of_map(block.map[i]) : 0;
}

void ScaleRecording::first_pass() {
    OpBlock block;
    std::unordered_map<uint32_t, int64_t> next_of_map;
    std::unordered_set<uint32_t> shared, made_writable;  // by mprotect, perhaps in a block before that of the mmap
    for (const BlockInfo& where : log_.blocks()) {
        log_.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            const OpInfo& row = info(kind);
            if (kind == OpKind::mmap && block.handle[i] < tables_.handles.size()) {
                map_files_[block.map[i]] = tables_.handles[block.handle[i]].file;
                if ((block.flags[i] & MAP_SHARED) != 0) {
                    shared.insert(block.map[i]);
                }
            } else if (kind == OpKind::mprotect && block.result[i] >= 0 && (block.mode[i] & PROT_WRITE) != 0) {
                made_writable.insert(block.map[i]);
            }
            const FileId file = file_at(block, i);
            if (file == 0 || file >= facts_.size()) {
                continue;
            }
            FileFacts& facts = facts_[file];
            const bool done = block.result[i] >= 0;
            if (kind == OpKind::open && done) {
                ++facts.opens;
                facts.written |= (block.flags[i] & (O_CREAT | O_TRUNC)) != 0;
            } else if (kind == OpKind::mmap) {
                ++facts.maps;
                facts.written |= (block.flags[i] & MAP_SHARED) != 0 && (block.mode[i] & PROT_WRITE) != 0;
            } else if (kind == OpKind::touch) {
                const auto [next, fresh] = next_of_map.try_emplace(block.map[i], 0);
                ++facts.touches;
                facts.again += block.flags[i] == kTouchAgain ? 1 : 0;
                facts.forward +=
                    !fresh && block.offset[i] >= next->second && block.offset[i] - next->second < kAhead ? 1 : 0;
                next->second = block.offset[i] + std::max<int64_t>(block.size[i], 0);
            } else if (row.is(Trait::submits)) {
                facts.written |= async_request(block, i).alters();
                facts.reads += async_request(block, i).alters() ? 0 : 1;
            } else if (row.is(Trait::reads) && block.result[i] > 0) {
                ++facts.reads;
                facts.bytes += static_cast<uint64_t>(block.result[i]);
                if (const HandleId handle = block.handle[i]; handle != 0 && handle < next_of_handle_.size()) {
                    const int64_t next = next_of_handle_[handle];
                    facts.forward += next >= 0 && block.offset[i] >= next && block.offset[i] - next < kAhead ? 1 : 0;
                    next_of_handle_[handle] = block.offset[i] + block.result[i];
                    ++reads_of_handle_[handle];
                }
            } else if (done && row.is(Trait::changes) && !row.is(Trait::attributes)) {
                facts.written = true;
            }
        }
        log_.forget(where);
    }
    for (const uint32_t map : made_writable) {
        if (const FileId file = shared.contains(map) ? file_of_map(map) : 0; file != 0 && file < facts_.size()) {
            facts_[file].written = true;
        }
    }
}

void ScaleRecording::classify(const std::vector<SampleOverride>& overrides) {
    std::map<std::string, std::vector<FileId>> families;
    for (FileId file = 1; file < facts_.size(); ++file) {
        const FileRow& row = tables_.files[file];
        const FileFacts& facts = facts_[file];
        const bool plain = row.type == FileType::regular || row.type == FileType::unknown;
        if (row.role != Role::dataset || !plain || row.origin != Origin::existed || facts.written) {
            continue;
        }
        if (facts.reads + facts.touches > 0 || facts.opens > 0 || row.size > 0) {
            families[std::string(ending(tables_.path(file)))].push_back(file);
        }
    }
    for (const auto& [name, files] : families) {
        uint64_t read = 0, reads = 0, opens = 0;
        for (const FileId file : files) {
            const FileFacts& facts = facts_[file];
            read += facts.reads + facts.touches > 0 ? 1 : 0;
            reads += facts.reads + facts.touches;
            opens += facts.reads + facts.touches > 0 ? std::max<uint64_t>(facts.opens, 1) : 0;
        }
        const bool many = read >= kLeastSamples && reads <= opens * kManyReads;
        for (const FileId file : files) {
            const FileFacts& facts = facts_[file];
            if (many) {
                classes_[file] = SampleClass::sample;
            } else if (facts.reads + facts.touches >= kManyReads) {
                classes_[file] = SampleClass::records;
            }
        }
    }
    for (const SampleOverride& one : overrides) {
        bool any = false;
        for (FileId file = 1; file < facts_.size(); ++file) {
            if (tables_.files[file].type != FileType::directory && matches(one.pattern, tables_.path(file))) {
                classes_[file] = one.kind;
                given_[file] = 1;
                any = true;
            }
        }
        if (!any) {
            std::vector<std::string_view> paths;
            for (FileId file = 1; file < facts_.size(); ++file) {
                paths.push_back(tables_.path(file));
            }
            throw usage_error("--scale-as '" + escape_line(one.pattern) + "=" +
                                  std::string(sample_class_name(one.kind)) + "' matches no file of the recording" +
                                  did_you_mean(nearest_paths(one.pattern, paths)),
                              "`reprise info --scaling` lists them");
        }
    }
}

void ScaleRecording::second_pass() {
    OpBlock block;
    for (TaskId task = 1; task < tasks_.size(); ++task) {
        const uint64_t ops = log_.op_count(task);
        if (ops >= UINT32_MAX) {
            throw bad_input(log_.path().string(), "a task has too many ops to scale", "");
        }
        tasks_[task].begin.reserve(ops);
        tasks_[task].kind.reserve(ops);
    }
    for (const BlockInfo& where : log_.blocks()) {
        if (where.task == 0 || where.task >= tasks_.size()) {
            continue;
        }
        log_.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            see(block, i, where.task, static_cast<uint32_t>(where.first + i));
        }
        log_.forget(where);
    }
    for (TaskId task = 1; task < tasks_.size(); ++task) {
        if (task_objects_[task].task != 0 && !tasks_[task].kind.empty()) {
            const auto last = static_cast<uint32_t>(tasks_[task].kind.size() - 1);
            task_objects_[task].uses.push_back({task, last, last});
        }
    }
}

void ScaleRecording::see(const OpBlock& block, size_t i, TaskId task, uint32_t op) {
    RecordedTask& of = tasks_[task];
    of.begin.push_back(block.begin[i]);
    of.kind.push_back(key_of(block, i));
    of.end = std::max(of.end, end_of(block.begin[i], block.duration[i]));
    for (const Edge& edge : block.edges_of(i)) {
        if (edge.task != 0 && edge.task < tasks_.size() && edge.task != task && edge.op < log_.op_count(edge.task)) {
            of.edges.push_back({op, edge.task, static_cast<uint32_t>(edge.op), edge.kind});
        }
    }
    see_objects(block, i, task, op);
    see_unit(block, i, task, op);
}

void ScaleRecording::use(ScaleObject& object, TaskId task, uint32_t op, int64_t begin, bool makes) {
    if (object.task == 0 || makes || (!object.made && begin < object.begin)) {
        object.made = makes;
        object.task = task;
        object.op = op;
        object.begin = begin;
    }
    for (TaskUse& by : object.uses) {
        if (by.task == task) {
            by.first = std::min(by.first, op);
            by.last = std::max(by.last, op);
            return;
        }
    }
    object.uses.push_back({task, op, op});
}

ScaleObject& ScaleRecording::hold(HandleId handle, TaskId task, uint32_t op, int64_t begin) {
    const auto [at, added] = held_rows_.try_emplace(uint64_t{handle} << 32 | tables_.tasks[task].process,
                                                    static_cast<uint32_t>(held_.size()));
    if (added) {
        held_.emplace_back();
        held_handles_.push_back(handle);
    }
    use(held_[at->second], task, op, begin, false);
    return held_[at->second];
}

/// Drops what only one process has: that is the instance itself. Unless another process has one like it: whether a
/// forked process gets to closing what it inherited before it ends is chance, and one shall stand for the other.
void ScaleRecording::keep_shared() {
    std::vector<uint32_t> users(handles_.size());
    for (const HandleId handle : held_handles_) {
        ++users[handle];
    }
    std::unordered_set<uint64_t> shared;
    for (HandleId handle = 1; handle < handles_.size(); ++handle) {
        if (users[handle] > 1) {
            shared.insert(handles_[handle].likeness);
        }
    }
    std::vector<ScaleObject> held(1);
    std::vector<HandleId> handles(1);
    std::unordered_map<uint64_t, uint32_t> rows;
    for (const auto& [key, row] : held_rows_) {
        auto& ends = handles_[held_handles_[row]].ends;
        ends.insert(ends.end(), held_[row].ends.begin(), held_[row].ends.end());
        if (const HandleId handle = held_handles_[row]; shared.count(handles_[handle].likeness) != 0) {
            rows.emplace(key, static_cast<uint32_t>(held.size()));
            held.push_back(std::move(held_[row]));
            held.back().likeness = handles_[handle].likeness;
            handles.push_back(handle);
        }
    }
    held_ = std::move(held);
    held_handles_ = std::move(handles);
    held_rows_ = std::move(rows);
}

void ScaleRecording::see_objects(const OpBlock& block, size_t i, TaskId task, uint32_t op) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const int64_t begin = block.begin[i];
    for (const HandleId handle : {block.handle[i], block.handle2[i]}) {
        if (handle != 0 && handle < handles_.size()) {
            const HandleRow& row = tables_.handles[handle];
            use(handles_[handle], task, op, begin, false);
            if (ScaleObject& held = hold(handle, task, op, begin); info(kind).is(Trait::ends_handle)) {
                held.ends.emplace_back(task, op);
            }
            const Role role = row.file < tables_.files.size() ? tables_.files[row.file].role : Role::unknown;
            handles_[handle].likeness = mixed(static_cast<uint64_t>(row.kind) << 8 | static_cast<uint64_t>(role),
                                              std::hash<std::string_view>()(ending(tables_.path(row.file))));
            if (row.file < made_files_.size() && tables_.files[row.file].origin == Origin::created) {
                use(made_files_[row.file], task, op, begin, false);
            }
        }
    }
    for (const FileId file : {block.file[i], block.file2[i]}) {
        if (file != 0 && file < made_files_.size() && tables_.files[file].origin == Origin::created) {
            use(made_files_[file], task, op, begin, false);
            if (info(kind).is(Trait::ends_name) && file == block.file[i] && block.result[i] >= 0) {
                made_files_[file].ends.emplace_back(task, op);
            }
            made_files_[file].likeness = static_cast<uint64_t>(tables_.files[file].role);
        }
    }
    if (const uint32_t map = block.map[i]; map != 0) {
        map_limit_ = std::max(map_limit_, map + 1);
        ScaleObject& object = maps_[map];
        use(object, task, op, begin, kind == OpKind::mmap);
        if (kind == OpKind::mmap) {
            object.likeness = mixed(static_cast<uint64_t>(block.size[i]), block.handle[i] != 0 ? 1 : 0);
        } else if (kind == OpKind::munmap) {
            object.ends.emplace_back(task, op);
        }
    }
    if (const uint32_t request = block.request[i]; request != 0) {
        request_limit_ = std::max(request_limit_, request + 1);
        use(requests_[request], task, op, begin, false);
    }
    if ((kind == OpKind::spawn || kind == OpKind::join) && block.peer[i] != 0 && block.peer[i] < tasks_.size()) {
        const TaskId peer = block.peer[i];
        use(task_objects_[peer], task, op, begin, kind == OpKind::spawn);
        task_objects_[peer].likeness = tables_.tasks[peer].process == tables_.tasks[task].process ? 1 : 2;
    }
}

void ScaleRecording::see_unit(const OpBlock& block, size_t i, TaskId task, uint32_t op) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const FileId file = file_at(block, i);
    const SampleClass how = class_of(file);
    if (file == 0 || (how != SampleClass::sample && how != SampleClass::records)) {
        return;
    }
    const int64_t moved = reads_data(kind) || kind == OpKind::sendfile || kind == OpKind::copy_file_range
                              ? std::max<int64_t>(block.result[i], 0)
                          : kind == OpKind::touch         ? std::max<int64_t>(block.size[i], 0)
                          : info(kind).is(Trait::submits) ? std::max<int64_t>(block.size[i], 0)
                                                          : 0;
    const auto make = [&] {
        last_unit_[task] = static_cast<uint32_t>(units_.size());
        units_.push_back({task, op, op, block.begin[i], file, block.offset[i], 0, 0});
    };
    if (how == SampleClass::records) {
        if (moved > 0) {
            make();
            units_.back().bytes = moved;
            units_.back().again = kind == OpKind::touch && block.flags[i] == kTouchAgain;
        }
        return;
    }
    const HandleId handle = block.handle[i];
    uint32_t at = last_unit_[task];
    if (handle != 0 && kind != OpKind::open) {
        const auto known = unit_of_handle_.find(handle);
        at = known == unit_of_handle_.end() ? at : known->second;
    }
    if (at == kNoUnit || units_[at].file != file || (units_[at].task != task && kind == OpKind::open)) {
        make();
        at = last_unit_[task];
    }
    SampleUnit& unit = units_[at];
    if (unit.task == task) {
        unit.last = std::max(unit.last, op);
    }
    unit.bytes += moved;
    if (handle != 0) {
        unit_of_handle_.emplace(handle, at);
    }
}

void ScaleRecording::sort_units() {
    std::vector<uint32_t> order(units_.size()), place(units_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return units_[a].begin < units_[b].begin; });
    std::vector<SampleUnit> sorted;
    sorted.reserve(units_.size());
    for (uint32_t i = 0; i < order.size(); ++i) {
        place[order[i]] = i;
        sorted.push_back(units_[order[i]]);
    }
    units_ = std::move(sorted);
    for (auto& [handle, unit] : unit_of_handle_) {
        unit = place[unit];
    }
}

uint32_t ScaleRecording::unit_of_handle(HandleId handle) const {
    const auto found = unit_of_handle_.find(handle);
    return found == unit_of_handle_.end() ? kNoUnit : found->second;
}

/// What was read whole, once and before the samples, and is of a size for as many.
void ScaleRecording::find_indexes(uint64_t reads) {
    const int64_t first = [&] {
        for (const SampleUnit& unit : units_) {
            if (unit.bytes > 0) {
                return unit.begin;
            }
        }
        return INT64_MAX;
    }();
    for (FileId file = 1; file < facts_.size() && reads > 0; ++file) {
        const FileRow& row = tables_.files[file];
        const FileFacts& facts = facts_[file];
        const bool plain = row.type == FileType::regular || row.type == FileType::unknown;
        if (classes_[file] != SampleClass::fixed || given_[file] != 0 || row.role != Role::dataset || !plain ||
            facts.written || row.origin != Origin::existed || facts.maps != 0 || facts.reads == 0 || epochs_.empty()) {
            continue;
        }
        // Between some bytes and some hundred for each sample, read once and whole.
        const uint64_t samples = epochs_.front();
        const bool listed = row.size >= samples * 4 && row.size <= samples * 4096 && facts.bytes == row.size;
        bool before = true;
        for (HandleId handle = 1; handle < handles_.size(); ++handle) {
            before = before && (tables_.handles[handle].file != file || handles_[handle].begin < first);
        }
        if (listed && before) {
            classes_[file] = SampleClass::index;
        }
    }
}

}  // namespace reprise
