// SPDX-License-Identifier: MIT
// The op log on disk: LogWriter and LogReader side by side own the format (formats/FORMAT.md explains it).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/op.h"
#include "formats/oplog/tables.h"

namespace reprise {

inline constexpr uint16_t kFormatVersion = 2;  // that LogWriter writes
inline constexpr uint16_t kOldestVersion = 1;  // that LogReader reads
inline constexpr size_t kBlockOps = 65536;     // most ops in a block

/// One decoded block: arrays of equal length `count()`, one per column. Columns that no op of the block has point at a
/// shared array of zeros (fd, fd2: of -1). Reuse one object for many blocks: its memory is kept. Short blocks of
/// several tasks are stored together; objects that hold such neighbours share one decoded copy.
class OpBlock {
public:
    OpBlock();
    ~OpBlock();
    OpBlock(OpBlock&&) noexcept;
    OpBlock& operator=(OpBlock&&) noexcept;

    TaskId task = 0;
    uint64_t first = 0;                      // number of the first op within its task
    size_t count() const { return count_; }  // ops

    const uint8_t* kind = nullptr;      // OpKind
    const int64_t* begin = nullptr;     // ns
    const int64_t* duration = nullptr;  // ns
    const int64_t* result = nullptr;
#define FIELD(name, type, meaning) const type* name = nullptr;
#include "formats/oplog/ops.def"
    /// `list` holds an index for list_of, 0: empty.
    std::span<const int64_t> list_of(size_t i) const;
    std::span<const Edge> edges_of(size_t i) const;
    bool has_edges() const;

    /// Gives back the decoder's working memory; decoding into this block again takes it again.
    void drop_scratch();

    /// Row form; its spans stay valid until this block is decoded again.
    Op row(size_t i) const;

    /// Holds `count` rows instead, which add_row() brings one after the other; their lists and edges are copied. For
    /// logs that are made from others (LogView).
    void start_rows(TaskId task, uint64_t first, size_t count);
    void add_row(const Op& op);

private:
    friend class BlockCodec;
    friend class LogReader;
    struct Storage;
    struct Scratch;
    void view(size_t start, size_t count);
    size_t start_ = 0, count_ = 0;
    size_t rows_ = 0;  // added so far
    std::shared_ptr<Storage> storage_;
    std::unique_ptr<Scratch> scratch_;
};

class LogReader;

/// What was computed of a whole log and is kept in it, for those who would else compute it again. Whoever uses one
/// checks that its version is their own.
struct Derived {
    std::string name;
    uint32_t version = 0;
    std::vector<uint8_t> bytes;

    static constexpr size_t kMostBytes = size_t{64} << 20;
};

struct WriterOptions {
    int level = 6;                            // zstd
    size_t block_ops = kBlockOps;             // at most kBlockOps
    size_t memory_bytes = size_t{192} << 20;  // ops buffered over all tasks; all are written out beyond it
    bool sync = true;                         // fsync before the rename
    /// Called in finish() with the log as it stands, all but this; what it returns is kept in the log. Nothing is where
    /// that is more than Derived::kMostBytes.
    std::function<std::optional<Derived>(const LogReader&)> derive = {};
};

/// Writes `path`.partial and renames it in finish(). A writer destroyed without finish() leaves the .partial file,
/// recoverable up to its last whole block. Throws Error (machine) when the disk is full or not writable.
/// Not thread-safe. Add the rows an op refers to before the op; rows may be changed later through update_*.
class LogWriter {
public:
    LogWriter(std::filesystem::path path, Header header, WriterOptions options = {});
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    const Tables& tables() const;
    Header& header();  // rewritten in finish(); time_unit_ns must not change

    StringId intern(std::string_view text);
    FileId add_file(const FileRow& row);
    HandleId add_handle(const HandleRow& row);
    ProcessId add_process(const ProcessRow& row);
    TaskId add_task(const TaskRow& row);
    void update_file(FileId id, const FileRow& row);
    void update_handle(HandleId id, const HandleRow& row);  // file and flags of instances that ops make must stay
    void update_process(ProcessId id, const ProcessRow& row);
    void update_task(TaskId id, const TaskRow& row);

    /// Ops of one task in the order of their begin times; returns the op's number within its task, from 0.
    uint64_t append(TaskId task, const Op& op);
    /// Ops appended to a task so far.
    uint64_t op_count(TaskId task) const;

    /// See formats/support/counters.h.
    void count(Count what, uint64_t n = 1, std::string_view detail = {});
    void count(const Counter& other);
    /// Keeps it in the log as if it had been derived; nothing where that is more than Derived::kMostBytes.
    void keep(Derived known);

    void finish();
    /// Removes the .partial file instead of finishing.
    void discard();
    uint64_t bytes_written() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct BlockInfo {
    TaskId task = 0;
    uint32_t ops = 0;
    uint64_t first = 0;         // number of the first op within its task
    uint64_t file_offset = 0;   // of the section the block is stored in, bytes
    uint32_t stored_bytes = 0;  // of that section
    uint32_t start = 0;         // ops before this block within the section
    int64_t begin = 0;          // ns, of the first op
    int64_t end = 0;            // ns, greatest end of an op of the block
};

struct ReadOptions {
    bool recover = false;  // accept a file that was cut: read up to its last whole block
    bool verify_checksums = true;
};

/// A log that is made from another one block by block, as it is read.
struct LogView {
    std::filesystem::path path;  // in messages
    Header header;
    Tables tables;
    std::vector<BlockInfo> blocks;  // per task in op order; file_offset, stored_bytes and start are the maker's own
    /// May be called from several threads with different blocks; both may throw Error.
    std::function<void(const BlockInfo&, OpBlock&)> decode;
    std::function<void(const BlockInfo&)> forget;
};

/// Whether a file that begins so is an op log, perhaps one that is cut or damaged.
bool is_op_log(std::string_view head);

/// Reads a log through mmap. Throws Error (bad_input) that names the file and position for anything that is not a whole
/// log of a version it knows. decode() is const and may be called from several threads with different blocks.
class LogReader {
public:
    explicit LogReader(const std::filesystem::path& path, ReadOptions options = {});
    explicit LogReader(LogView view);
    ~LogReader();
    LogReader(LogReader&&) noexcept;
    LogReader& operator=(LogReader&&) noexcept;

    const std::filesystem::path& path() const;
    uint16_t format_version() const;
    const Header& header() const;
    const Tables& tables() const;
    /// What LogWriter was given to keep under that name; none where the log was recovered.
    std::optional<Derived> derived(std::string_view name) const;
    uint64_t file_bytes() const;
    uint64_t op_count() const;
    /// Ops of one task.
    uint64_t op_count(TaskId task) const;
    /// Set where `recover` was needed: what was missing, as a sentence.
    const std::optional<std::string>& recovered() const;

    /// All blocks, in file order; per task in op order.
    std::span<const BlockInfo> blocks() const;
    std::vector<BlockInfo> blocks_of(TaskId task) const;
    void decode(const BlockInfo& block, OpBlock& into) const;
    /// Lets the kernel drop the block's pages; the log can still be read again.
    void forget(const BlockInfo& block) const;

    /// Calls visit(op, number within the task) for each op of a task in order.
    void for_each(TaskId task, const std::function<void(const Op&, uint64_t)>& visit) const;
    /// All ops by (begin, task, number). Holds one block per task.
    void for_each_in_time(const std::function<void(TaskId, const Op&, uint64_t)>& visit) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
