// SPDX-License-Identifier: MIT
// Reads the op log. The writer of the same bytes is writer.cpp.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <utility>

#include "formats/oplog/block_codec.h"
#include "formats/oplog/block_storage.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/layout.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/table_codec.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr std::string_view kRecoverHint =
    "copy the file again, or use what is whole of it: info, prepare, replay, predict and others take --recover";

/// Guards the tables of shared blocks of all logs. Held over a fork: a replay forks processes while other threads
/// decode, and a child would inherit it locked by a thread that it does not have, or a table that is half changed.
std::mutex shared_blocks_mutex;
[[maybe_unused]] const int held_over_fork = pthread_atfork(
    [] { shared_blocks_mutex.lock(); }, [] { shared_blocks_mutex.unlock(); }, [] { shared_blocks_mutex.unlock(); });

class Mapping {
public:
    Mapping() = default;
    explicit Mapping(const std::filesystem::path& path) {
        const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd.valid() && errno == EMFILE) {
            throw machine_error(path.string() + " cannot be opened: " + reason(errno), remedy(errno, {}));
        }
        if (!fd.valid()) {
            throw bad_input(path.string(), std::string("cannot be opened: ") + std::strerror(errno),
                            "check the name and its permissions");
        }
        struct stat info {};
        const bool regular = ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode);
        if (regular && info.st_size > 0) {
            size_ = static_cast<size_t>(info.st_size);
            void* at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
            if (at == MAP_FAILED) {
                throw machine_error(path.string() + " cannot be mapped: " + std::strerror(errno),
                                    "copy it to a local disk");
            }
            data_ = static_cast<const uint8_t*>(at);
        }
        if (!regular) {
            throw bad_input(path.string(), "is not a regular file", "give the name of an .oplog file");
        }
    }
    ~Mapping() {
        if (data_) {
            ::munmap(const_cast<uint8_t*>(data_), size_);
        }
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    ByteView bytes() const { return {data_, size_}; }

private:
    const uint8_t* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace

struct LogReader::Impl {
    std::filesystem::path path;
    ReadOptions options;
    Mapping mapping;
    Header header;
    Tables tables;
    uint16_t version = 0;
    std::vector<std::pair<uint64_t, ByteView>> derived;  // position, section
    std::vector<BlockInfo> blocks;
    std::vector<uint64_t> ops_of;  // per task
    uint64_t ops = 0;
    std::optional<std::string> recovered;
    TableView view;
    Decompressor decompressor;
    bool has_header = false;
    std::function<void(const BlockInfo&, OpBlock&)> make_block;  // of a view
    std::function<void(const BlockInfo&)> forget_block;

    explicit Impl(LogView from)
        : path(std::move(from.path)),
          header(std::move(from.header)),
          tables(std::move(from.tables)),
          version(kFormatVersion),
          blocks(std::move(from.blocks)),
          make_block(std::move(from.decode)),
          forget_block(std::move(from.forget)) {
        count_ops();
    }

    Impl(const std::filesystem::path& from, ReadOptions with) : path(from), options(with), mapping(from) {
        check_head();
        bool whole = true;
        try {
            read_by_index();
        } catch (const Error& error) {
            if (!options.recover) {
                throw;
            }
            whole = false;
            recovered = error.what();
        }
        if (!whole) {
            read_in_order();
        }
        try {
            check_references(tables);
        } catch (const Corrupt& problem) {
            fail(0, problem.what());
        }
        const std::string_view unreadable = info(Count::header_values_unreadable).name;
        if (std::none_of(tables.counters.begin(), tables.counters.end(),
                         [&](const Counter& counter) { return counter.name == unreadable; })) {
            tables.count(Count::header_values_unreadable, unreadable_facts(header));
        }
        view = {tables.strings.size(), tables.files.size(), tables.tasks.size(), tables.handles};
        count_ops();
    }

    void count_ops() {
        ops_of.assign(tables.tasks.size(), 0);
        for (const BlockInfo& block : blocks) {
            if (block.task == 0 || block.task >= tables.tasks.size()) {
                fail(block.file_offset, "a block of a task that is not in the table");
            }
            if (block.first != ops_of[block.task]) {
                fail(block.file_offset,
                     "the blocks of task " + std::to_string(block.task) + " do not follow one another");
            }
            ops_of[block.task] += block.ops;
            ops += block.ops;
        }
    }

    [[noreturn]] void fail(uint64_t position, const std::string& what) const {
        throw bad_input(path.string() + ":" + std::to_string(position), what, kRecoverHint);
    }

    void check_head() {
        const ByteView all = mapping.bytes();
        if (all.empty()) {
            throw bad_input(path.string(), "the file is empty, an op log was expected", "record or import again");
        }
        const size_t shown = std::min(all.size(), kMagic.size());
        if (std::memcmp(all.data(), kMagic.data(), shown) != 0) {
            throw bad_input(path.string(), "this is not an op log",
                            "make one with `reprise import` or `reprise capture`");
        }
        if (all.size() < sizeof(FileHead)) {
            fail(all.size(), "the file ends within its first 16 bytes");
        }
        FileHead head;
        std::memcpy(&head, all.data(), sizeof head);
        version = head.version;
        if (version < kOldestVersion || version > kFormatVersion) {
            throw bad_input(
                path.string() + ":8",
                "op log version " + std::to_string(version) + ", this reprise reads versions " +
                    std::to_string(kOldestVersion) + " to " + std::to_string(kFormatVersion),
                version > kFormatVersion ? "use a newer reprise" : "use an older reprise, or import the source again");
        }
    }

    // The section at `at`; throws Corrupt where there is none.
    std::pair<SectionType, ByteView> section(uint64_t at) const {
        const ByteView all = mapping.bytes();
        if (at > all.size() || all.size() - at < sizeof(SectionHead)) {
            throw Corrupt("the file ends within a section");
        }
        SectionHead head;
        std::memcpy(&head, all.data() + at, sizeof head);
        if (head.type < static_cast<uint8_t>(SectionType::header) ||
            head.type > static_cast<uint8_t>(SectionType::derived)) {
            throw Corrupt("section type " + std::to_string(head.type) + " is not known");
        }
        if (head.size > all.size() - at - sizeof head) {
            throw Corrupt("the file ends within a section of " + std::to_string(head.size) + " bytes");
        }
        const ByteView payload = all.subspan(at + sizeof head, head.size);
        if (options.verify_checksums && section_checksum(head.type, payload) != head.checksum) {
            throw Corrupt("the checksum of this " + std::string(section_name(static_cast<SectionType>(head.type))) +
                          " section differs");
        }
        return {static_cast<SectionType>(head.type), payload};
    }

    void read_table(SectionType type, ByteView payload) {
        switch (type) {
            case SectionType::header:
                header = decode_header(payload);
                has_header = true;
                return;
            case SectionType::strings: return decode_strings(payload, tables.strings, decompressor);
            case SectionType::files: return decode_files(payload, tables, decompressor);
            case SectionType::handles: return decode_handles(payload, tables, decompressor);
            case SectionType::processes: return decode_processes(payload, tables, decompressor);
            case SectionType::tasks: return decode_tasks(payload, tables, decompressor);
            case SectionType::counters: return decode_counters(payload, tables);
            case SectionType::derived:
                derived.emplace_back(static_cast<uint64_t>(payload.data() - mapping.bytes().data()), payload);
                return;
            case SectionType::ops:
            case SectionType::index: break;
        }
        throw Corrupt("a " + std::string(section_name(type)) + " section among the tables");
    }

    void read_by_index() {
        const ByteView all = mapping.bytes();
        FileEnd end;
        if (all.size() < sizeof(FileHead) + sizeof end) {
            fail(all.size(), "the file was cut");
        }
        std::memcpy(&end, all.data() + all.size() - sizeof end, sizeof end);
        if (end.magic != kEndMagic) {
            fail(all.size(), "the file was cut: its end mark is missing");
        }
        uint64_t at = end.index_offset;
        try {
            const auto [type, payload] = section(at);
            if (type != SectionType::index) {
                throw Corrupt("the end mark does not point at the index");
            }
            ByteReader in(payload);
            const Bytes raw = get_blob(in, decompressor, size_t{256} << 20);
            ByteReader index(raw);
            uint64_t table_at = 0;
            for (size_t n = index.count(index.left()); n > 0; --n) {
                const auto listed = static_cast<SectionType>(index.byte());
                table_at += index.varint();
                at = table_at;
                const auto [found, bytes] = section(at);
                if (found != listed) {
                    throw Corrupt("the index names a " + std::string(section_name(listed)) + " section here");
                }
                read_table(found, bytes);
            }
            at = end.index_offset;
            const size_t n = index.count(index.left());
            blocks.reserve(n);
            BlockInfo before;
            for (size_t i = 0; i < n; ++i) {
                BlockInfo block;
                block.task = static_cast<TaskId>(index.count(UINT32_MAX));
                block.ops = static_cast<uint32_t>(index.count(kBlockOps));
                block.first = index.varint();
                block.file_offset = before.file_offset + index.varint();
                block.stored_bytes = static_cast<uint32_t>(index.count(UINT32_MAX));
                block.start = static_cast<uint32_t>(index.count(kBlockOps));
                block.begin = wrapping_add(before.begin, index.signed_varint());
                block.end = wrapping_add(block.begin, index.signed_varint());
                if (block.ops == 0) {
                    throw Corrupt("an empty block in the index");
                }
                blocks.push_back(block);
                before = block;
            }
            if (index.left() || in.left()) {
                throw Corrupt("bytes are left over at the end of the index");
            }
            if (!has_header) {
                throw Corrupt("there is no header");
            }
        } catch (const Corrupt& problem) {
            fail(at, problem.what());
        }
    }

    // Recovery: section after section from the start, as far as they are whole.
    void read_in_order() {
        header = {};
        tables = {};
        blocks.clear();
        derived.clear();
        has_header = false;
        std::vector<uint64_t> next(1, 0);
        uint64_t at = sizeof(FileHead);
        std::string reason = "no more sections";
        try {
            while (at < mapping.bytes().size()) {
                const auto [type, payload] = section(at);
                if (type == SectionType::index) {
                    break;
                }
                if (type == SectionType::ops) {
                    ByteReader in(payload);
                    std::vector<BlockInfo> found = section_blocks(in, at);
                    next.resize(std::max<size_t>(next.size(), tables.tasks.size()), 0);
                    for (BlockInfo& block : found) {
                        if (block.task >= next.size()) {
                            throw Corrupt("a block of a task that is not in the table");
                        }
                        if (block.first != next[block.task]) {
                            throw Corrupt("a block is missing before this one");
                        }
                        next[block.task] += block.ops;
                        block.stored_bytes = static_cast<uint32_t>(sizeof(SectionHead) + payload.size());
                    }
                    blocks.insert(blocks.end(), found.begin(), found.end());
                } else if (type != SectionType::derived) {  // it is of the whole log
                    read_table(type, payload);
                }
                at += sizeof(SectionHead) + payload.size();
            }
        } catch (const Corrupt& problem) {
            reason = problem.what();
        }
        if (!has_header) {
            throw bad_input(path.string() + ":" + std::to_string(at), "nothing can be recovered: " + reason,
                            "record or import again");
        }
        recovered =
            "read up to byte " + std::to_string(at) + " of " + std::to_string(mapping.bytes().size()) + ": " + reason;
        tables.count(Count::recovered_log);
    }

    // The blocks an ops section says it holds.
    static std::vector<BlockInfo> section_blocks(ByteReader& in, uint64_t at) {
        std::vector<BlockInfo> found(in.count(kBlockOps));
        uint32_t start = 0;
        for (BlockInfo& block : found) {
            block.task = static_cast<TaskId>(in.count(UINT32_MAX));
            block.ops = static_cast<uint32_t>(in.count(kBlockOps - start));
            block.first = in.varint();
            block.begin = in.signed_varint();
            block.end = wrapping_add(block.begin, in.signed_varint());
            block.file_offset = at;
            block.start = start;
            start += block.ops;
            if (block.ops == 0) {
                throw Corrupt("an empty block");
            }
        }
        if (found.empty()) {
            throw Corrupt("a section of ops without a block");
        }
        return found;
    }

    // Sections of several blocks that some OpBlock holds decoded, by file offset.
    std::unordered_map<uint64_t, std::weak_ptr<OpBlock::Storage>> shared;
    // The last two of many blocks, also when nobody holds them: tasks that follow one another, each of a few ops, would
    // else decode 65,536 for theirs.
    std::array<std::shared_ptr<OpBlock::Storage>, 2> recent;
    static constexpr size_t kManyBlocks = 64;

    void decode(const BlockInfo& block, OpBlock& into);
};

bool is_op_log(std::string_view head) {
    return head.size() >= kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

LogReader::LogReader(const std::filesystem::path& path, ReadOptions options)
    : impl_(std::make_unique<Impl>(path, options)) {}
LogReader::LogReader(LogView view) : impl_(std::make_unique<Impl>(std::move(view))) {}
LogReader::~LogReader() = default;
LogReader::LogReader(LogReader&&) noexcept = default;
LogReader& LogReader::operator=(LogReader&&) noexcept = default;

const std::filesystem::path& LogReader::path() const { return impl_->path; }
uint16_t LogReader::format_version() const { return impl_->version; }
const Header& LogReader::header() const { return impl_->header; }
const Tables& LogReader::tables() const { return impl_->tables; }
uint64_t LogReader::file_bytes() const { return impl_->mapping.bytes().size(); }
uint64_t LogReader::op_count() const { return impl_->ops; }
uint64_t LogReader::op_count(TaskId task) const { return task < impl_->ops_of.size() ? impl_->ops_of[task] : 0; }
const std::optional<std::string>& LogReader::recovered() const { return impl_->recovered; }
std::span<const BlockInfo> LogReader::blocks() const { return impl_->blocks; }

std::optional<Derived> LogReader::derived(std::string_view name) const {
    for (const auto& [at, section] : impl_->derived) {
        try {
            if (derived_name(section) == name) {
                Decompressor decompressor;
                return decode_derived(section, decompressor);
            }
        } catch (const Corrupt& problem) {
            impl_->fail(at, problem.what());
        }
    }
    return std::nullopt;
}

std::vector<BlockInfo> LogReader::blocks_of(TaskId task) const {
    std::vector<BlockInfo> found;
    for (const BlockInfo& block : impl_->blocks) {
        if (block.task == task) {
            found.push_back(block);
        }
    }
    return found;
}

void LogReader::Impl::decode(const BlockInfo& block, OpBlock& into) {
    const auto look = [&] {
        const std::vector<BlockInfo>& blocks = into.storage_->blocks;  // by start
        const auto one = std::lower_bound(blocks.begin(), blocks.end(), block.start,
                                          [](const BlockInfo& other, auto start) { return other.start < start; });
        if (one != blocks.end() && one->start == block.start && one->task == block.task && one->ops == block.ops &&
            one->first == block.first) {
            return into.view(block.start, block.ops);
        }
        throw Corrupt("these blocks are not those the index names");
    };
    {
        const std::lock_guard lock(shared_blocks_mutex);
        if (const auto found = shared.find(block.file_offset); found != shared.end()) {
            if (auto storage = found->second.lock()) {
                into.storage_ = std::move(storage);
                return look();
            }
            shared.erase(found);
        }
    }
    // Memory that another object looks at, or could come to look at, is not written to.
    if (!into.storage_ || into.storage_->shared) {
        into.storage_ = std::make_shared<OpBlock::Storage>();
    }
    OpBlock::Storage& storage = *into.storage_;
    const auto [type, payload] = section(block.file_offset);
    if (type != SectionType::ops) {
        throw Corrupt("the index names a section of ops here");
    }
    ByteReader in(payload);
    storage.blocks = section_blocks(in, block.file_offset);
    std::vector<RunInfo> runs;
    for (const BlockInfo& one : storage.blocks) {
        runs.push_back({one.ops, one.begin});
    }
    BlockCodec::decode(in.take(in.left()), header.time_unit_ns, runs, view, into);
    look();
    if (runs.size() > 1) {
        storage.shared = true;
        const std::lock_guard lock(shared_blocks_mutex);
        shared[block.file_offset] = into.storage_;
        if (runs.size() >= kManyBlocks) {
            recent[1] = std::exchange(recent[0], into.storage_);
        }
    }
}

void LogReader::decode(const BlockInfo& block, OpBlock& into) const {
    try {
        if (impl_->make_block) {
            impl_->make_block(block, into);
        } else {
            impl_->decode(block, into);
        }
    } catch (const Corrupt& problem) {
        impl_->fail(block.file_offset, problem.what());
    }
    into.task = block.task;
    into.first = block.first;
}

void LogReader::forget(const BlockInfo& block) const {
    if (impl_->make_block) {
        return impl_->forget_block(block);
    }
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const ByteView all = impl_->mapping.bytes();
    const uint64_t from = block.file_offset / page * page;
    const uint64_t to = std::min<uint64_t>(all.size(), block.file_offset + block.stored_bytes) / page * page;
    if (to > from) {
        ::madvise(const_cast<uint8_t*>(all.data() + from), to - from, MADV_DONTNEED);
    }
}

void LogReader::for_each(TaskId task, const std::function<void(const Op&, uint64_t)>& visit) const {
    OpBlock decoded;
    for (const BlockInfo& block : impl_->blocks) {
        if (block.task != task) {
            continue;
        }
        decode(block, decoded);
        for (size_t i = 0; i < decoded.count(); ++i) {
            visit(decoded.row(i), decoded.first + i);
        }
        forget(block);
    }
}

void LogReader::for_each_in_time(const std::function<void(TaskId, const Op&, uint64_t)>& visit) const {
    struct Cursor {
        std::vector<BlockInfo> blocks;
        size_t next_block = 0, at = 0;
        OpBlock decoded;
    };
    std::vector<std::unique_ptr<Cursor>> cursors(impl_->tables.tasks.size());
    for (const BlockInfo& block : impl_->blocks) {
        auto& cursor = cursors[block.task];
        if (!cursor) {
            cursor = std::make_unique<Cursor>();
        }
        cursor->blocks.push_back(block);
    }
    using Entry = std::pair<int64_t, TaskId>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    // Blocks are decoded when their time comes, so that tasks that run one after another share no memory.
    for (TaskId task = 1; task < cursors.size(); ++task) {
        if (cursors[task]) {
            queue.emplace(cursors[task]->blocks[0].begin, task);
        }
    }
    while (!queue.empty()) {
        const TaskId task = queue.top().second;
        queue.pop();
        Cursor& cursor = *cursors[task];
        if (cursor.at == cursor.decoded.count()) {
            if (cursor.next_block > 0) {
                forget(cursor.blocks[cursor.next_block - 1]);
            }
            decode(cursor.blocks[cursor.next_block++], cursor.decoded);
            cursor.at = 0;
        }
        // As long as this task's ops come before every other task's, no need to go through the queue.
        for (;;) {
            visit(task, cursor.decoded.row(cursor.at), cursor.decoded.first + cursor.at);
            ++cursor.at;
            if (cursor.at == cursor.decoded.count()) {
                break;
            }
            if (!queue.empty() && Entry(cursor.decoded.begin[cursor.at], task) > queue.top()) {
                break;
            }
        }
        if (cursor.at < cursor.decoded.count()) {
            queue.emplace(cursor.decoded.begin[cursor.at], task);
        } else if (cursor.next_block < cursor.blocks.size()) {
            queue.emplace(cursor.blocks[cursor.next_block].begin, task);
        } else {
            cursors[task].reset();
        }
    }
}

}  // namespace reprise
