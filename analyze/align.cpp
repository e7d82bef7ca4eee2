// SPDX-License-Identifier: MIT
#include "analyze/align.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/repeated_looks.h"
#include "formats/oplog/result_rule.h"

namespace reprise {
namespace {

constexpr size_t kWindow = 1024;        // ops looked ahead for the place where two tasks agree again
constexpr size_t kMostPending = 65536;  // unmatched ops remembered to find moved ones
constexpr uint64_t kExamplesPerKind = 3;

// What makes two ops the same: the call, what it names, where and how much.
struct Key {
    OpKind kind = OpKind::compute;
    uint32_t path = 0, path2 = 0;
    int64_t offset = 0, size = 0;

    bool operator==(const Key&) const = default;
    bool same_call(const Key& other) const { return kind == other.kind && path == other.path && path2 == other.path2; }
};

struct KeyHash {
    size_t operator()(const Key& key) const {
        uint64_t hash = static_cast<uint64_t>(key.kind);
        for (const uint64_t part : {uint64_t{key.path}, uint64_t{key.path2}, static_cast<uint64_t>(key.offset),
                                    static_cast<uint64_t>(key.size)}) {
            hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 29;
        }
        return hash;
    }
};

struct Row {
    Key key;
    int64_t result = 0, detail = 0;  // see result_detail()
    uint64_t number = 0;
    uint32_t request = 0;
};

// Numbers for paths, equal for equal paths of both logs.
class Paths {
public:
    std::vector<uint32_t> of(const Tables& tables) {
        std::vector<uint32_t> ids(tables.files.size());
        for (FileId file = 1; file < ids.size(); ++file) {
            const std::string_view path = tables.path(file);
            const auto [at, added] = ids_.try_emplace(path, static_cast<uint32_t>(views_.size()));
            if (added) {
                views_.push_back(path);
            }
            ids[file] = at->second;
        }
        return ids;
    }
    std::string_view operator[](uint32_t id) const { return views_[id]; }

private:
    std::unordered_map<std::string_view, uint32_t> ids_;
    std::vector<std::string_view> views_{std::string_view{}};
};

// The ops of one task that count, in order, with a window to look ahead.
class TaskOps {
public:
    TaskOps(const LogReader& log, const OpSelector& keep, const std::vector<uint32_t>& paths, TaskId task)
        : log_(log), keep_(keep), paths_(paths), blocks_(log.blocks_of(task)) {}

    // Makes at least `count` rows visible unless the task ends before.
    void want(size_t count) {
        while (rows_.size() < count && next_ < blocks_.size()) {
            load();
        }
    }
    bool empty() {
        want(1);
        return rows_.empty();
    }
    size_t size() const { return rows_.size(); }
    const Row& operator[](size_t i) const { return rows_[i]; }
    // The looks that the task takes again; asked for where a result differs, which is rare.
    const LooksOfTask& looks() {
        if (!looks_) {
            RepeatedLooks all(log_.tables());
            OpBlock block;
            for (const BlockInfo& where : blocks_) {
                log_.decode(where, block);
                for (size_t i = 0; i < block.count(); ++i) {
                    all.see(block, i);
                }
            }
            looks_ = all.take();
            looks_->drop_other_children(log_, keep_);
        }
        return *looks_;
    }
    void drop(size_t count) { rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count)); }

private:
    void load() {
        if (!loaded_) {
            log_.decode(blocks_[next_], block_);
            loaded_ = true;
            at_ = 0;
        }
        const size_t end = std::min(block_.count(), at_ + kWindow);
        for (; at_ < end; ++at_) {
            const auto kind = static_cast<OpKind>(block_.kind[at_]);
            if (!info(kind).is(Trait::io)) {
                continue;
            }
            const Op op = block_.row(at_);
            if (keep_.keeps(op)) {
                rows_.push_back(row_of(op, block_.first + at_));
            }
        }
        if (at_ == block_.count()) {
            log_.forget(blocks_[next_]);
            loaded_ = false;
            ++next_;
        }
    }
    Row row_of(const Op& op, uint64_t number) const {
        const Tables& tables = log_.tables();
        const auto path = [&](FileId file) { return file < paths_.size() ? paths_[file] : 0; };
        const FileId second = op.file2                             ? op.file2
                              : op.handle2 < tables.handles.size() ? tables.handles[op.handle2].file
                                                                   : 0;
        return {{op.kind, path(tables.file_of(op)), path(second), op.offset, op.size},
                op.result,
                result_detail(op.kind, op.arg, op.flags),
                number,
                op.request};
    }

    const LogReader& log_;
    const OpSelector& keep_;
    const std::vector<uint32_t>& paths_;
    std::vector<BlockInfo> blocks_;
    OpBlock block_;
    size_t next_ = 0, at_ = 0;
    bool loaded_ = false;
    std::deque<Row> rows_;
    std::optional<LooksOfTask> looks_;
};

class Aligner {
public:
    Aligner(const Paths& paths, const CompareOptions& options, Comparison& into)
        : paths_(paths), options_(options), into_(into) {}

    void task(TaskId task, TaskOps& a, TaskOps& b) {
        task_ = task;
        recorded_ = &a;
        while (!a.empty() && !b.empty()) {
            if (a[0].key == b[0].key) {
                matched(a[0], b[0]);
                a.drop(1);
                b.drop(1);
                report();
            } else {
                resync(a, b);
            }
        }
        for (; !a.empty(); a.drop(1)) {
            unmatched(a[0], true);
        }
        for (; !b.empty(); b.drop(1)) {
            unmatched(b[0], false);
        }
        flush();
        for (const auto& [of_a, of_b] : polled_.left()) {
            differs(of_a, of_b);
        }
        into_.results_known += polled_.known();
        polled_ = {};
    }

    /// Of requests that the run did not perform: those that read and write have data.
    void not_performed_requests(const LogReader& a) {
        OpBlock block;
        for (const BlockInfo& where : requests_.empty() ? std::span<const BlockInfo>() : a.blocks()) {
            a.decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                if (!info(static_cast<OpKind>(block.kind[i])).is(Trait::submits)) {
                    continue;
                }
                const AsyncRequest asked = async_request(block, i);
                const auto found = requests_.find(block.request[i]);
                if (found != requests_.end() && (asked.reads() || asked.writes())) {
                    into_.not_performed_bytes += found->second;
                }
            }
            a.forget(where);
        }
    }

private:
    struct Pending {
        uint64_t missing = 0, extra = 0;
        Row row;
    };

    void matched(const Row& a, const Row& b) {
        ++into_.matched;
        if (b.result == -ECANCELED && a.result != -ECANCELED && !into_.ended.empty()) {
            ++into_.not_performed;
            const OpInfo& row = info(a.key.kind);
            if (a.result > 0 && (row.is(Trait::reads) || row.is(Trait::writes))) {
                into_.not_performed_bytes += static_cast<uint64_t>(a.result);
            } else if (a.result > 0 && row.is(Trait::completes)) {
                requests_[a.request] = static_cast<uint64_t>(a.result);
            }
            return;
        }
        const ResultMatch match = a.key.kind == OpKind::getdents
                                      ? listings_.match(a.key.path, a.result, b.result)
                                      : match_results(a.key.kind, a.detail, a.result, b.result);
        polled_.see(a.key.path, a.key.kind, a.key.offset, a.result);
        switch (match) {
            case ResultMatch::same: return;
            case ResultMatch::known: ++into_.results_known; return;
            case ResultMatch::differs: break;
        }
        if (is_found_or_not(b.result) && recorded_->looks().has(a.number)) {
            ++into_.results_known;
            return;
        }
        if (!polled_.keep(a.key.path, a.key.kind, a.key.offset, a.result, b.result, {a, b})) {
            differs(a, b);
        }
    }

    void differs(const Row& a, const Row& b) {
        ++into_.results;
        example(DifferenceKind::result, a, b);
    }

    // Skips the fewest ops after which both agree again; ops in between pair up where they are the same call.
    void resync(TaskOps& a, TaskOps& b) {
        a.want(kWindow);
        b.want(kWindow);
        const size_t in_a = std::min(kWindow, a.size()), in_b = std::min(kWindow, b.size());
        std::unordered_map<Key, size_t, KeyHash> first_in_b;
        for (size_t j = 0; j < in_b; ++j) {
            first_in_b.try_emplace(b[j].key, j);
        }
        size_t skip_a = in_a, skip_b = in_b, best = in_a + in_b;
        for (size_t i = 0; i < in_a && i < best; ++i) {
            const auto at = first_in_b.find(a[i].key);
            if (at == first_in_b.end() || i + at->second >= best) {
                continue;
            }
            best = i + at->second;
            skip_a = i;
            skip_b = at->second;
        }
        const size_t both = std::min(skip_a, skip_b);
        for (size_t i = 0; i < both; ++i) {
            if (a[i].key.same_call(b[i].key)) {
                ++into_.arguments;
                example(DifferenceKind::arguments, a[i], b[i]);
            } else {
                unmatched(a[i], true);
                unmatched(b[i], false);
            }
        }
        for (size_t i = both; i < skip_a; ++i) {
            unmatched(a[i], true);
        }
        for (size_t i = both; i < skip_b; ++i) {
            unmatched(b[i], false);
        }
        a.drop(skip_a);
        b.drop(skip_b);
    }

    // An op of one side without a partner; if the other side has the same one elsewhere, it has only moved.
    void unmatched(const Row& row, bool of_a) {
        Pending& pending = pending_.try_emplace(row.key, Pending{0, 0, row}).first->second;
        uint64_t& other = of_a ? pending.extra : pending.missing;
        if (other > 0) {
            --other;
            ++into_.moved;
            example(DifferenceKind::moved, of_a ? row : pending.row, of_a ? pending.row : row);
        } else {
            ++(of_a ? pending.missing : pending.extra);
            pending.row = row;
        }
        if (pending_.size() > kMostPending) {
            flush();
        }
        report();
    }

    void flush() {
        std::vector<const Pending*> rest;
        for (const auto& [key, pending] : pending_) {
            into_.missing += pending.missing;
            into_.extra += pending.extra;
            if (pending.missing || pending.extra) {
                rest.push_back(&pending);
            }
        }
        const auto place = [](const Pending* x) { return std::pair{x->row.number, x->extra != 0}; };
        std::sort(rest.begin(), rest.end(), [&](const Pending* x, const Pending* y) { return place(x) < place(y); });
        for (const Pending* pending : rest) {
            example(pending->missing ? DifferenceKind::missing : DifferenceKind::extra, pending->row, pending->row);
        }
        pending_.clear();
    }

    void example(DifferenceKind what, const Row& a, const Row& b) {
        uint64_t& shown = shown_[static_cast<size_t>(what)][static_cast<size_t>(a.key.kind)];
        if (into_.differences.size() >= options_.examples || shown >= kExamplesPerKind) {
            return;
        }
        ++shown;
        into_.differences.push_back(
            {what, task_, a.number, b.number, a.key.kind, std::string(paths_[a.key.path]), a.result, b.result});
    }

    void report() {
        if (options_.progress && (++done_ & 4095) == 0) {
            options_.progress(done_);
        }
    }

    const Paths& paths_;
    ListingResults listings_;  // by path
    TaskOps* recorded_ = nullptr;
    PolledReads<std::pair<Row, Row>> polled_;  // likewise, of the present task
    const CompareOptions& options_;
    Comparison& into_;
    TaskId task_ = 0;
    uint64_t done_ = 0;
    std::unordered_map<uint32_t, uint64_t> requests_;  // not performed by the run: results in the recording
    std::unordered_map<Key, Pending, KeyHash> pending_;
    std::array<std::array<uint64_t, kOpKindLimit>, 5> shown_{};
};

}  // namespace

void align(const LogReader& a, const OpSelector& keep_a, const LogReader& b, const OpSelector& keep_b,
           const CompareOptions& options, Comparison& into) {
    Paths paths;
    const std::vector<uint32_t> paths_a = paths.of(a.tables()), paths_b = paths.of(b.tables());
    Aligner aligner(paths, options, into);
    const size_t tasks = std::max(a.tables().tasks.size(), b.tables().tasks.size());
    for (TaskId task = 1; task < tasks; ++task) {
        TaskOps ops_a(a, keep_a, paths_a, task), ops_b(b, keep_b, paths_b, task);
        aligner.task(task, ops_a, ops_b);
    }
    aligner.not_performed_requests(a);
}

}  // namespace reprise
