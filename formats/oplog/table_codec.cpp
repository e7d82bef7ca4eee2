// SPDX-License-Identifier: MIT
#include "formats/oplog/table_codec.h"

#include <algorithm>

namespace reprise {
namespace {

// Most raw bytes of one table section; the writer cuts sections long before.
constexpr size_t kSectionLimit = size_t{256} << 20;
constexpr size_t kLeastRows = 64;  // that a table grows by

// A table section: the ids, then column after column, each value as the signed distance from the row before.
// Encoder and decoder run the same list of columns over it.
struct ColumnWriter {
    Bytes raw;
    int64_t last = 0;

    void start() { last = 0; }
    template <class T>
    void value(const T& field) {
        const auto now = static_cast<int64_t>(field);
        put_signed(raw, wrapping_sub(now, last));
        last = now;
    }
};

struct ColumnReader {
    ByteReader raw;
    int64_t last = 0;

    void start() { last = 0; }
    template <class T>
    void value(T& field) {
        last = wrapping_add(last, raw.signed_varint());
        field = static_cast<T>(last);
    }
};

// Reads an enum column and refuses values beyond its last name.
template <class Codec, class Rows, class Member>
void enum_column(Codec& codec, Rows& rows, Member member, uint8_t greatest, const char* what) {
    codec.start();
    for (auto* row : rows) {
        auto value = static_cast<uint8_t>(row->*member);
        codec.value(value);
        if (value > greatest) {
            throw Corrupt(std::string(what) + " " + std::to_string(value) + " is not known");
        }
        if constexpr (!std::is_const_v<std::remove_reference_t<decltype(*row)>>) {
            row->*member = static_cast<std::decay_t<decltype(row->*member)>>(value);
        }
    }
}

template <class Codec, class Rows, class Member>
void column(Codec& codec, Rows& rows, Member member) {
    codec.start();
    for (auto* row : rows) {
        codec.value(row->*member);
    }
}

template <class Codec, class Row>
void file_columns(Codec& codec, std::vector<Row*>& rows) {
    column(codec, rows, &FileRow::path);
    column(codec, rows, &FileRow::device);
    column(codec, rows, &FileRow::inode);
    column(codec, rows, &FileRow::generation);
    column(codec, rows, &FileRow::size);
    column(codec, rows, &FileRow::size_exact);
    enum_column(codec, rows, &FileRow::type, static_cast<uint8_t>(FileType::anonymous), "file type");
    enum_column(codec, rows, &FileRow::role, static_cast<uint8_t>(Role::system), "role");
    enum_column(codec, rows, &FileRow::origin, static_cast<uint8_t>(Origin::absent), "origin");
    column(codec, rows, &FileRow::mode);
    column(codec, rows, &FileRow::target);
}

template <class Codec, class Row>
void handle_columns(Codec& codec, std::vector<Row*>& rows) {
    column(codec, rows, &HandleRow::file);
    column(codec, rows, &HandleRow::flags);
    enum_column(codec, rows, &HandleRow::kind, static_cast<uint8_t>(HandleKind::other), "kind of handle");
    column(codec, rows, &HandleRow::inherited);
    column(codec, rows, &HandleRow::process);
    column(codec, rows, &HandleRow::fd);
}

template <class Codec, class Row>
void process_columns(Codec& codec, std::vector<Row*>& rows) {
    column(codec, rows, &ProcessRow::pid);
    column(codec, rows, &ProcessRow::parent);
    column(codec, rows, &ProcessRow::command);
    column(codec, rows, &ProcessRow::host);
}

template <class Codec, class Row>
void task_columns(Codec& codec, std::vector<Row*>& rows) {
    column(codec, rows, &TaskRow::process);
    column(codec, rows, &TaskRow::tid);
    column(codec, rows, &TaskRow::name);
}

template <class Row, class Columns>
Bytes encode_rows(const std::vector<Row>& table, std::span<const uint32_t> ids, Compressor& compressor,
                  Columns columns) {
    ColumnWriter writer;
    put_varint(writer.raw, ids.size());
    for (const uint32_t id : ids) {
        writer.value(id);
    }
    std::vector<const Row*> rows;
    rows.reserve(ids.size());
    for (const uint32_t id : ids) {
        rows.push_back(&table[id]);
    }
    columns(writer, rows);
    Bytes out;
    put_blob(out, writer.raw, compressor);
    return out;
}

template <class Row, class Columns>
void decode_rows(ByteView bytes, std::vector<Row>& table, Decompressor& decompressor, Columns columns) {
    ByteReader in(bytes);
    const Bytes raw = get_blob(in, decompressor, kSectionLimit);
    if (in.left()) {
        throw Corrupt("bytes are left over at the end of a table");
    }
    ColumnReader reader{ByteReader(raw)};
    const size_t n = reader.raw.count(reader.raw.left());
    std::vector<uint32_t> ids(n);
    uint32_t previous = 0;
    for (uint32_t& id : ids) {
        int64_t value = 0;
        reader.value(value);
        // New ids follow the table's end one by one, so that a hostile id cannot ask for memory.
        if (value <= previous || value > static_cast<int64_t>(table.size())) {
            throw Corrupt("row id " + std::to_string(value) + " is out of order");
        }
        previous = id = static_cast<uint32_t>(value);
        if (id == table.size()) {
            // By an eighth: of a table of millions, half of the memory would else be for rows that never come.
            if (table.size() == table.capacity()) {
                table.reserve(table.size() + table.size() / 8 + kLeastRows);
            }
            table.emplace_back();
        }
    }
    std::vector<Row*> rows;
    rows.reserve(n);
    for (const uint32_t id : ids) {
        rows.push_back(&table[id]);
    }
    columns(reader, rows);
    if (reader.raw.left()) {
        throw Corrupt("bytes are left over at the end of a table");
    }
}

void check(const char* what, uint64_t id, size_t size) {
    if (id >= size && id != 0) {
        throw Corrupt(std::string(what) + " " + std::to_string(id) + " is not in its table of " +
                      std::to_string(size - 1));
    }
}

}  // namespace

std::string_view section_name(SectionType type) {
    switch (type) {
        case SectionType::header: return "header";
        case SectionType::strings: return "strings";
        case SectionType::files: return "files";
        case SectionType::handles: return "handles";
        case SectionType::processes: return "processes";
        case SectionType::tasks: return "tasks";
        case SectionType::counters: return "counters";
        case SectionType::ops: return "ops";
        case SectionType::index: return "index";
        case SectionType::derived: return "derived";
    }
    return "?";
}

Bytes encode_header(const Header& header) {
    Bytes out;
    put_varint(out, header.time_unit_ns);
    put_signed(out, header.origin_unix_ns);
    for (const std::string* text :
         {&header.clock, &header.source, &header.tool, &header.host, &header.kernel, &header.command}) {
        put_string(out, *text);
    }
    put_varint(out, header.extra.size());
    for (const auto& [key, value] : header.extra) {
        put_string(out, key);
        put_string(out, value);
    }
    return out;
}

Header decode_header(ByteView bytes) {
    ByteReader in(bytes);
    Header header;
    const uint64_t unit = in.varint();
    if (unit == 0 || unit > 1000000000) {
        throw Corrupt("a time unit of " + std::to_string(unit) + " ns");
    }
    header.time_unit_ns = static_cast<uint32_t>(unit);
    header.origin_unix_ns = in.signed_varint();
    for (std::string* text :
         {&header.clock, &header.source, &header.tool, &header.host, &header.kernel, &header.command}) {
        *text = in.string();
    }
    for (size_t n = in.count(in.left()); n > 0; --n) {
        std::string key(in.string());
        header.extra[std::move(key)] = in.string();
    }
    if (in.left()) {
        throw Corrupt("bytes are left over at the end of the header");
    }
    return header;
}

// Strings are stored as the number of bytes shared with the one before and the rest: paths share long beginnings.
Bytes encode_strings(const StringTable& strings, size_t first, Compressor& compressor) {
    Bytes raw, lengths, text;
    std::string_view previous;
    for (size_t id = first; id < strings.size(); ++id) {
        const std::string_view now = strings[static_cast<StringId>(id)];
        const auto shared = static_cast<size_t>(
            std::mismatch(previous.begin(), previous.end(), now.begin(), now.end()).first - previous.begin());
        put_varint(lengths, shared);
        put_varint(lengths, now.size() - shared);
        text.insert(text.end(), now.begin() + static_cast<std::ptrdiff_t>(shared), now.end());
        previous = now;
    }
    put_varint(raw, strings.size() - first);
    raw.insert(raw.end(), lengths.begin(), lengths.end());
    raw.insert(raw.end(), text.begin(), text.end());
    Bytes out;
    put_blob(out, raw, compressor);
    return out;
}

void decode_strings(ByteView bytes, StringTable& strings, Decompressor& decompressor) {
    ByteReader in(bytes);
    const Bytes raw = get_blob(in, decompressor, kSectionLimit);
    if (in.left()) {
        throw Corrupt("bytes are left over at the end of the strings");
    }
    ByteReader lengths(raw);
    const size_t n = lengths.count(lengths.left());
    std::vector<std::pair<size_t, size_t>> sizes(n);
    for (auto& [shared, rest] : sizes) {
        shared = lengths.count(kSectionLimit);
        rest = lengths.count(lengths.left());
    }
    ByteReader text = lengths;
    std::string previous;
    size_t total = 0;
    for (const auto& [shared, rest] : sizes) {
        if (shared > previous.size()) {
            throw Corrupt("a string shares more than the one before it has");
        }
        previous.resize(shared);
        const ByteView bytes_of = text.take(rest);
        previous.append(reinterpret_cast<const char*>(bytes_of.data()), bytes_of.size());
        total += previous.size();
        if (total > kSectionLimit) {
            throw Corrupt("more string bytes than a section may have");
        }
        strings.append(previous);
    }
    if (text.left()) {
        throw Corrupt("bytes are left over at the end of the strings");
    }
}

#define TABLE(name, member)                                                                                     \
    Bytes encode_##name(const Tables& tables, std::span<const uint32_t> ids, Compressor& compressor) {          \
        return encode_rows(tables.name, ids, compressor, [](auto& codec, auto& rows) { member(codec, rows); }); \
    }                                                                                                           \
    void decode_##name(ByteView bytes, Tables& tables, Decompressor& decompressor) {                            \
        decode_rows(bytes, tables.name, decompressor, [](auto& codec, auto& rows) { member(codec, rows); });    \
    }
TABLE(files, file_columns)
TABLE(handles, handle_columns)
TABLE(processes, process_columns)
TABLE(tasks, task_columns)
#undef TABLE

Bytes encode_counters(const Tables& tables) {
    Bytes out;
    put_varint(out, tables.counters.size());
    for (const Counter& counter : tables.counters) {
        put_string(out, counter.name);
        out.push_back(static_cast<uint8_t>(counter.severity));
        put_varint(out, counter.value);
        put_string(out, counter.meaning);
    }
    return out;
}

void decode_counters(ByteView bytes, Tables& tables) {
    ByteReader in(bytes);
    tables.counters.clear();
    for (size_t n = in.count(in.left()); n > 0; --n) {
        Counter counter;
        counter.name = in.string();
        const uint8_t severity = in.byte();
        if (severity > static_cast<uint8_t>(Severity::loss)) {
            throw Corrupt("severity " + std::to_string(severity) + " is not known");
        }
        counter.severity = static_cast<Severity>(severity);
        counter.value = in.varint();
        counter.meaning = in.string();
        tables.counters.push_back(std::move(counter));
    }
    if (in.left()) {
        throw Corrupt("bytes are left over at the end of the counters");
    }
}

Bytes encode_derived(const Derived& derived, Compressor& compressor) {
    Bytes out;
    put_string(out, derived.name);
    put_varint(out, derived.version);
    put_blob(out, derived.bytes, compressor);
    return out;
}

Derived decode_derived(ByteView bytes, Decompressor& decompressor) {
    ByteReader in(bytes);
    Derived derived;
    derived.name = in.string();
    derived.version = static_cast<uint32_t>(in.count(UINT32_MAX));
    derived.bytes = get_blob(in, decompressor, Derived::kMostBytes);
    if (in.left()) {
        throw Corrupt("bytes are left over at the end of a derived section");
    }
    return derived;
}

std::string_view derived_name(ByteView bytes) { return ByteReader(bytes).string(); }

void check_references(const Tables& tables) {
    const size_t strings = tables.strings.size();
    for (const FileRow& row : tables.files) {
        check("string", row.path, strings);
        check("string", row.target, strings);
    }
    for (const HandleRow& row : tables.handles) {
        check("file", row.file, tables.files.size());
        check("process", row.process, tables.processes.size());
    }
    for (size_t id = 1; id < tables.processes.size(); ++id) {
        const ProcessRow& row = tables.processes[id];
        check("process", row.parent, tables.processes.size());
        check("string", row.command, strings);
        check("string", row.host, strings);
        if (row.parent == id) {
            throw Corrupt("process " + std::to_string(id) + " is its own parent");
        }
    }
    for (const TaskRow& row : tables.tasks) {
        check("process", row.process, tables.processes.size());
        check("string", row.name, strings);
    }
}

}  // namespace reprise
