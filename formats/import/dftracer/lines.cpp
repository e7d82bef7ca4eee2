// SPDX-License-Identifier: MIT
#include "formats/import/dftracer/lines.h"

#include <simdjson.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "formats/support/input.h"
#include "formats/support/json_token.h"

namespace reprise::dftracer {
namespace {

namespace od = simdjson::ondemand;

// Greatest time and duration taken: their sum in ns still fits 64 bits.
constexpr int64_t kLatest = INT64_MAX / 1000 / 2;

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; };
    while (!text.empty() && blank(text.back())) {
        text.remove_suffix(1);
    }
    while (!text.empty() && blank(text.front())) {
        text.remove_prefix(1);
    }
    return text;
}

// What is not a plain decimal number below 10^18: negative, beyond 63 bits (addresses), or with a fraction, which is
// rounded. False if it is not a number, or beyond 64 bits.
bool to_odd_integer(std::string_view token, int64_t& into) {
    const char* end = token.data() + token.size();
    if (const auto [stop, error] = std::from_chars(token.data(), end, into); error == std::errc() && stop == end) {
        return true;
    }
    uint64_t big = 0;
    if (const auto [stop, error] = std::from_chars(token.data(), end, big); error == std::errc() && stop == end) {
        into = static_cast<int64_t>(big);
        return true;
    }
    double real = 0;
    if (const auto [stop, error] = std::from_chars(token.data(), end, real); error != std::errc() || stop != end) {
        return false;
    }
    if (!(std::abs(real) < 9.2e18)) {
        return false;
    }
    into = std::llround(real);
    return true;
}

// The first 8 bytes at `raw`, the first in the lowest place.
uint64_t load_8(const char* raw) {
    uint64_t word = 0;
    std::memcpy(&word, raw, 8);
    if constexpr (std::endian::native == std::endian::big) {
        word = __builtin_bswap64(word);
    }
    return word;
}

// The value of 1 to 8 digits at `raw`, behind which 8 bytes are readable, in three multiplications: a loop over digits
// mispredicts its end. False if one is not a digit.
bool to_digits(const char* raw, size_t count, uint64_t& into) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    uint64_t v = (load_8(raw) ^ (kOnes * '0')) << (8 * (8 - count));  // leading zeros
    if (((v + kOnes * 0x76) | v) & (kOnes << 7)) {
        return false;  // a byte above 9
    }
    v = v * 10 + (v >> 8);
    v = ((v & 0x000000ff000000ff) * 0x000f424000000064 + ((v >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >> 32;
    into = v & 0xffffffff;
    return true;
}

// `token` lies in a line, so that its padding is behind it.
bool to_integer(std::string_view token, int64_t& into) {
    uint64_t high = 0, low = 0;
    if (token.empty() || token.size() > 16) {
        return to_odd_integer(token, into);
    }
    if (token.size() <= 8) {
        if (!to_digits(token.data(), token.size(), low)) {
            return to_odd_integer(token, into);
        }
    } else {
        const size_t first = token.size() - 8;
        if (!to_digits(token.data(), first, high) || !to_digits(token.data() + first, 8, low)) {
            return to_odd_integer(token, into);
        }
    }
    into = static_cast<int64_t>(high * 100'000'000 + low);
    return true;
}

// Keys of up to 8 bytes as integers, to switch on.
constexpr uint64_t operator""_key(const char* text, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; ++i) {
        word |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    }
    return word;
}

// The key that begins at `raw` and ends at a quote; 0 if it is longer. At least 9 bytes are readable (padding).
uint64_t key_at(const char* raw) {
    const uint64_t word = load_8(raw);
    constexpr uint64_t kOnes = 0x0101010101010101;
    const uint64_t quotes = word ^ (kOnes * '"');
    const uint64_t zero = (quotes - kOnes) & ~quotes & (kOnes << 7);  // lowest set bit: the first quote
    if (zero) {
        const int bits = std::countr_zero(zero) & ~7;
        return bits == 0 ? 0 : word & (~uint64_t{0} >> (64 - bits));
    }
    return raw[8] == '"' ? word : 0;
}

// The contents of one line, unprocessed.
struct Record {
    Event event;
    std::string_view name, category, phase, host, path, path2, directory_path, value, args_name, command, directory;
    std::string_view epoch, step;
    int64_t pid = 0, tid = 0, parent = 0, version = 0;
    bool has_begin = false, has_duration = false;
    bool path_is_hash = false, host_is_hash = false;
    bool in_range = true;
};

}  // namespace

struct Lines::Impl {
    explicit Impl(Lines& lines) : out(lines) {}

    Lines& out;
    od::parser parser;
    std::string widened;  // a line that is not UTF-8, with each byte from 0x80 on as two
    bool is_widened = false;

    // Hashes are names for the length of one file; 0: used, not yet defined.
    struct Hash {
        StringId text = 0;
        bool redefined = false;
        std::vector<std::pair<size_t, bool>> waiting;  // events (second: path2) to fill in
    };
    std::unordered_map<std::string, Hash> hashes;
    std::unordered_map<std::string, uint16_t> name_rows;
    std::map<std::tuple<StringId, int64_t, int64_t>, uint32_t> thread_rows;

    // The last looked up, because the next line mostly asks for the same.
    std::string last_path, last_host, lookup;
    StringId last_path_id = 0, last_host_id = 0;
    uint16_t recent_names[64] = {};
    uint32_t last_thread_row = UINT32_MAX;
    int64_t last_pid = 0, last_tid = 0;
    StringId last_thread_host = 0;

    StringId text_of(std::string_view text);
    StringId path_of(std::string_view text);
    uint16_t name_of(std::string_view category, std::string_view name);
    uint32_t thread_of(StringId host, int64_t pid, int64_t tid);
    StringId host_of(const Record& record);
    StringId use_hash(std::string_view hash, size_t event, bool second, bool& unsure);
    const char* parse(std::string_view line, Record& record);
    const char* parse_args(od::object args, Record& record);
    const char* take(const Record& record);
    void define(const Record& record);
    void end_of_file();
};

Lines::Lines() : impl_(std::make_unique<Impl>(*this)) {}
Lines::~Lines() = default;

// Interns; undoes the widening of lines that were not UTF-8.
StringId Lines::Impl::text_of(std::string_view text) {
    if (!is_widened) {
        return out.strings.intern(text);
    }
    std::string narrow;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if ((lead & 0xfc) == 0xc0 && i + 1 < text.size()) {
            narrow += static_cast<char>((lead << 6) | (static_cast<unsigned char>(text[++i]) & 0x3f));
        } else {
            narrow += text[i];
        }
    }
    return out.strings.intern(narrow);
}

StringId Lines::Impl::path_of(std::string_view text) {
    if (text == last_path && last_path_id) {
        return last_path_id;
    }
    last_path.assign(text);
    last_path_id = text_of(text);
    if (is_widened) {
        const StringId id = last_path_id;
        last_path_id = 0;
        return id;
    }
    return last_path_id;
}

uint16_t Lines::Impl::name_of(std::string_view category, std::string_view name) {
    // Few names make up a trace: most are found by their length and ends.
    const size_t slot =
        (name.size() + static_cast<unsigned char>(name.front()) * 7u + static_cast<unsigned char>(name.back()) * 31u) %
        std::size(recent_names);
    uint16_t& recent = recent_names[slot];
    if (recent < out.names.size() && out.names[recent].name == name && out.names[recent].category == category) {
        return recent;
    }
    lookup.assign(category).append(1, '\0').append(name);
    if (out.names.size() >= UINT16_MAX) {  // hostile: a trace has a few hundred; the rest are of one name
        category = "other";
        name = "other";
        lookup = "other";
    }
    const auto [row, is_new] = name_rows.try_emplace(lookup, static_cast<uint16_t>(out.names.size()));
    if (is_new) {
        out.names.push_back(make_name(category, name));
    }
    return recent = row->second;
}

uint32_t Lines::Impl::thread_of(StringId host, int64_t pid, int64_t tid) {
    if (last_thread_row != UINT32_MAX && host == last_thread_host && pid == last_pid && tid == last_tid) {
        return last_thread_row;
    }
    const auto [row, is_new] = thread_rows.try_emplace({host, pid, tid}, static_cast<uint32_t>(out.threads.size()));
    if (is_new) {
        out.threads.push_back({host, pid, tid});
    }
    last_thread_host = host;
    last_pid = pid;
    last_tid = tid;
    return last_thread_row = row->second;
}

StringId Lines::Impl::host_of(const Record& record) {
    if (record.host.empty()) {
        return 0;
    }
    if (record.host == last_host && last_host_id) {
        return last_host_id;
    }
    last_host.assign(record.host);
    last_host_id = 0;
    if (record.host_is_hash) {
        const auto found = hashes.find(last_host);
        if (found == hashes.end() || !found->second.text) {
            last_host.clear();  // a host without a name is its hash
            return text_of(record.host);
        }
        return last_host_id = found->second.text;
    }
    return last_host_id = text_of(record.host);
}

// Name behind a hash; 0 where it comes later, and the event is then filled in.
StringId Lines::Impl::use_hash(std::string_view hash, size_t event, bool second, bool& unsure) {
    lookup.assign(hash);
    Hash& row = hashes[lookup];
    unsure = row.redefined;
    if (!row.text) {
        row.waiting.emplace_back(event, second);
    }
    return row.text;
}

// FH, HH, SH: name and value of a hash.
void Lines::Impl::define(const Record& record) {
    if (record.name != "FH" && record.name != "HH" && record.name != "SH") {
        return;
    }
    if (record.value.empty()) {
        return;
    }
    const StringId text = text_of(record.args_name);
    Hash& row = hashes[std::string(record.value)];
    if (row.text && row.text != text) {
        ++out.hash_collisions;
        row.redefined = true;
    }
    row.text = text;
    last_host_id = 0;
    for (const auto& [event, second] : row.waiting) {
        (second ? out.events[event].path2 : out.events[event].path) = text;
    }
    row.waiting.clear();
}

const char* Lines::Impl::parse_args(od::object args, Record& record) {
    Event& event = record.event;
    for (auto entry : args) {
        if (entry.error()) {
            return "the arguments are not JSON";
        }
        od::field&& field = std::move(entry).value_unsafe();  // a copy costs as much as the rest
        const uint64_t key = key_at(field.key().raw());
        od::value& value = field.value();
        const auto number = [&](auto& into, uint16_t known) {
            int64_t wide = 0;
            if (!to_integer(token_of(value), wide)) {
                record.in_range = false;
                return;
            }
            into = static_cast<std::remove_reference_t<decltype(into)>>(wide);
            if (into != wide) {
                record.in_range = false;
            }
            event.known |= known;
        };
        const auto string = [&](std::string_view& into) {
            if (value.get_string().get(into)) {
                into = token_of(value);
            }
        };
        switch (key) {
            case "ret"_key:
            case "ret_len"_key:
            case "address"_key: number(event.result, kResult); break;
            case "fd"_key: number(event.fd, kFd); break;
            case "offset"_key: number(event.offset, kOffset); break;
            case "whence"_key:
            case "flags"_key:
            case "cmd"_key: number(event.flags, kFlags); break;
            case "count"_key:
            case "length"_key:
            case "num"_key:
            case "str_len"_key:
            case "bufsize"_key: number(event.size, kSize); break;
            case "size"_key: number(event.mode, kMode); break;  // of an item of fread
            case "mode"_key:
                if (const std::string_view token = token_of(value);
                    !token.empty() && token[0] >= '0' && token[0] <= '9') {
                    number(event.mode, kMode);
                } else {
                    event.mode = fopen_flags(token);
                }
                break;
            case "fname"_key:
                string(record.path);
                record.path_is_hash = false;
                break;
            case "fhash"_key:
                record.path = token_of(value);
                record.path_is_hash = true;
                break;
            case "newpath"_key:
            case "path2"_key: string(record.path2); break;
            case "pathname"_key: string(record.directory_path); break;
            case "hostname"_key: string(record.host); break;
            case "hhash"_key:
                record.host = token_of(value);
                record.host_is_hash = true;
                break;
            case "epoch"_key: record.epoch = token_of(value); break;
            case "step"_key: record.step = token_of(value); break;
            case "name"_key: string(record.args_name); break;
            case "value"_key: record.value = token_of(value); break;
            case "cmd_hash"_key: record.command = token_of(value); break;
            case "cwd"_key:
            case "cwd_hash"_key: record.directory = token_of(value); break;
            case "ppid"_key:
                if (!to_integer(token_of(value), record.parent)) {
                    record.parent = 0;
                }
                break;
            case "version"_key:
                if (!to_integer(token_of(value), record.version)) {
                    record.version = 0;
                }
                break;
            default: break;
        }
    }
    return nullptr;
}

// Null, or what is wrong. The views of `record` last until the next call.
const char* Lines::Impl::parse(std::string_view line, Record& record) {
    od::document document;
    if (parser.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING).get(document)) {
        return "not JSON";
    }
    od::object object;
    if (document.get_object().get(object)) {
        return "not a JSON object";
    }
    const char* problem = nullptr;
    for (auto entry : object) {
        if (entry.error()) {
            return "not JSON";
        }
        od::field&& field = std::move(entry).value_unsafe();
        const uint64_t key = key_at(field.key().raw());
        od::value& value = field.value();
        const auto number = [&](int64_t& into) {
            if (to_integer(token_of(value), into)) {
                return true;
            }
            problem = "a number is missing or beyond 64 bits";
            return false;
        };
        switch (key) {
            case "id"_key: {
                int64_t id = 0;
                if (number(id)) {
                    record.event.id = static_cast<uint32_t>(id) ^
                                      static_cast<uint32_t>(static_cast<uint64_t>(id) >> 32) * 0x9e3779b9u;
                }
                break;
            }
            case "name"_key: record.name = token_of(value); break;
            case "cat"_key: record.category = token_of(value); break;
            case "pid"_key: number(record.pid); break;
            case "tid"_key: number(record.tid); break;
            case "ts"_key: record.has_begin = number(record.event.begin); break;
            case "dur"_key: record.has_duration = number(record.event.duration); break;
            case "ph"_key: record.phase = token_of(value); break;
            case "args"_key: {
                od::object args;
                if (value.get_object().get(args)) {
                    break;  // absent or null
                }
                if (const char* wrong = parse_args(args, record)) {
                    return wrong;
                }
                break;
            }
            default: break;
        }
    }
    return problem;
}

// Takes a parsed line into the tables. Null, or what is wrong.
const char* Lines::Impl::take(const Record& record) {
    const std::string_view phase = record.phase;
    if (phase == "M" || phase == "4") {
        define(record);
        return nullptr;
    }
    if (phase == "C" || phase == "2" || phase == "3" || phase == "A") {
        ++out.aggregated;
        return nullptr;
    }
    if (phase != "X" && phase != "1") {
        return phase.empty() ? "no phase (\"ph\")" : "an unknown phase (\"ph\")";
    }
    if (!record.has_begin || !record.has_duration) {
        return "no time or no duration";
    }
    Event event = record.event;
    if (event.begin < 0 || event.begin > kLatest || event.duration < 0 || event.duration > kLatest) {
        return "a time out of range";
    }
    if (record.name.empty()) {
        return "no name";
    }

    event.name = name_of(record.category, record.name);
    event.thread = thread_of(host_of(record), record.pid, record.tid);
    Name& name = out.names[event.name];
    if (!record.in_range && name.call != Call::span) {
        return "an argument that is not a number, or out of range";
    }
    ++name.events;
    const size_t index = out.events.size();
    if (name.call == Call::meta) {
        if (record.name == "start") {
            Start start{event.thread, 0, 0, record.parent};
            const auto text = [&](std::string_view hash) {
                const auto found = hash.empty() ? hashes.end() : hashes.find(std::string(hash));
                return found == hashes.end() ? StringId{0} : found->second.text;
            };
            start.command = text(record.command);
            start.directory = text(record.directory);
            out.starts.push_back(start);
            if (record.version) {
                out.version = record.version;
            }
        }
        return nullptr;
    }
    if (name.call == Call::span) {
        if (!to_integer(record.epoch, event.offset)) {
            event.offset = -1;
        }
        if (!to_integer(record.step, event.size)) {
            event.size = -1;
        }
    }
    bool unsure = false;
    if (!record.directory_path.empty()) {  // openat: its path argument, beside that of the directory
        const auto found = hashes.find(std::string(record.directory_path));
        event.path = found != hashes.end() && found->second.text ? found->second.text : text_of(record.directory_path);
    } else if (!record.path.empty()) {
        event.path = record.path_is_hash ? use_hash(record.path, index, false, unsure) : path_of(record.path);
    }
    if (unsure) {
        event.known |= kPathUnsure;
    }
    if (!record.path2.empty()) {
        // A hash in the newer dialects, the path itself in the first.
        event.path2 = record.path_is_hash && record.path2[0] != '/' ? use_hash(record.path2, index, true, unsure)
                                                                    : text_of(record.path2);
    }
    out.events.push_back(event);
    return nullptr;
}

// Hashes that were used and never defined keep standing for some file: the same hash, the same made-up name.
void Lines::Impl::end_of_file() {
    for (auto& [hash, row] : hashes) {
        if (row.waiting.empty()) {
            continue;
        }
        const StringId text = out.strings.intern("/unnamed-by-dftracer/" + hash);
        out.names_missing += row.waiting.size();
        for (const auto& [event, second] : row.waiting) {
            (second ? out.events[event].path2 : out.events[event].path) = text;
        }
    }
    hashes.clear();
    last_host.clear();
    last_host_id = 0;
}

void Lines::read(const std::filesystem::path& path, const std::function<void(uint64_t)>& progress) {
    Impl& my = *impl_;
    LineReader reader(path);
    reader.set_truncated_ok(true);
    for (std::string_view raw; reader.next(raw);) {
        if (progress && reader.line_number() % 4096 == 0) {
            progress(reader.file_bytes());
        }
        std::string_view line = trimmed(raw);
        if (line.ends_with(',')) {
            line = trimmed(line.substr(0, line.size() - 1));
        }
        if (line.empty() || line == "[" || line == "]") {
            continue;
        }
        if (line.front() == '[') {
            line = trimmed(line.substr(1));
        }
        if (line.back() == ']' && line.size() > 1 && line[line.size() - 2] == '}') {
            line.remove_suffix(1);
        }
        Record record;
        my.is_widened = false;
        const char* problem = my.parse(line, record);
        if (problem && !simdjson::validate_utf8(line.data(), line.size())) {
            // Paths are bytes and DFTracer does not escape them. Read as Latin-1, the line is JSON again.
            my.widened.clear();
            for (const char c : line) {
                const auto byte = static_cast<unsigned char>(c);
                if (byte < 0x80) {
                    my.widened += c;
                } else {
                    my.widened += static_cast<char>(0xc0 | (byte >> 6));
                    my.widened += static_cast<char>(0x80 | (byte & 0x3f));
                }
            }
            my.widened.reserve(my.widened.size() + simdjson::SIMDJSON_PADDING);
            my.is_widened = true;
            record = Record();
            problem = my.parse(my.widened, record);
        }
        const uint64_t aggregated_before = aggregated;
        if (!problem) {
            problem = my.take(record);
        }
        if (problem && ++malformed == 1) {
            first_malformed = reader.where() + ": " + problem;
        }
        if (aggregated == 1 && aggregated_before == 0) {
            first_aggregated = reader.where();
        }
    }
    if (reader.truncated()) {
        ++truncated_files;
    }
    if (progress) {
        progress(reader.file_bytes());
    }
    my.end_of_file();
}

}  // namespace reprise::dftracer
