// SPDX-License-Identifier: MIT
#include "fit/samples.h"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace reprise {
namespace {

constexpr double kUsual = 0.85;      // of the batches, that a count holds for
constexpr int64_t kHdf5Head = 2048;  // where generate's data sets begin

struct NamedFormat {
    std::string_view ending, word;
    SampleFormat format;
};
constexpr NamedFormat kNamed[] = {
    {".npz", "npz", SampleFormat::files},
    {".jpg", "jpeg", SampleFormat::files},
    {".jpeg", "jpeg", SampleFormat::files},
    {".tfrecord", "tfrecord", SampleFormat::tfrecord},
    {".tfrecords", "tfrecord", SampleFormat::tfrecord},
    {".tar", "tar", SampleFormat::tar},
    {".h5", "hdf5", SampleFormat::hdf5},
    {".hdf5", "hdf5", SampleFormat::hdf5},
    {".parquet", "parquet", SampleFormat::parquet},
    {".arrow", "arrow", SampleFormat::arrow},
    {".mdb", "lmdb", SampleFormat::lmdb},
};

bool reads(const TraceOp& op) {
    return op.part == OpPart::data &&
           (op.kind == OpKind::touch ||
            (op.result > 0 && (info(op.kind).is(Trait::reads) || info(op.kind).is(Trait::submits))));
}

class SampleFinder {
public:
    SampleFinder(const JobTrace& trace, const TrainingLoop& loop, const std::set<std::pair<TaskId, uint64_t>>& copies)
        : trace_(trace), loop_(loop), copies_(copies) {}

    LoadedSamples find() {
        sort_batches();
        if (!trace_.data.empty() && some_batch_reads()) {
            choose_format();
        }
        for (BatchSamples& batch : out_.batches) {
            split(batch);
        }
        if (out_.format == SampleFormat::hdf5) {
            join_pieces();
        }
        count();
        return std::move(out_);
    }

private:
    void sort_batches() {
        for (uint32_t rank = 0; rank < loop_.ranks.size(); ++rank) {
            for (size_t batch = 0; batch < loop_.ranks[rank].batches.size(); ++batch) {
                out_.batches.push_back({rank, batch, {}, {}, {}});
            }
        }
        std::stable_sort(out_.batches.begin(), out_.batches.end(), [&](const BatchSamples& x, const BatchSamples& y) {
            const BatchLoad &a = of(x), &b = of(y);
            return std::tie(a.epoch, a.number, x.rank) < std::tie(b.epoch, b.number, y.rank);
        });
    }
    const BatchLoad& of(const BatchSamples& batch) const { return loop_.ranks[batch.rank].batches[batch.batch]; }

    template <class Visit>
    void each_op(const BatchSamples& batch, Visit&& visit) const {
        const BatchLoad& load = of(batch);
        if (load.loader == 0) {
            return;
        }
        const TraceTask& loader = trace_.tasks[load.loader];
        for (size_t at = loader.at(load.first); at < loader.ops.size() && loader.ops[at].op <= load.last; ++at) {
            visit(loader.ops[at], at);
        }
    }

    /// Else what is read of the data feeds no rank.
    bool some_batch_reads() const {
        return std::any_of(out_.batches.begin(), out_.batches.end(), [&](const BatchSamples& batch) {
            bool found = false;
            each_op(batch, [&](const TraceOp& op, size_t) { found = found || reads(op); });
            return found;
        });
    }

    bool has_index() const {
        const std::string_view path = trace_.tables.path(trace_.data.front());
        const std::string index = std::string(path.substr(0, path.size() - trace_.ending.size())) + ".idx";
        for (FileId file = 1; file < trace_.tables.files.size(); ++file) {
            if (trace_.tables.path(file) == index) {
                return true;
            }
        }
        return false;
    }

    void choose_format() {
        std::string ending = trace_.ending;
        std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
        const auto named = std::find_if(std::begin(kNamed), std::end(kNamed),
                                        [&](const NamedFormat& each) { return each.ending == ending; });
        const auto choose = [&](SampleFormat format, const char* word, std::string why, bool guessed) {
            out_.format = format;
            out_.word = word;
            out_.why = std::move(why);
            out_.guessed = guessed;
        };
        const bool known = named != std::end(kNamed);
        if (trace_.maps) {
            if (known && named->format == SampleFormat::lmdb) {
                return choose(SampleFormat::lmdb, "lmdb", "mapped files *" + trace_.ending, false);
            }
            const bool index = has_index();
            const bool arrow = known && named->format == SampleFormat::arrow;
            return choose(index ? SampleFormat::indexed : SampleFormat::arrow, index ? "indexed" : "arrow",
                          "mapped files *" + trace_.ending + (index ? " with an index beside them" : ""),
                          !index && !arrow);
        }
        uint64_t opened = 0, whole = 0, in_order = 0, all = 0;
        for (const TraceTask& task : trace_.tasks) {
            std::unordered_map<uint32_t, std::pair<int64_t, int64_t>> handles;  // bytes read, next
            for (const TraceOp& op : task.ops) {
                if (reads(op)) {
                    auto& [bytes, next] = handles.try_emplace(op.object, 0, op.offset).first->second;
                    in_order += op.offset >= next ? 1 : 0;
                    ++all;
                    bytes += op.result;
                    next = op.offset + op.result;
                } else if (op.part == OpPart::data && op.kind == OpKind::close) {
                    if (const auto found = handles.find(op.object); found != handles.end()) {
                        ++opened;
                        whole += static_cast<double>(found->second.first) >
                                         0.5 * static_cast<double>(trace_.tables.files[op.file].size)
                                     ? 1
                                     : 0;
                        handles.erase(found);
                    }
                }
            }
        }
        if (known && named->format != SampleFormat::files) {
            return choose(named->format, named->word.data(), "files *" + trace_.ending, false);
        }
        const bool per_sample = whole * 10 >= opened * 8 && opened >= loop_.batches() && trace_.data.size() > 1;
        if (per_sample) {
            return choose(SampleFormat::files, known ? named->word.data() : "files",
                          "each *" + trace_.ending + " is opened, read and closed", false);
        }
        const bool stream = in_order * 10 >= all * 9;
        choose(stream ? SampleFormat::tfrecord : SampleFormat::hdf5, stream ? "tfrecord" : "hdf5",
               stream ? "read from front to back" : "read here and there", true);
    }

    void split(BatchSamples& batch) {
        std::unordered_map<uint32_t, size_t> by_handle;  // of files: the access
        std::unordered_set<uint32_t> fresh;              // opened here
        bool tree = false;                               // lmdb: its pages, then the value
        each_op(batch, [&](const TraceOp& op, size_t at) {
            if (op.kind == OpKind::compute && op.part == OpPart::computes) {
                if (copies_.contains({of(batch).loader, op.op})) {
                    return;
                }
                batch.computes.push_back(op.duration);
                batch.compute_ops.push_back(at);
                tree = false;
                return;
            }
            if (op.part == OpPart::data && op.kind == OpKind::open) {
                fresh.insert(op.object);
                opened_at_[op.object] = at;
            }
            if (!reads(op)) {
                return;
            }
            const int64_t bytes = op.kind == OpKind::touch ? op.size : op.result;
            if (op.kind != OpKind::touch && op.object < trace_.tables.handles.size()) {
                out_.direct = out_.direct || (trace_.tables.handles[op.object].flags & O_DIRECT) != 0;
            }
            if (out_.format == SampleFormat::files) {
                const auto [found, added] = by_handle.try_emplace(op.object, batch.accesses.size());
                if (added) {
                    const auto opened = opened_at_.find(op.object);
                    batch.accesses.push_back({op.file, 0, static_cast<int64_t>(trace_.tables.files[op.file].size),
                                              opened == opened_at_.end() ? at : opened->second, true});
                }
                asked_.push_back(op.size);
                return;
            }
            if (out_.format == SampleFormat::hdf5 && op.offset < kHdf5Head) {
                return;
            }
            if (out_.format == SampleFormat::lmdb) {
                if (op.offset == 0) {
                    tree = true;
                    batch.accesses.push_back({op.file, op.offset, bytes, at, false});
                } else if (tree) {
                    batch.accesses.back().offset = op.offset;
                    batch.accesses.back().bytes = bytes;
                }
                return;
            }
            asked_.push_back(op.size);
            batch.accesses.push_back({op.file, op.offset, bytes, at, fresh.erase(op.object) > 0});
        });
    }

    /// Chunks that are read in pieces: as long as a read was of the usual size, the next one that goes on there is of
    /// the same sample.
    void join_pieces() {
        std::vector<uint64_t> sizes;
        for (const BatchSamples& batch : out_.batches) {
            for (const SampleAccess& access : batch.accesses) {
                sizes.push_back(static_cast<uint64_t>(access.bytes));
            }
        }
        const uint64_t most = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
        const auto full = static_cast<double>(std::count(sizes.begin(), sizes.end(), most));
        const auto all = static_cast<double>(sizes.size());
        if (full < 0.3 * all) {
            return;
        }
        uint64_t run = 0;  // pieces of a sample, where all are full
        if (full == all) {
            uint64_t runs = 0, batches = 0, on_from_batch = 0;
            const SampleAccess* before = nullptr;
            for (const BatchSamples& batch : out_.batches) {
                uint64_t length = 0;
                if (!batch.accesses.empty()) {
                    const SampleAccess& first = batch.accesses.front();
                    ++batches;
                    on_from_batch += before != nullptr && before->file == first.file &&
                                             before->offset + before->bytes == first.offset
                                         ? 1
                                         : 0;
                    before = &batch.accesses.back();
                }
                for (size_t i = 0; i < batch.accesses.size(); ++i) {
                    const bool on = i > 0 && goes_on(batch, i);
                    runs += on ? 0 : 1;
                    run = on || length == 0 ? run : std::gcd(run, length);
                    length = on ? length + 1 : 1;
                }
                run = length == 0 ? run : std::gcd(run, length);
            }
            // Pieces of a sample, or samples one after the other.
            const double length = all / static_cast<double>(std::max<uint64_t>(runs, 1));
            if (run < 2 || length > 1.5 * static_cast<double>(run) ||
                (runs * 2 < batches * 3 && on_from_batch * 4 > batches)) {
                out_.pieces_or_samples = length > 1;
                return;
            }
        }
        uint64_t joined = 0;
        for (BatchSamples& batch : out_.batches) {
            std::vector<SampleAccess> now;
            uint64_t length = 0;
            int64_t last = 0;
            for (size_t i = 0; i < batch.accesses.size(); ++i) {
                const bool on =
                    i > 0 && goes_on(batch, i) && last == static_cast<int64_t>(most) && (run == 0 || length < run);
                last = batch.accesses[i].bytes;
                length = on ? length + 1 : 1;
                joined += on ? 1 : 0;
                if (on) {
                    now.back().bytes += batch.accesses[i].bytes;
                } else {
                    now.push_back(batch.accesses[i]);
                }
            }
            batch.accesses = std::move(now);
        }
        out_.piece = joined > 0 ? static_cast<int64_t>(most) : 0;
    }
    /// Whether access `i` begins where the one before it ended, and nothing was computed between them.
    static bool goes_on(const BatchSamples& batch, size_t i) {
        const SampleAccess &before = batch.accesses[i - 1], &now = batch.accesses[i];
        if (before.file != now.file || before.offset + before.bytes != now.offset) {
            return false;
        }
        const auto compute = std::lower_bound(batch.compute_ops.begin(), batch.compute_ops.end(), before.first);
        return compute == batch.compute_ops.end() || *compute > now.first;
    }

    void count() {
        std::vector<uint64_t> accesses, computes;
        for (const BatchSamples& batch : out_.batches) {
            accesses.push_back(batch.accesses.size());
            computes.push_back(batch.computes.size());
        }
        const auto [each, share] = LoadedSamples::usual(accesses);
        const auto [work, work_share] = LoadedSamples::usual(computes);
        const bool stream = is_stream(out_.format);
        out_.computes_are_samples = work > 0 && work_share >= kUsual && (stream || work == each);
        if (stream ? out_.computes_are_samples : share >= kUsual) {
            out_.each = stream ? work : each;
            out_.each_share = stream ? work_share : share;
        }
        if (out_.format == SampleFormat::files && out_.each == 0 && !accesses.empty()) {
            const uint64_t all = std::accumulate(accesses.begin(), accesses.end(), uint64_t{0});
            out_.each = std::max<uint64_t>((all + accesses.size() / 2) / accesses.size(), 1);
            out_.uneven = true;
        }
        if (out_.format == SampleFormat::hdf5 && out_.piece != 0) {
            // A sample of whole pieces seems to go on in the next one.
            const uint64_t last = loop_.batches_per_epoch() - 1;
            for (BatchSamples& batch : out_.batches) {
                if (batch.accesses.size() < each && of(batch).number != last) {
                    batch.accesses.clear();
                    ++out_.unclear;
                }
            }
        }
        if (out_.format == SampleFormat::files || out_.format == SampleFormat::tfrecord ||
            out_.format == SampleFormat::tar) {
            find_piece();
        }
        if (out_.format == SampleFormat::parquet) {
            find_columns();
        }
    }

    /// The size that most bytes are asked for with, where a file takes several reads.
    void find_piece() {
        uint64_t samples = 0;
        for (const BatchSamples& batch : out_.batches) {
            samples += batch.accesses.size();
        }
        if (asked_.empty() || (out_.format == SampleFormat::files && asked_.size() * 10 < samples * 13)) {
            return;
        }
        std::map<int64_t, double> bytes;
        for (const int64_t size : asked_) {
            bytes[size] += static_cast<double>(size);
        }
        out_.piece = std::max_element(bytes.begin(), bytes.end(), [](const auto& x, const auto& y) {
                         return x.second < y.second;
                     })->first;
    }

    void find_columns() {
        // Reads of a group follow each other without a gap; the next group begins after a computation, or elsewhere.
        std::vector<uint64_t> runs;
        for (BatchSamples& batch : out_.batches) {
            std::erase_if(batch.accesses, [&](const SampleAccess& access) {
                const auto size = static_cast<int64_t>(trace_.tables.files[access.file].size);
                if (access.offset + access.bytes == size - 8) {
                    out_.ends[access.file] = access.offset;
                }
                return access.offset >= size - 8 || access.offset + access.bytes == size - 8;
            });
            for (size_t i = 0; i < batch.accesses.size(); ++i) {
                if (i > 0 && goes_on(batch, i)) {
                    ++runs.back();
                } else {
                    runs.push_back(1);
                }
            }
        }
        out_.columns = LoadedSamples::usual(runs).first;
    }

    const JobTrace& trace_;
    const TrainingLoop& loop_;
    const std::set<std::pair<TaskId, uint64_t>>& copies_;
    LoadedSamples out_;
    std::vector<int64_t> asked_;
    std::unordered_map<uint32_t, size_t> opened_at_;
};

}  // namespace

std::pair<uint64_t, double> LoadedSamples::usual(const std::vector<uint64_t>& counts) {
    std::map<uint64_t, uint64_t> times;
    for (const uint64_t count : counts) {
        ++times[count];
    }
    std::pair<uint64_t, double> out{0, 0};
    for (const auto& [count, many] : times) {
        const double share = static_cast<double>(many) / static_cast<double>(counts.size());
        out = share > out.second ? std::pair{count, share} : out;
    }
    return out;
}

LoadedSamples find_samples(const JobTrace& trace, const TrainingLoop& loop,
                           const std::set<std::pair<TaskId, uint64_t>>& copies) {
    return SampleFinder(trace, loop, copies).find();
}

}  // namespace reprise
