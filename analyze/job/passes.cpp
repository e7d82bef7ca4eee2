// SPDX-License-Identifier: MIT
#include "analyze/job/passes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "formats/oplog/epochs.h"
#include "formats/oplog/loader_marks.h"

namespace reprise {
namespace {

/// As transform/scale_recording.cpp has it: fewer files of a kind are not samples, one each; more reads of an open
/// instance are of many samples.
constexpr size_t kLeastFiles = 16;
constexpr uint64_t kManyReads = 64;
/// An epoch begins once so much of the one before was read.
constexpr double kMostRead = 0.95;

std::string_view ending(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t point = name.rfind('.');
    return point == name.npos ? std::string_view() : name.substr(point);
}

/// By file: whether it is a sample, or holds many.
enum class Holds : uint8_t { nothing, sample, records };

std::vector<Holds> what_files_hold(const Tables& tables, std::span<const SampleFile> files) {
    std::map<std::string_view, std::vector<FileId>> families;
    for (FileId file = 1; file < files.size(); ++file) {
        if (tables.files[file].role == Role::dataset && files[file].reads > 0 && !files[file].written) {
            families[ending(tables.path(file))].push_back(file);
        }
    }
    std::vector<Holds> out(files.size(), Holds::nothing);
    for (const auto& [name, family] : families) {
        uint64_t reads = 0, opens = 0;
        for (const FileId file : family) {
            reads += files[file].reads;
            opens += std::max<uint32_t>(files[file].opens, 1);
        }
        const bool many = family.size() >= kLeastFiles && reads <= opens * kManyReads;
        for (const FileId file : family) {
            out[file] = many ? Holds::sample : files[file].reads >= kManyReads ? Holds::records : Holds::nothing;
        }
    }
    return out;
}

struct Read {
    int64_t begin;
    uint64_t sample;
    FileId file;
    TaskId task;
    uint32_t epoch = 0;
};

/// Reads of samples, by time. What is read far more often than others leads to samples and is none.
std::vector<Read> reads_of_samples(std::span<const Access> accesses, const std::vector<Holds>& holds) {
    std::vector<Read> out;
    std::unordered_map<uint64_t, uint32_t> uses;
    const auto sample_of = [&](const Access& access) {
        return holds[access.file] == Holds::sample ? uint64_t{access.file} << 32 : access.place();
    };
    const auto counts = [&](const Access& access) {
        return access.file < holds.size() && holds[access.file] != Holds::nothing &&
               (holds[access.file] != Holds::sample || access.first());
    };
    for (const Access& access : accesses) {
        if (counts(access)) {
            ++uses[sample_of(access)];
        }
    }
    std::vector<uint32_t> often;
    often.reserve(uses.size());
    for (const auto& [sample, count] : uses) {
        often.push_back(count);
    }
    std::sort(often.begin(), often.end());
    const uint32_t most = often.empty() ? 0 : often[often.size() / 2] * 2 + 1;
    for (const Access& access : accesses) {
        if (counts(access) && (holds[access.file] == Holds::sample || uses[sample_of(access)] <= most)) {
            out.push_back({access.begin, sample_of(access), access.file, access.task});
        }
    }
    return out;
}

/// Ranks of keys in their order, without gaps.
template <class Key, class Less>
std::unordered_map<Key, uint32_t> ranks_of(std::vector<Key> keys, Less less) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::sort(keys.begin(), keys.end(), less);
    std::unordered_map<Key, uint32_t> out;
    for (uint32_t i = 0; i < keys.size(); ++i) {
        out.emplace(keys[i], i);
    }
    return out;
}

template <class Key, class Less>
SampleOrder order_by(const std::vector<std::pair<Key, TaskId>>& reads, Less less) {
    std::vector<Key> keys;
    keys.reserve(reads.size());
    for (const auto& [key, task] : reads) {
        keys.push_back(key);
    }
    const auto ranks = ranks_of(std::move(keys), less);
    std::vector<SampleRead> ranked;
    ranked.reserve(reads.size());
    for (const auto& [key, task] : reads) {
        ranked.push_back({ranks.at(key), task});
    }
    return order_of(ranked);
}

SampleOrder order_of_files(std::span<const Read> reads, const Tables& tables) {
    std::vector<std::pair<FileId, TaskId>> first;
    std::unordered_map<FileId, bool> seen;
    for (const Read& read : reads) {
        if (seen.emplace(read.file, true).second) {
            first.emplace_back(read.file, read.task);
        }
    }
    return order_by(first, [&](FileId a, FileId b) { return natural_less(tables.path(a), tables.path(b)); });
}

/// The order that most reads of files with many samples have.
SampleOrder order_of_records(std::span<const Read> reads) {
    std::map<FileId, std::vector<std::pair<uint64_t, TaskId>>> by_file;
    for (const Read& read : reads) {
        by_file[read.file].emplace_back(read.sample, read.task);
    }
    std::array<SampleOrder, 4> sums;
    SampleOrder* most = sums.data();
    for (const auto& [file, of_file] : by_file) {
        const SampleOrder one = order_by(of_file, std::less<>());
        SampleOrder& sum = sums[static_cast<size_t>(one.kind)];
        const auto weight = static_cast<double>(one.samples);
        const double total = static_cast<double>(sum.samples) + weight;
        const auto mean = [&](double before, double now) {
            return total > 0 ? (before * static_cast<double>(sum.samples) + now * weight) / total : 0;
        };
        sum.forward_share = mean(sum.forward_share, one.forward_share);
        sum.window = std::max(sum.window, one.window);
        sum.kind = one.kind;
        sum.samples += one.samples;
        most = sum.samples > most->samples ? &sum : most;
    }
    return *most;
}

/// Whether the samples of an epoch come in the order of the one before.
std::optional<bool> as_before(std::span<const Read> before, std::span<const Read> now) {
    std::unordered_map<uint64_t, uint32_t> place;
    for (const Read& read : before) {
        place.emplace(read.sample, static_cast<uint32_t>(place.size()));
    }
    std::vector<SampleRead> ranked;
    for (const Read& read : now) {
        if (const auto found = place.find(read.sample); found != place.end()) {
            ranked.push_back({found->second, read.task});
        }
    }
    // Workers may have changed places: who reads does not matter where the reads of all are in order.
    const SampleOrder by_task = order_of(ranked);
    if (by_task.kind == SampleOrder::Kind::too_few) {
        return std::nullopt;
    }
    for (SampleRead& read : ranked) {
        read.task = 1;
    }
    return by_task.kind == SampleOrder::Kind::in_order || order_of(ranked).kind == SampleOrder::Kind::in_order;
}

void describe(JobEpoch& epoch, std::span<const Read> reads, std::span<const Read> before, double share,
              const Tables& tables) {
    epoch.samples = static_cast<double>(reads.size()) / share;
    epoch.files = order_of_files(reads, tables);
    epoch.records = order_of_records(reads);
    epoch.files.window /= share;
    epoch.records.window /= share;
    epoch.as_before = before.empty() ? std::nullopt : as_before(before, reads);
}

void split_by_marks(JobEpochs& out, std::span<const Read> reads, double share, const Tables& tables,
                    const std::vector<MarkedEpoch>& marked) {
    out.by = JobEpochs::By::marks;
    std::span<const Read> before;
    for (const MarkedEpoch& mark : marked) {
        JobEpoch epoch{mark.number, mark.begin, mark.end, 0, {}, {}, {}};
        const auto earlier = [](const Read& read, int64_t time) { return read.begin < time; };
        const auto from = std::lower_bound(reads.begin(), reads.end(), mark.begin, earlier);
        const auto to = std::lower_bound(from, reads.end(), mark.end, earlier);
        const std::span<const Read> within(from, to);
        describe(epoch, within, before, share, tables);
        before = within;
        out.epochs.push_back(epoch);
    }
}

void split_by_samples(JobEpochs& out, std::vector<Read>& reads, double share, const Tables& tables) {
    EpochNumbers numbers(static_cast<size_t>(out.data_set * share));
    for (Read& read : reads) {
        read.epoch = numbers.read(read.sample);
    }
    const std::vector<uint64_t> counts = numbers.finish();
    if (numbers.late_share() > EpochNumbers::kMostLate) {
        out.why_none = "samples are read again before all of them were read once";
        return;
    }
    out.by = JobEpochs::By::samples;
    std::vector<std::vector<Read>> by_epoch(counts.size());
    std::vector<int64_t> begins(counts.size(), INT64_MAX);
    for (const Read& read : reads) {
        const size_t at = std::min(read.epoch, numbers.last());
        by_epoch[at].push_back(read);
        const bool begun =
            at == 0 || static_cast<double>(by_epoch[at - 1].size()) >= kMostRead * static_cast<double>(counts[at - 1]);
        begins[at] = begun ? std::min(begins[at], read.begin) : begins[at];
    }
    for (size_t at = 0; at < by_epoch.size(); ++at) {
        JobEpoch epoch;
        epoch.number = static_cast<int64_t>(at);
        const std::vector<Read>& of = by_epoch[at];
        epoch.begin = begins[at] == INT64_MAX && !of.empty() ? of.front().begin : begins[at];
        epoch.end = at + 1 < begins.size() && begins[at + 1] != INT64_MAX ? begins[at + 1]
                    : of.empty()                                          ? epoch.begin
                                                                          : of.back().begin;
        describe(epoch, of, at == 0 ? std::span<const Read>() : by_epoch[at - 1], share, tables);
        out.epochs.push_back(epoch);
    }
}

/// How often all samples were read; 0: they are read again before that.
uint64_t passes_over(std::span<const Read> reads, double samples) {
    EpochNumbers numbers(static_cast<size_t>(samples));
    for (const Read& read : reads) {
        numbers.read(read.sample);
    }
    const size_t passes = numbers.finish().size();
    return numbers.late_share() > EpochNumbers::kMostLate ? 0 : passes;
}

/// Those that are epochs of the job.
std::vector<MarkedEpoch> epochs_of_job(const std::vector<MarkedEpoch>& marked, std::span<const Read> reads,
                                       double samples) {
    std::map<uint32_t, uint64_t> by_loader;
    for (const MarkedEpoch& one : marked) {
        ++by_loader[one.loader];
    }
    const EpochMarks which = which_epoch_marks(by_loader, passes_over(reads, samples));
    std::vector<MarkedEpoch> out;
    for (const MarkedEpoch& one : marked) {
        if (which == EpochMarks::every || (which == EpochMarks::first && one.loader == 1)) {
            out.push_back(one);
            out.back().number = which == EpochMarks::every ? static_cast<int64_t>(out.size()) - 1 : one.number;
        }
    }
    return out;
}

}  // namespace

JobEpochs find_passes(std::span<const Access> accesses, double share, const Tables& tables,
                      std::span<const SampleFile> files, const std::vector<MarkedEpoch>& marked) {
    JobEpochs out;
    std::vector<Read> reads = reads_of_samples(accesses, what_files_hold(tables, files));
    std::vector<uint64_t> samples;
    samples.reserve(reads.size());
    for (const Read& read : reads) {
        samples.push_back(read.sample);
    }
    std::sort(samples.begin(), samples.end());
    out.data_set = static_cast<double>(std::unique(samples.begin(), samples.end()) - samples.begin()) / share;
    const std::vector<MarkedEpoch> epochs = epochs_of_job(marked, reads, out.data_set * share);
    if (!epochs.empty()) {
        split_by_marks(out, reads, share, tables, epochs);
        return out;
    }
    if (reads.empty()) {
        out.why_none = "no file of the data set is read like samples: 16 files of a kind, or 64 reads of a file";
        return out;
    }
    split_by_samples(out, reads, share, tables);
    return out;
}

}  // namespace reprise
