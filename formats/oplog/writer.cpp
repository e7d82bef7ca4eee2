// SPDX-License-Identifier: MIT
// Writes the op log. The reader of the same bytes is reader.cpp.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "formats/oplog/block_codec.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/section_file.h"
#include "formats/oplog/table_codec.h"

namespace reprise {
namespace {

// Table bytes that may wait for the next block of ops.
constexpr size_t kTableBytes = size_t{16} << 20;

// Whole chunks that were written, for the next ops: fresh memory costs more than encoding what fills it.
struct SpareChunks {
    static constexpr size_t kMost = 2 * kBlockOps / 1024;
    std::vector<std::vector<Op>> chunks;
};

// The ops of one task that are not written yet, in chunks, as ops are large and moving them costs more than encoding
// them. Lists and edges are copied; spans are set when a block is cut.
struct Pending {
    static constexpr size_t kChunk = 1024;
    std::vector<std::vector<Op>> chunks;
    size_t count = 0;
    std::vector<int64_t> lists;
    std::vector<Edge> edges;
    uint64_t done = 0;  // ops written
    int64_t last_begin = INT64_MIN;
    int64_t last_end = INT64_MIN;  // greatest end of those pending

    Op& push(const Op& op, SpareChunks& spare) {
        if (chunks.empty() || chunks.back().size() == kChunk) {
            // Tasks with a few ops are many; those with more than a chunk fill the next one, too.
            if (chunks.empty()) {
                chunks.emplace_back();
            } else if (!spare.chunks.empty()) {
                chunks.push_back(std::move(spare.chunks.back()));
                spare.chunks.pop_back();
            } else {
                chunks.emplace_back().reserve(kChunk);
            }
        }
        ++count;
        return chunks.back().emplace_back(op);
    }
    void clear(SpareChunks& spare) {
        for (auto& chunk : chunks) {
            if (chunk.capacity() < kChunk || spare.chunks.size() >= SpareChunks::kMost) {
                continue;
            }
            chunk.clear();
            spare.chunks.push_back(std::move(chunk));
        }
        chunks.clear();
        count = 0;
        lists.clear();
        edges.clear();
        last_end = INT64_MIN;
    }
    void point_spans() {
        if (lists.empty() && edges.empty()) {
            return;
        }
        size_t list = 0, edge = 0;
        for (auto& chunk : chunks) {
            for (Op& op : chunk) {
                op.list = std::span<const int64_t>(lists).subspan(list, op.list.size());
                op.edges = std::span<const Edge>(edges).subspan(edge, op.edges.size());
                list += op.list.size();
                edge += op.edges.size();
            }
        }
    }
    static size_t bytes(const Op& op) { return sizeof(Op) + op.list.size_bytes() + op.edges.size_bytes(); }
    size_t bytes() const { return count * sizeof(Op) + lists.size() * sizeof(int64_t) + edges.size() * sizeof(Edge); }
};

// Rows of one table that are new or changed since they were last written.
struct Dirty {
    size_t written = 1;
    std::set<uint32_t> changed;

    std::vector<uint32_t> take(size_t size) {
        std::vector<uint32_t> ids(changed.begin(), changed.end());
        for (size_t id = written; id < size; ++id) {
            ids.push_back(static_cast<uint32_t>(id));
        }
        written = size;
        changed.clear();
        return ids;
    }
    void change(uint32_t id) {
        if (id < written) {
            changed.insert(id);
        }
    }
};

}  // namespace

struct LogWriter::Impl {
    WriterOptions options;
    Header header;
    uint32_t unit_ns;
    Tables tables;
    std::vector<Pending> pending{1};
    SpareChunks spare;
    size_t pending_bytes = 0;
    size_t table_bytes = 0;
    size_t strings_written = 1;
    Dirty files, handles, processes, tasks;
    Compressor compressor;
    BlockCodec::Encoder encoder;
    SectionFile file;
    std::vector<Derived> known;  // written at the end
    Bytes payload;

    Impl(std::filesystem::path to, Header head, WriterOptions with)
        : options(std::move(with)),
          header(checked(std::move(head))),
          unit_ns(header.time_unit_ns),
          compressor(options.level),
          encoder(options.level),
          file(std::move(to)) {
        options.block_ops = std::clamp<size_t>(options.block_ops, 1, kBlockOps);
        try {
            file.section(SectionType::header, encode_header(header));
        } catch (...) {
            file.discard();  // nobody has a writer to
            throw;
        }
    }

    static Header checked(Header header) {
        if (header.time_unit_ns == 0) {
            throw std::logic_error("time_unit_ns must not be 0");
        }
        return header;
    }

    void flush_tables() {
        if (tables.strings.size() > strings_written) {
            file.section(SectionType::strings, encode_strings(tables.strings, strings_written, compressor));
            strings_written = tables.strings.size();
        }
        if (const auto ids = processes.take(tables.processes.size()); !ids.empty()) {
            file.section(SectionType::processes, encode_processes(tables, ids, compressor));
        }
        if (const auto ids = tasks.take(tables.tasks.size()); !ids.empty()) {
            file.section(SectionType::tasks, encode_tasks(tables, ids, compressor));
        }
        if (const auto ids = files.take(tables.files.size()); !ids.empty()) {
            file.section(SectionType::files, encode_files(tables, ids, compressor));
        }
        if (const auto ids = handles.take(tables.handles.size()); !ids.empty()) {
            file.section(SectionType::handles, encode_handles(tables, ids, compressor));
        }
        table_bytes = 0;
    }

    void grow_tables(size_t bytes) {
        table_bytes += bytes;
        if (table_bytes > kTableBytes) {
            flush_tables();
        }
    }

    // As the codec stores times.
    int64_t round_down(int64_t ns) const {
        const auto unit = static_cast<int64_t>(unit_ns);
        const int64_t rest = ns % unit;
        return ns - (rest < 0 ? rest + unit : rest);
    }

    // Writes the pending ops of these tasks as one section.
    void write_section(std::span<const TaskId> group) {
        flush_tables();
        payload.clear();
        put_varint(payload, group.size());
        std::vector<Run> runs;
        const size_t first_block = file.blocks().size();
        uint32_t start = 0;
        for (const TaskId task : group) {
            Pending& p = pending[task];
            BlockInfo block;
            block.task = task;
            block.ops = static_cast<uint32_t>(p.count);
            block.first = p.done;
            block.file_offset = file.offset();
            block.start = start;
            block.begin = round_down(p.chunks.front().front().begin);
            block.end = round_down(p.last_end);
            p.point_spans();
            put_varint(payload, task);
            put_varint(payload, block.ops);
            put_varint(payload, block.first);
            put_signed(payload, block.begin);
            put_signed(payload, wrapping_sub(block.end, block.begin));
            runs.push_back({p.chunks});
            file.add_block(block);
            start += block.ops;
        }
        encoder.encode(runs, unit_ns, tables.handles, payload);
        file.section(SectionType::ops, payload);
        for (size_t i = first_block; i < file.blocks().size(); ++i) {
            BlockInfo& block = file.blocks()[i];
            block.stored_bytes = static_cast<uint32_t>(file.offset() - block.file_offset);
        }
        for (const TaskId task : group) {
            Pending& p = pending[task];
            pending_bytes -= p.bytes();
            p.done += p.count;
            p.clear(spare);
        }
    }

    void flush_ops(TaskId task) { write_section({&task, 1}); }

    // All pending ops, short blocks of neighbouring tasks together in one section.
    void flush_all() {
        std::vector<TaskId> group;
        size_t ops = 0;
        for (TaskId task = 1; task < pending.size(); ++task) {
            const size_t n = pending[task].count;
            if (n == 0) {
                continue;
            }
            if (!group.empty() && ops + n > options.block_ops) {
                write_section(group);
                group.clear();
                ops = 0;
            }
            group.push_back(task);
            ops += n;
        }
        if (!group.empty()) {
            write_section(group);
        }
    }

    // Puts what is derived of the log in place of its end, and seals it again.
    void add_derived(uint64_t index_offset) {
        std::optional<Derived> derived;
        {
            const LogReader log(file.partial(), {.verify_checksums = false});
            derived = options.derive(log);
        }
        if (!derived || derived->bytes.size() > Derived::kMostBytes) {
            return;
        }
        file.unseal(index_offset);
        file.section(SectionType::derived, encode_derived(*derived, compressor));
        file.seal(compressor);
    }
};

LogWriter::LogWriter(std::filesystem::path path, Header header, WriterOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(header), std::move(options))) {}
LogWriter::~LogWriter() = default;

const Tables& LogWriter::tables() const { return impl_->tables; }
Header& LogWriter::header() { return impl_->header; }

StringId LogWriter::intern(std::string_view text) {
    const size_t before = impl_->tables.strings.size();
    const StringId id = impl_->tables.strings.intern(text);
    // Not flushed here: the row that uses the string follows.
    if (impl_->tables.strings.size() > before) {
        impl_->table_bytes += text.size() + 16;
    }
    return id;
}

FileId LogWriter::add_file(const FileRow& row) {
    impl_->tables.files.push_back(row);
    impl_->grow_tables(sizeof row);
    return static_cast<FileId>(impl_->tables.files.size() - 1);
}

HandleId LogWriter::add_handle(const HandleRow& row) {
    impl_->tables.handles.push_back(row);
    impl_->grow_tables(sizeof row);
    return static_cast<HandleId>(impl_->tables.handles.size() - 1);
}

ProcessId LogWriter::add_process(const ProcessRow& row) {
    impl_->tables.processes.push_back(row);
    return static_cast<ProcessId>(impl_->tables.processes.size() - 1);
}

TaskId LogWriter::add_task(const TaskRow& row) {
    impl_->tables.tasks.push_back(row);
    impl_->pending.emplace_back();
    return static_cast<TaskId>(impl_->tables.tasks.size() - 1);
}

void LogWriter::update_file(FileId id, const FileRow& row) {
    if (impl_->tables.files.at(id) == row) {
        return;
    }
    impl_->tables.files[id] = row;
    impl_->files.change(id);
}

void LogWriter::update_handle(HandleId id, const HandleRow& row) {
    const HandleRow& old = impl_->tables.handles.at(id);
    if (old == row) {
        return;
    }
    if (old.inherited != row.inherited || (repeated_by_ops(old) && (old.file != row.file || old.flags != row.flags))) {
        throw std::logic_error(
            "file and flags of an instance that an op makes must not change: the op takes them from the row");
    }
    impl_->tables.handles[id] = row;
    impl_->handles.change(id);
}

void LogWriter::update_process(ProcessId id, const ProcessRow& row) {
    if (impl_->tables.processes.at(id) == row) {
        return;
    }
    impl_->tables.processes[id] = row;
    impl_->processes.change(id);
}

void LogWriter::update_task(TaskId id, const TaskRow& row) {
    if (impl_->tables.tasks.at(id) == row) {
        return;
    }
    impl_->tables.tasks[id] = row;
    impl_->tasks.change(id);
}

uint64_t LogWriter::append(TaskId task, const Op& op) {
    if (task == 0 || task >= impl_->pending.size()) {
        throw std::logic_error("append to a task that was not added");
    }
    Pending& p = impl_->pending[task];
    if (op.begin < p.last_begin) {
        throw std::logic_error("ops of a task must come in the order of their begin times");
    }
    p.last_begin = op.begin;
    Op& kept = p.push(op, impl_->spare);
    if (!info(op.kind).has(Field::list)) {
        kept.list = {};
    }
    p.lists.insert(p.lists.end(), kept.list.begin(), kept.list.end());
    p.edges.insert(p.edges.end(), op.edges.begin(), op.edges.end());
    p.last_end = std::max(p.last_end, op.end());
    impl_->pending_bytes += Pending::bytes(kept);
    const uint64_t number = p.done + p.count - 1;
    if (p.count >= impl_->options.block_ops) {
        impl_->flush_ops(task);
    } else if (impl_->pending_bytes > impl_->options.memory_bytes) {
        impl_->flush_all();
    }
    return number;
}

uint64_t LogWriter::op_count(TaskId task) const {
    const Pending& p = impl_->pending.at(task);
    return p.done + p.count;
}

void LogWriter::count(Count what, uint64_t n, std::string_view detail) { impl_->tables.count(what, n, detail); }
void LogWriter::count(const Counter& other) { reprise::count(impl_->tables.counters, other); }

void LogWriter::keep(Derived known) {
    if (known.bytes.size() <= Derived::kMostBytes) {
        impl_->known.push_back(std::move(known));
    }
}

void LogWriter::finish() {
    Impl& s = *impl_;
    if (s.file.finished()) {
        return;
    }
    s.flush_all();
    s.flush_tables();
    s.header.time_unit_ns = s.unit_ns;
    s.file.section(SectionType::header, encode_header(s.header));
    s.file.section(SectionType::counters, encode_counters(s.tables));
    for (const Derived& known : s.known) {
        s.file.section(SectionType::derived, encode_derived(known, s.compressor));
    }
    const uint64_t index_offset = s.file.seal(s.compressor);
    if (s.options.derive) {
        s.add_derived(index_offset);
    }
    s.file.finish(s.options.sync);
}

void LogWriter::discard() { impl_->file.discard(); }

uint64_t LogWriter::bytes_written() const { return impl_->file.offset(); }

}  // namespace reprise
