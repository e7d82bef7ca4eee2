// SPDX-License-Identifier: MIT
#include "formats/oplog/join.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/layout.h"
#include "formats/oplog/section_file.h"
#include "formats/oplog/table_codec.h"
#include "formats/support/compress.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr std::string_view kAgain = "have every rank write its log again";

bool is_table(SectionType type) {
    switch (type) {
        case SectionType::strings:
        case SectionType::files:
        case SectionType::handles:
        case SectionType::processes:
        case SectionType::tasks: return true;
        case SectionType::header:
        case SectionType::counters:
        case SectionType::ops:
        case SectionType::index:
        case SectionType::derived: break;
    }
    return false;
}

/// Sections as they come. Payloads stay until the next one.
class PartReader {
public:
    PartReader(std::string_view name, const ByteSource& source) : name_(name), source_(source) {}

    [[noreturn]] void fail(const std::string& what, std::string_view todo = kAgain) const {
        throw bad_input(at(name_, section_at_), what, todo);
    }

    /// Fills `into`; throws Corrupt where the part ends before.
    void fill(std::span<uint8_t> into) {
        while (!into.empty()) {
            const size_t got = source_(into);
            if (got == 0) {
                throw Corrupt("it was cut");
            }
            into = into.subspan(std::min(got, into.size()));
            position_ += got;
        }
    }

    void check_head() {
        FileHead head;
        fill({reinterpret_cast<uint8_t*>(&head), sizeof head});
        if (head.magic != kMagic) {
            throw Corrupt("this is not an op log");
        }
        if (head.version != kFormatVersion) {
            throw Corrupt("op log version " + std::to_string(head.version) + ", expected " +
                          std::to_string(kFormatVersion));
        }
    }

    SectionHead next() {
        section_at_ = position_;
        SectionHead head;
        fill({reinterpret_cast<uint8_t*>(&head), sizeof head});
        if (head.type < static_cast<uint8_t>(SectionType::header) ||
            head.type > static_cast<uint8_t>(SectionType::derived)) {
            throw Corrupt("section type " + std::to_string(head.type) + " is not known");
        }
        // Memory is taken as bytes come, whatever the head promises.
        for (size_t have = 0; have < head.size;) {
            const size_t more = std::min(std::max(kStep, have), head.size - have);
            if (buffer_.size() < have + more) {
                buffer_.resize(have + more);
            }
            fill({buffer_.data() + have, more});
            have += more;
        }
        size_ = head.size;
        if (section_checksum(head.type, payload()) != head.checksum) {
            throw Corrupt("the checksum of this " + std::string(section_name(static_cast<SectionType>(head.type))) +
                          " section differs");
        }
        return head;
    }
    ByteView payload() const { return {buffer_.data(), size_}; }
    uint64_t section_at() const { return section_at_; }

    /// Behind the index there is the end mark, and nothing else.
    void check_end() {
        FileEnd end;
        fill({reinterpret_cast<uint8_t*>(&end), sizeof end});
        uint8_t more = 0;
        if (end.magic != kEndMagic || end.index_offset != section_at_ || source_({&more, 1}) != 0) {
            throw Corrupt("its end is not where the index says");
        }
    }

private:
    static constexpr size_t kStep = size_t{4} << 20;

    const std::string name_;
    const ByteSource& source_;
    Bytes buffer_;
    size_t size_ = 0;
    uint64_t position_ = 0, section_at_ = 0;
};

bool same_strings(const StringTable& a, const StringTable& b) {
    bool same = a.size() == b.size();
    for (StringId id = 1; same && id < a.size(); ++id) {
        same = a[id] == b[id];
    }
    return same;
}

/// What to do with a counter that several parts have.
bool adds_up(std::string_view name) {
    return name.starts_with("left_out_") || name == info(Count::no_space).name ||
           name == info(Count::recovered_log).name;
}

int trust_rank(std::string_view word) { return word == "good" ? 0 : word == "fair" ? 1 : 2; }

}  // namespace

struct LogJoin::Impl {
    JoinOptions options;
    Compressor compressor{6};
    Decompressor decompressor;
    SectionFile file;
    std::optional<Header> header;                              // none before the first part
    Tables tables;                                             // the first part's
    std::vector<std::pair<SectionType, uint64_t>> table_sums;  // of its sections: type and checksum
    std::vector<Counter> counters;
    std::vector<uint32_t> owner;  // by task: the part that has its ops, from 1 on; 0: none yet
    std::vector<uint64_t> next;   // by task: number of its next op
    std::vector<std::string> names;
    uint64_t ops = 0;

    Impl(std::filesystem::path path, JoinOptions with) : options(with), file(std::move(path)) {}

    /// What is known of one part while it is read.
    struct Part {
        Header header;
        bool has_header = false, has_ops = false;
        std::vector<std::pair<SectionType, uint64_t>> sums;
        std::vector<std::pair<SectionType, Bytes>> tables;  // not of the first part
        Tables counted;                                     // its counters
    };

    bool first() const { return names.size() == 1; }

    void decode_table(SectionType type, ByteView payload, Tables& into) {
        switch (type) {
            case SectionType::strings: return decode_strings(payload, into.strings, decompressor);
            case SectionType::files: return decode_files(payload, into, decompressor);
            case SectionType::handles: return decode_handles(payload, into, decompressor);
            case SectionType::processes: return decode_processes(payload, into, decompressor);
            case SectionType::tasks: return decode_tasks(payload, into, decompressor);
            case SectionType::header:
            case SectionType::counters:
            case SectionType::ops:
            case SectionType::index:
            case SectionType::derived: break;
        }
    }

    void take_table(PartReader& in, const SectionHead& head, Part& part) {
        const auto type = static_cast<SectionType>(head.type);
        if (part.has_ops) {
            throw Corrupt("its tables go on behind its first ops: only logs of runs can be joined");
        }
        part.sums.emplace_back(type, head.checksum);
        if (first()) {
            decode_table(type, in.payload(), tables);
            file.stored_section(type, in.payload(), head.checksum);
        } else {
            part.tables.emplace_back(type, Bytes(in.payload().begin(), in.payload().end()));
        }
    }

    /// Before its first ops, or at its end. Equal tables are the same bytes, but for other versions of the compressor.
    void check_tables(Part& part) {
        if (first()) {
            check_references(tables);
            table_sums = part.sums;
            owner.assign(tables.tasks.size(), 0);
            next.assign(tables.tasks.size(), 0);
            return;
        }
        if (part.sums != table_sums) {
            Tables other;
            for (const auto& [type, bytes] : part.tables) {
                decode_table(type, bytes, other);
            }
            if (!same_strings(other.strings, tables.strings) || other.files != tables.files ||
                other.handles != tables.handles || other.processes != tables.processes || other.tasks != tables.tasks) {
                throw Corrupt("it is of another recording than " + names.front());
            }
        }
        part.tables.clear();
    }

    void copy_ops(PartReader& in, const SectionHead& head) {
        ByteReader blocks(in.payload());
        std::vector<BlockInfo> found(blocks.count(kBlockOps));
        uint32_t start = 0;
        for (BlockInfo& block : found) {
            block.task = static_cast<TaskId>(blocks.count(UINT32_MAX));
            block.ops = static_cast<uint32_t>(blocks.count(kBlockOps - start));
            block.first = blocks.varint();
            block.begin = blocks.signed_varint();
            block.end = wrapping_add(block.begin, blocks.signed_varint());
            block.file_offset = file.offset();
            block.stored_bytes = static_cast<uint32_t>(sizeof(SectionHead) + in.payload().size());
            block.start = start;
            start += block.ops;
            claim(block);
        }
        if (found.empty()) {
            throw Corrupt("a section of ops without a block");
        }
        std::for_each(found.begin(), found.end(), [&](const BlockInfo& block) { file.add_block(block); });
        ops += start;
        file.stored_section(SectionType::ops, in.payload(), head.checksum);
    }

    void claim(const BlockInfo& block) {
        if (block.task == 0 || block.task >= owner.size()) {
            throw Corrupt("a block of a task that is not in the table");
        }
        const auto part = static_cast<uint32_t>(names.size());
        if (owner[block.task] != 0 && owner[block.task] != part) {
            throw Corrupt("it has ops of task " + std::to_string(block.task) + ", and so has " +
                          names[owner[block.task] - 1]);
        }
        if (block.ops == 0 || block.first != next[block.task]) {
            throw Corrupt("the blocks of task " + std::to_string(block.task) + " do not follow one another");
        }
        owner[block.task] = part;
        next[block.task] += block.ops;
    }

    /// False behind the index.
    bool take(PartReader& in, Part& part) {
        const SectionHead head = in.next();
        const auto type = static_cast<SectionType>(head.type);
        if (is_table(type)) {
            take_table(in, head, part);
            return true;
        }
        switch (type) {
            case SectionType::header:
                part.header = decode_header(in.payload());
                if (!part.has_header && first()) {
                    file.stored_section(type, in.payload(), head.checksum);
                }
                part.has_header = true;
                check_units(part.header);
                break;
            case SectionType::ops:
                if (!part.has_ops) {
                    check_tables(part);
                }
                part.has_ops = true;
                copy_ops(in, head);
                break;
            case SectionType::counters: decode_counters(in.payload(), part.counted); break;
            case SectionType::index: in.check_end(); return false;
            default: break;  // derived: of the part alone
        }
        return true;
    }

    void check_units(const Header& other) const {
        if (header && other.time_unit_ns != header->time_unit_ns) {
            throw Corrupt("it counts time in other units than " + names.front());
        }
    }

    void add(std::string_view name, const ByteSource& source) {
        names.emplace_back(name);
        PartReader in(name, source);
        Part part;
        try {
            in.check_head();
            while (take(in, part)) {
            }
        } catch (const Corrupt& problem) {
            if (!options.recover || !part.has_header) {
                in.fail(problem.what());
            }
            part.counted.count(Count::recovered_log);
        }
        try {
            if (!part.has_header) {
                throw Corrupt("there is no header");
            }
            if (!part.has_ops) {
                check_tables(part);
            }
        } catch (const Corrupt& problem) {
            in.fail(problem.what());
        }
        merge(part);
    }

    void merge(const Part& part) {
        if (header) {
            merge_headers(*header, part.header);
        } else {
            header = part.header;
        }
        for (const Counter& counter : part.counted.counters) {
            const auto same = std::find_if(counters.begin(), counters.end(),
                                           [&](const Counter& each) { return each.name == counter.name; });
            if (same == counters.end()) {
                counters.push_back(counter);
            } else {
                same->value =
                    adds_up(counter.name) ? same->value + counter.value : std::max(same->value, counter.value);
            }
        }
    }

    /// In the order in which one run writes them.
    Tables sorted_counters() const {
        Tables out;
        const auto place = [](const Counter& counter) {
            const std::span<const CounterInfo> all = all_counters();
            const auto found = std::find_if(all.begin(), all.end(),
                                            [&](const CounterInfo& each) { return each.name == counter.name; });
            return adds_up(counter.name) ? found - all.begin() + 1 : 0;
        };
        out.counters = counters;
        std::stable_sort(out.counters.begin(), out.counters.end(),
                         [&](const Counter& a, const Counter& b) { return place(a) < place(b); });
        return out;
    }
};

LogJoin::LogJoin(std::filesystem::path path, JoinOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), options)) {}
LogJoin::~LogJoin() = default;

void LogJoin::add(std::string_view name, const ByteSource& part) { impl_->add(name, part); }

Header& LogJoin::header() {
    if (!impl_->header) {
        throw std::logic_error("a joined log has no header before its first part");
    }
    return *impl_->header;
}

uint64_t LogJoin::ops() const { return impl_->ops; }
uint64_t LogJoin::bytes_written() const { return impl_->file.offset(); }

void LogJoin::finish() {
    Impl& s = *impl_;
    s.file.section(SectionType::header, encode_header(header()));
    s.file.section(SectionType::counters, encode_counters(s.sorted_counters()));
    s.file.seal(s.compressor);
    s.file.finish(s.options.sync);
}

void LogJoin::discard() { impl_->file.discard(); }

ByteSource file_source(const std::filesystem::path& path) {
    auto fd = std::make_shared<UniqueFd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd->valid()) {
        throw bad_input(path.string(), "cannot be opened: " + reason(errno), "check the name and its permissions");
    }
    ::posix_fadvise(fd->get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    return [fd, path](std::span<uint8_t> into) -> size_t {
        for (;;) {
            const ssize_t got = ::read(fd->get(), into.data(), into.size());
            if (got >= 0) {
                return static_cast<size_t>(got);
            }
            if (errno != EINTR) {
                throw machine_error(path.string() + " cannot be read: " + reason(errno), remedy(errno, {}));
            }
        }
    };
}

namespace {

void add_word(std::string& list, const std::string& word) {
    const std::string all = ", " + list + ", ";
    if (all.find(", " + word + ", ") == std::string::npos) {
        list += ", " + word;
    }
}

}  // namespace

void merge_headers(Header& into, const Header& from) {
    add_word(into.host, from.host);
    add_word(into.kernel, from.kernel);
    if (read_fact(into, fact::ended) == "complete" && read_fact(from, fact::ended)) {
        write_fact(into, fact::ended, *read_fact(from, fact::ended));
    }
    const auto trust = read_fact(into, fact::trust), theirs = read_fact(from, fact::trust);
    if (trust && theirs && trust_rank(*theirs) > trust_rank(*trust)) {
        write_fact(into, fact::trust, *theirs);
        write_fact(into, fact::trust_reason, read_fact(from, fact::trust_reason).value_or(""));
    }
    if (const auto failed = read_fact(from, fact::failed); failed && !read_fact(into, fact::failed)) {
        write_fact(into, fact::failed, *failed);
    }
    const auto read = read_fact(into, fact::device_read), more = read_fact(from, fact::device_read);
    if (read && more) {
        write_fact(into, fact::device_read, *read + std::min(*more, INT64_MAX - *read));
    }
    constexpr std::string_view kMerged[] = {fact::ended.key, fact::trust.key, fact::trust_reason.key,
                                            fact::device_read.key, fact::failed.key};
    std::erase_if(into.extra, [&](const auto& pair) {
        if (std::find(std::begin(kMerged), std::end(kMerged), pair.first) != std::end(kMerged)) {
            return false;
        }
        const auto other = from.extra.find(pair.first);
        return other == from.extra.end() || other->second != pair.second;
    });
}

}  // namespace reprise
