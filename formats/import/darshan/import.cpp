// SPDX-License-Identifier: MIT
// The Darshan importer: reads and writes as DXT lists them, with the opens, closes and threads they imply. What DXT
// does not record is counted, and docs/importers.md lists it.
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "formats/assemble/assembler.h"
#include "formats/import/darshan/binary.h"
#include "formats/import/darshan/lines.h"
#include "formats/import/darshan/unread.h"
#include "formats/import/importer.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

using darshan::Lines;
using darshan::Row;

bool sniff(std::string_view head) { return darshan::is_binary(head) || head.starts_with("# darshan log version:"); }

// Threads of a rank: calls that overlap cannot be of one thread.
class Lanes {
public:
    // The lowest lane that is free at `begin`; calls come in the order of their begin.
    uint32_t take(int64_t begin, int64_t end) {
        while (!busy_.empty() && busy_.top().first <= begin) {
            free_.insert(busy_.top().second);
            busy_.pop();
        }
        const uint32_t lane = free_.empty() ? count_++ : *free_.begin();
        free_.erase(lane);
        busy_.emplace(end, lane);
        return lane;
    }

private:
    using Busy = std::pair<int64_t, uint32_t>;
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
    std::set<uint32_t> free_;
    uint32_t count_ = 0;
};

// What a rank does to a file, from its first call to its last.
struct Use {
    int64_t flags = O_RDONLY;
    int32_t fd = -1;
    uint32_t first = 0, last = 0;  // rows; last: the one that ends last
    bool reads = false, writes = false;
};

class Import {
public:
    Import(std::span<const std::filesystem::path> inputs, const ImportOptions& options)
        : inputs_(inputs), options_(options) {}
    void run(const std::filesystem::path& output);

private:
    struct Step {
        int64_t time = 0;
        enum class What : uint8_t { open, call, close, exit } what = What::call;
        uint32_t index = 0;  // of a row, a use or a rank
    };

    void read();
    void leave_out_mpiio();
    void order();
    void find_threads();
    void find_uses();
    std::vector<Step> steps() const;
    void feed(LogWriter& writer);
    void describe(Assembler& assembler);
    void feed(Assembler& assembler, const Step& step);
    void feed_call(Assembler& assembler, const Row& row, uint32_t index);
    void count(LogWriter& writer) const;
    int32_t pid(uint32_t rank) const { return static_cast<int32_t>(rank + 1); }
    int64_t run_time(uint32_t rank) const;
    uint64_t hosts() const;

    std::span<const std::filesystem::path> inputs_;
    const ImportOptions& options_;
    Lines lines_;
    int64_t origin_ = 0;              // ns since 1970
    std::vector<int32_t> tids_;       // of each row
    std::vector<Use> uses_;           // in the order of their first call
    std::vector<uint32_t> use_of_;    // of each row
    std::vector<int64_t> last_ends_;  // of each rank
    uint64_t mpiio_ = 0, mpiio_left_out_ = 0, inferred_ = 0;
};

void Import::read() {
    uint64_t done = 0;
    for (const auto& input : inputs_) {
        if (!darshan::is_binary(read_head(input, 16))) {
            lines_.read(input, input, [&](uint64_t bytes) {
                if (options_.progress) {
                    options_.progress(done + bytes);
                }
            });
        } else if (!options_.run_programs) {
            throw bad_input(input.native(), "is a binary Darshan log", "print it with darshan-dxt-parser");
        } else {
            darshan::Printer printer(input);
            try {
                lines_.read(printer.text(), input, {});
            } catch (const Error&) {
                printer.finish();  // knows better why there is no text
                throw;
            }
            printer.finish();
        }
        done += std::filesystem::file_size(input);
    }
    if (lines_.rows.empty()) {
        throw bad_input(lines_.malformed ? lines_.first_malformed : inputs_.front().native(),
                        lines_.malformed ? "and no call of the input could be read" : "lists no call",
                        "Darshan's DXT recorded nothing, or the file is cut");
    }
    if (lines_.rows.size() > UINT32_MAX / 4 || lines_.ranks.size() > INT32_MAX / 4) {
        throw bad_input(inputs_.front().native(), "holds more calls than can be imported at once", {});
    }
}

// What MPI-IO did shows in its POSIX calls, which other ranks may have made (collective buffering).
void Import::leave_out_mpiio() {
    std::erase_if(lines_.rows, [&](const Row& row) {
        const bool twice = row.mpiio && lines_.files[row.file].posix;
        mpiio_left_out_ += twice;
        mpiio_ += row.mpiio && !twice;
        return twice;
    });
}

// Onto one clock, in the order of time; calls of a rank that begin together stay as they were listed.
void Import::order() {
    origin_ = INT64_MAX;
    for (const darshan::Log& log : lines_.logs) {
        origin_ = std::min(origin_, log.start);
    }
    for (Row& row : lines_.rows) {
        const int64_t later = lines_.logs[lines_.ranks[row.rank].log].start - origin_;
        row.begin += later;
        row.end += later;
    }
    std::stable_sort(lines_.rows.begin(), lines_.rows.end(),
                     [](const Row& a, const Row& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
}

void Import::find_threads() {
    std::map<std::tuple<uint32_t, int64_t, uint32_t>, int32_t> tids;  // of rank, named thread and lane
    std::map<std::pair<uint32_t, int64_t>, Lanes> lanes;
    std::vector<bool> begun(lines_.ranks.size());
    int32_t next = static_cast<int32_t>(lines_.ranks.size()) + 1;
    tids_.reserve(lines_.rows.size());
    for (const Row& row : lines_.rows) {
        const uint32_t lane = lanes[{row.rank, row.thread}].take(row.begin, row.end);
        inferred_ += lane > 0;
        const auto [tid, is_new] = tids.try_emplace({row.rank, row.thread, lane}, 0);
        if (is_new) {
            tid->second = begun[row.rank] ? next++ : pid(row.rank);
            begun[row.rank] = true;
        }
        tids_.push_back(tid->second);
    }
}

void Import::find_uses() {
    std::unordered_map<uint64_t, uint32_t> by_file;  // and rank
    std::vector<uint8_t> seen(lines_.files.size()), made(lines_.files.size());
    std::vector<int32_t> next_fd(lines_.ranks.size(), 3);
    last_ends_.assign(lines_.ranks.size(), INT64_MIN);
    use_of_.reserve(lines_.rows.size());
    for (uint32_t i = 0; i < lines_.rows.size(); ++i) {
        const Row& row = lines_.rows[i];
        if (!seen[row.file]++) {
            made[row.file] = row.writes;
        }
        const uint64_t key = (uint64_t{row.rank} << 32U) | row.file;
        const auto [found, is_new] = by_file.try_emplace(key, static_cast<uint32_t>(uses_.size()));
        if (is_new) {
            uses_.push_back({O_RDONLY, next_fd[row.rank]++, i, i});
        }
        Use& use = uses_[found->second];
        use.last = row.end >= lines_.rows[use.last].end ? i : use.last;
        (row.writes ? use.writes : use.reads) = true;
        use_of_.push_back(found->second);
        last_ends_[row.rank] = std::max(last_ends_[row.rank], row.end);
    }
    for (Use& use : uses_) {
        const bool creates = use.writes && made[lines_.rows[use.first].file];
        use.flags = (use.writes ? use.reads ? O_RDWR : O_WRONLY : O_RDONLY) | (creates ? O_CREAT : 0);
    }
}

// When the rank ended, on the common clock; 0: not known.
int64_t Import::run_time(uint32_t rank) const {
    const darshan::Log& log = lines_.logs[lines_.ranks[rank].log];
    const int64_t end = log.start - origin_ + log.run_time;
    return log.run_time > 0 && last_ends_[rank] != INT64_MIN && end >= last_ends_[rank] ? end : 0;
}

std::vector<Import::Step> Import::steps() const {
    std::vector<Step> steps;
    steps.reserve(lines_.rows.size() + 2 * uses_.size() + lines_.ranks.size());
    for (uint32_t i = 0; i < uses_.size(); ++i) {
        steps.push_back({lines_.rows[uses_[i].first].begin, Step::What::open, i});
        steps.push_back({lines_.rows[uses_[i].last].end, Step::What::close, i});
    }
    for (uint32_t i = 0; i < lines_.rows.size(); ++i) {
        steps.push_back({lines_.rows[i].begin, Step::What::call, i});
    }
    for (uint32_t i = 0; i < lines_.ranks.size(); ++i) {
        if (const int64_t end = run_time(i)) {
            steps.push_back({end, Step::What::exit, i});
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        return std::tie(a.time, a.what, a.index) < std::tie(b.time, b.what, b.index);
    });
    return steps;
}

void Import::feed_call(Assembler& assembler, const Row& row, uint32_t index) {
    RawCall raw;
    raw.pid = pid(row.rank);
    raw.tid = tids_[index];
    raw.kind = row.writes ? OpKind::pwrite : OpKind::pread;
    raw.begin = row.begin;
    raw.duration = row.end - row.begin;
    raw.fd = uses_[use_of_[index]].fd;
    raw.offset = row.offset;
    raw.result = row.length;
    raw.size = row.writes ? row.length : std::max<int64_t>(row.length, 1);
    assembler.call(raw);
}

void Import::feed(Assembler& assembler, const Step& step) {
    if (step.what == Step::What::call) {
        return feed_call(assembler, lines_.rows[step.index], step.index);
    }
    RawCall raw;
    raw.begin = step.time;
    if (step.what == Step::What::exit) {
        raw.pid = raw.tid = pid(step.index);
        raw.kind = OpKind::exit;
        assembler.call(raw);
        return;
    }
    const Use& use = uses_[step.index];
    const bool opens = step.what == Step::What::open;
    const uint32_t index = opens ? use.first : use.last;
    raw.pid = pid(lines_.rows[index].rank);
    raw.tid = tids_[index];
    raw.kind = opens ? OpKind::open : OpKind::close;
    if (opens) {
        raw.path = lines_.files[lines_.rows[index].file].name;
        raw.flags = use.flags;
        raw.mode = use.flags & O_CREAT ? 0644 : 0;
        raw.result = use.fd;
    } else {
        raw.fd = use.fd;
    }
    assembler.call(raw);
}

void Import::describe(Assembler& assembler) {
    for (uint32_t i = 0; i < lines_.ranks.size(); ++i) {
        const darshan::Rank& rank = lines_.ranks[i];
        if (last_ends_[i] == INT64_MIN) {
            continue;
        }
        assembler.set_command(pid(i), lines_.logs[rank.log].command);
        assembler.set_host(pid(i), rank.host);
        assembler.name_task(assembler.task(pid(i), pid(i)), "rank " + std::to_string(rank.number));
    }
}

void Import::feed(LogWriter& writer) {
    Assembler::Options assembling;
    assembling.roles = &options_.roles;
    assembling.explicit_offsets = true;
    Assembler assembler(writer, assembling);
    describe(assembler);
    for (const Step& step : steps()) {
        feed(assembler, step);
    }
    assembler.finish();
    count(writer);
}

uint64_t Import::hosts() const {
    std::unordered_set<std::string_view> hosts;
    for (const darshan::Rank& rank : lines_.ranks) {
        hosts.insert(rank.host);
    }
    return hosts.size();
}

void Import::count(LogWriter& writer) const {
    uint64_t ranks = 0, ends = 0;
    for (uint32_t i = 0; i < lines_.ranks.size(); ++i) {
        ranks += last_ends_[i] != INT64_MIN;
        ends += run_time(i) != 0;
    }
    writer.count(Count::metadata_calls_unseen, ranks);
    writer.count(Count::causes_unseen, ranks);
    darshan::count_unread(lines_, writer);
    writer.count(Count::calls_missing, lines_.missing);
    writer.count(Count::records_incomplete, lines_.incomplete, lines_.first_incomplete);
    writer.count(Count::malformed_lines, lines_.malformed, lines_.first_malformed);
    writer.count(Count::inputs_cut, lines_.cut);
    writer.count(Count::requests_assumed, lines_.rows.size());
    writer.count(Count::opens_synthesised, uses_.size());
    writer.count(Count::closes_synthesised, uses_.size());
    writer.count(Count::ends_assumed, ends);
    if (lines_.decimals < 6) {
        const std::string step = lines_.decimals == 0 ? "1 s" : "10^-" + std::to_string(lines_.decimals) + " s";
        writer.count(Count::times_coarse, 2 * lines_.rows.size(), lines_.decimals == 4 ? "100 us" : step);
    }
    if (const uint64_t all = hosts(); all > 1) {
        writer.count(Count::clocks_of_hosts, all);
    }
    const auto whole = [](const darshan::Log& log) { return log.start % 1'000'000'000 == 0; };
    if (const auto coarse = std::count_if(lines_.logs.begin(), lines_.logs.end(), whole); lines_.logs.size() > 1) {
        writer.count(Count::starts_coarse, static_cast<uint64_t>(coarse));
    }
    writer.count(Count::threads_inferred, inferred_);
    writer.count(Count::mpiio_calls_left_out, mpiio_left_out_);
    writer.count(Count::mpiio_calls, mpiio_);
}

void Import::run(const std::filesystem::path& output) {
    read();
    leave_out_mpiio();
    order();
    find_threads();
    find_uses();

    Header header;
    // A coarser unit stores shorter times.
    const uint32_t unit = lines_.decimals <= 4 ? 100'000 : lines_.decimals <= 6 ? 1000 : 1;
    const bool exact = std::all_of(lines_.logs.begin(), lines_.logs.end(), [&](const darshan::Log& log) {
        return log.run_time % unit == 0 && (log.start - origin_) % unit == 0;
    });
    header.time_unit_ns = options_.time_unit_ns ? options_.time_unit_ns : exact ? unit : 1;
    header.origin_unix_ns = origin_;
    header.clock = "realtime";
    header.source = "darshan";
    header.host = lines_.ranks[lines_.rows.front().rank].host;
    header.command = lines_.logs.front().command;
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

extern const Importer import_darshan;
const Importer import_darshan{
    "darshan", "Darshan's DXT: the text of darshan-dxt-parser, or binary logs where PyPI's darshan is", sniff, import};

}  // namespace reprise
