// SPDX-License-Identifier: MIT
// The fio importer: iologs of version 2 (waits) and 3 (time stamps). Each log is one job, so one process of one thread.
// Format: fio(1), "Trace file format"; the unit of version 3's stamps, microseconds, was found by measuring fio 3.33.
#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "formats/assemble/assembler.h"
#include "formats/import/importer.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr std::string_view kMagic = "fio version ";
constexpr int64_t kLatest = INT64_MAX / 1000 / 4;  // us; times in ns still fit

bool sniff(std::string_view head) { return head.starts_with(kMagic); }

enum class Action : uint8_t { add, open, close, read, write, sync, datasync, sync_range, trim, wait };

constexpr struct {
    std::string_view name;
    Action action;
    bool has_range;  // offset and length follow
} kActions[] = {
    {"add", Action::add, false},          {"open", Action::open, false},
    {"close", Action::close, false},      {"read", Action::read, true},
    {"write", Action::write, true},       {"sync", Action::sync, true},
    {"datasync", Action::datasync, true}, {"sync_file_range", Action::sync_range, true},
    {"trim", Action::trim, true},         {"wait", Action::wait, true},
};

struct Line {
    int64_t time = 0;  // us since the job began
    int64_t offset = 0, length = 0;
    uint32_t job = 0, file = 0;
    Action action = Action::add;
};

struct File {
    StringId name = 0;
    bool written = false;
    int32_t fd = -1;  // while open
};

struct Job {
    int version = 0;
    int64_t clock = 0;  // us; version 2: the waits so far
    std::filesystem::path log;
    std::unordered_map<StringId, uint32_t> file_rows;  // by name
    std::vector<File> files;
    int32_t next_fd = 3;
};

bool to_number(std::string_view token, int64_t& into) {
    const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), into);
    return error == std::errc() && stop == token.data() + token.size() && into >= 0;
}

// Takes the last word off `text`; empty if there is none.
std::string_view last_word(std::string_view& text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
        text.remove_suffix(1);
    }
    const size_t cut = text.find_last_of(' ');
    const std::string_view word = cut == text.npos ? text : text.substr(cut + 1);
    text = cut == text.npos ? std::string_view{} : text.substr(0, cut);
    return word;
}

class Import {
public:
    Import(std::span<const std::filesystem::path> inputs, const ImportOptions& options)
        : inputs_(inputs), options_(options) {}
    void run(const std::filesystem::path& output);

private:
    void read(const std::filesystem::path& path);
    const char* take(std::string_view text);
    uint32_t file_of(std::string_view name, bool adds);
    bool open(const Line& line, Job& job, File& file, RawCall& raw);
    void feed(const Line& line, Assembler& assembler);
    void feed(LogWriter& writer);

    std::span<const std::filesystem::path> inputs_;
    const ImportOptions& options_;
    std::vector<Job> jobs_;
    std::vector<Line> lines_;
    StringTable names_;
    static constexpr uint32_t kNoJob = UINT32_MAX;
    std::vector<uint32_t> job_of_file_;  // by name, within one input: jobs that append to one log interleave
    uint64_t done_ = 0, malformed_ = 0, cut_ = 0, waits_in_v3_ = 0, adopted_ = 0, relative_ = 0;
    uint64_t calls_ = 0;  // lines that are one: not `add`, waits, and what fio ignores
    std::string adopted_name_;
    std::string first_malformed_;
};

uint32_t Import::file_of(std::string_view name, bool adds) {
    const StringId id = names_.intern(name);
    job_of_file_.resize(names_.size(), kNoJob);
    uint32_t& job = job_of_file_[id];
    if (adds || job == kNoJob) {
        job = static_cast<uint32_t>(jobs_.size() - 1);
    }
    Job& owner = jobs_[job];
    const auto [row, is_new] = owner.file_rows.try_emplace(id, static_cast<uint32_t>(owner.files.size()));
    if (is_new) {
        owner.files.push_back({id, false, -1});
    }
    lines_.back().job = job;
    return row->second;
}

// Null, or what is wrong with the line.
const char* Import::take(std::string_view text) {
    Line line;
    const int version = jobs_.back().version;
    if (version == 3) {
        const size_t space = text.find(' ');
        if (space == text.npos || !to_number(text.substr(0, space), line.time)) {
            return "expected a time stamp first";
        }
        if (line.time > kLatest) {
            return "a time out of range";
        }
        text.remove_prefix(space + 1);
    }
    // From the right, so that names may hold spaces.
    std::string_view rest = text;
    std::string_view word = last_word(rest);
    const auto find = [](std::string_view name) {
        return std::find_if(std::begin(kActions), std::end(kActions),
                            [&](const auto& row) { return row.name == name; });
    };
    auto row = find(word);
    if (row == std::end(kActions) || row->has_range) {
        const std::string_view length = word, offset = last_word(rest);
        std::string_view before = rest;
        row = find(last_word(before));
        if (row != std::end(kActions) && row->has_range) {
            if (!to_number(offset, line.offset) || !to_number(length, line.length)) {
                return "an offset or length that is not a number, or beyond 64 bits";
            }
            rest = before;
        } else if (offset == "wait" && to_number(length, line.offset)) {
            row = find("wait");  // "wait us" and "name wait us" occur as well
        } else {
            return "expected a file name and add, open, close, read, write, sync, datasync, trim or wait";
        }
    }
    if (line.length > INT64_MAX - line.offset) {
        return "a range beyond 64 bits";
    }
    line.action = row->action;
    Job& job = jobs_.back();
    if (line.action == Action::wait) {
        if (version == 3) {
            ++waits_in_v3_;
            return nullptr;
        }
        if (line.offset > kLatest - job.clock) {
            return "a time out of range";
        }
        line.time = job.clock;
        job.clock += line.offset;
        line.job = static_cast<uint32_t>(jobs_.size() - 1);
        lines_.push_back(line);
        return nullptr;
    }
    if (rest.empty()) {
        return "expected a file name";
    }
    lines_.push_back(line);
    const uint32_t file = file_of(rest, line.action == Action::add);
    Line& stored = lines_.back();
    stored.file = file;
    Job& owner = jobs_[stored.job];
    if (owner.version == 2) {
        stored.time = owner.clock;
    }
    if (line.action == Action::write || line.action == Action::trim) {
        owner.files[file].written = true;
    }
    return nullptr;
}

void Import::read(const std::filesystem::path& path) {
    LineReader reader(path);
    reader.set_truncated_ok(true);
    job_of_file_.clear();
    bool begun = false;
    for (std::string_view text; reader.next(text);) {
        if (options_.progress && reader.line_number() % 4096 == 0) {
            options_.progress(done_ + reader.file_bytes());
        }
        if (text.starts_with(kMagic)) {  // again inside: several jobs wrote to one log
            const char digit = text.size() > kMagic.size() ? text[kMagic.size()] : '?';
            if (digit != '2' && digit != '3') {
                throw bad_input(reader.where(),
                                "is a fio iolog of version " + escape_line(text.substr(kMagic.size(), 8)) +
                                    "; versions 2 and 3 can be read",
                                "record it again with write_iolog of fio 1.17 or newer");
            }
            jobs_.push_back({});
            jobs_.back().version = digit - '0';
            jobs_.back().log = path;
            begun = true;
            continue;
        }
        if (!begun) {
            throw bad_input(reader.where(),
                            "expected \"fio version 2 iolog\" or \"fio version 3 iolog\" in the first line", {});
        }
        if (text.find_first_not_of(" \r\t") == text.npos) {
            continue;
        }
        if (reader.ends_in_line()) {
            ++cut_;  // a number that lost its last digits is still a number
            break;
        }
        if (const char* problem = take(text); problem && ++malformed_ == 1) {
            first_malformed_ = reader.where() + ": " + problem;
        }
    }
    if (!begun) {
        throw bad_input(path.native(), "is empty; expected a fio iolog", {});
    }
    cut_ += reader.truncated() && !reader.ends_in_line();
    done_ += reader.file_bytes();
    if (options_.progress) {
        options_.progress(done_);
    }
}

// Gives the file of a line a descriptor where it has none. False where there is nothing to do.
bool Import::open(const Line& line, Job& job, File& file, RawCall& raw) {
    if (line.action == Action::open ? file.fd >= 0 : line.action == Action::close && file.fd < 0) {
        return false;  // fio ignores it, too
    }
    if (file.fd >= 0) {
        return true;
    }
    file.fd = job.next_fd++;
    if (line.action != Action::open) {
        raw.fd_path = names_[file.name];
        ++adopted_;
        if (!raw.fd_path.starts_with('/')) {  // it is no pipe or socket, as strace would mean
            adopted_name_ = (std::filesystem::path("/") / raw.fd_path).lexically_normal().native();
            raw.fd_path = adopted_name_;
            ++relative_;
        }
    }
    return true;
}

void Import::feed(const Line& line, Assembler& assembler) {
    RawCall raw;
    raw.pid = raw.tid = static_cast<int32_t>(line.job + 1);
    raw.begin = line.time * 1000;
    if (line.action == Action::wait) {
        Op op;
        op.kind = OpKind::wait;
        op.begin = raw.begin;
        op.duration = line.offset * 1000;
        op.arg = kWaitSleep;
        assembler.op(raw.pid, raw.tid, op);
        return;
    }
    Job& job = jobs_[line.job];
    File& file = job.files[line.file];
    if (line.action == Action::add || !open(line, job, file, raw)) {
        return;
    }
    raw.result_known = false;
    if (line.action != Action::open) {
        raw.fd = file.fd;
        raw.offset = line.offset;
        raw.size = line.length;
    }
    switch (line.action) {
        case Action::open:
            raw.kind = OpKind::open;
            raw.path = names_[file.name];
            raw.flags = file.written ? O_RDWR : O_RDONLY;
            raw.result = file.fd;
            break;
        case Action::read:
            raw.kind = OpKind::pread;
            raw.result = line.length;
            break;
        case Action::write:
            raw.kind = OpKind::pwrite;
            raw.result = line.length;
            break;
        case Action::sync: raw.kind = OpKind::fsync; break;
        case Action::datasync: raw.kind = OpKind::fdatasync; break;
        case Action::sync_range: raw.kind = OpKind::sync_file_range; break;
        case Action::trim:
            raw.kind = OpKind::fallocate;
            raw.flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
            break;
        case Action::close:
            raw.kind = OpKind::close;
            file.fd = -1;
            break;
        case Action::add:
        case Action::wait: break;
    }
    assembler.call(raw);
    ++calls_;
}

void Import::feed(LogWriter& writer) {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.time < b.time; });
    Assembler::Options assembling;
    assembling.roles = &options_.roles;
    Assembler assembler(writer, assembling);
    for (uint32_t i = 0; i < jobs_.size(); ++i) {
        assembler.set_command(static_cast<int32_t>(i + 1), "fio " + jobs_[i].log.filename().native());
    }
    for (const Line& line : lines_) {
        feed(line, assembler);
    }
    assembler.finish();

    writer.count(Count::durations_unknown, calls_);
    writer.count(Count::results_not_recorded, calls_);
    writer.count(Count::flags_assumed, jobs_.size());
    writer.count(Count::opens_synthesised, adopted_);
    writer.count(Count::relative_paths_assumed, relative_);
    writer.count(Count::malformed_lines, malformed_, first_malformed_);
    writer.count(Count::inputs_cut, cut_);
    writer.count(Count::waits_ignored, waits_in_v3_);
}

void Import::run(const std::filesystem::path& output) {
    for (const auto& input : inputs_) {
        read(input);
    }
    if (lines_.empty() && malformed_ > 0) {
        throw bad_input(first_malformed_, "and no line of the input could be read", {});
    }
    Header header;
    header.time_unit_ns = options_.time_unit_ns ? options_.time_unit_ns : 1000;
    header.clock = "relative";
    header.source = "fio";
    LogWriter writer(output, header, options_.writer);
    try {
        feed(writer);
        writer.finish();
    } catch (...) {
        writer.discard();
        throw;
    }
}

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    Import(inputs, options).run(output);
}

}  // namespace

extern const Importer import_fio;
const Importer import_fio{"fio", "fio iologs of version 2 and 3 (write_iolog=)", sniff, import};

}  // namespace reprise
