// SPDX-License-Identifier: MIT
#include "replay/prepare/cache_plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "formats/oplog/context_series.h"
#include "formats/oplog/fetched.h"
#include "replay/prepare/reads.h"

namespace reprise {
namespace {

/// Whether a file may hold data before the recording.
bool may_have_been_there(const FileRow& row) {
    return (row.type == FileType::regular || row.type == FileType::unknown) && row.origin != Origin::created &&
           row.origin != Origin::absent;
}

void add_all(RangeSet& to, const RangeSet& from) {
    for (const auto& [begin, end] : from.ranges()) {
        to.add(begin, end);
    }
}

/// What a series of the recording's header sums up to, bytes; 0 where there is none.
uint64_t bytes_of_series(const Context& context, std::string_view name) {
    constexpr double kMiB = 1024 * 1024;
    double sum = 0;
    for (const ContextSeries& series : context.series) {
        if (series.name == name) {
            sum += std::accumulate(series.values.begin(), series.values.end(), 0.0);
        }
    }
    return static_cast<uint64_t>(sum * kMiB * static_cast<double>(context.interval_ns) / 1e9);
}

/// By what the device read and what came into the page cache, for all files.
void estimate(const LogReader& recording, RecordedCache& recorded) {
    const Context context = read_context(recording.header());
    if (context.series.empty()) {
        return;
    }
    const Tables& tables = recording.tables();
    const std::vector<RangeSet> reads =
        gather_reads(recording, [&](FileId file) { return may_have_been_there(tables.files[file]); });
    for (FileId file = 1; file < reads.size(); ++file) {
        recorded.read_bytes += reads[file].bytes();
    }
    const uint64_t from_device =
        std::min(bytes_of_series(context, "device read"), bytes_of_series(context, "page cache added"));
    recorded.fetched_bytes = std::min(from_device, recorded.read_bytes);
}

class CachePlanner {
public:
    CachePlanner(const Plan& plan, const LogReader& recording) : plan_(plan), recording_(recording) {}

    CachePlan run() {
        const Tables& tables = plan_.log->tables();
        std::vector<RangeSet> reads = gather_reads(*plan_.log, [&](FileId file) {
            return plan_.keeps_file(file) && plan_.paths[file].relative != nullptr &&
                   may_have_been_there(tables.files[file]);
        });
        for (FileId file = 1; file < reads.size(); ++file) {
            if (!reads[file].empty()) {
                const std::string path = plan_.paths[file].relative;
                const auto [at, added] = by_path_.emplace(path, out_.targets.size());
                if (added) {
                    out_.targets.push_back({path, {}, {}});
                }
                add_all(out_.targets[at->second].reads, reads[file]);
            }
        }
        if (const std::optional<FetchedPages> fetched = fetched_pages(recording_)) {
            know(*fetched, plan_.log == &recording_ ? std::move(reads) : recorded_reads());
        } else {
            estimate(recording_, out_.recorded);
        }
        return std::move(out_);
    }

private:
    /// Of files that the plan's log reads as well.
    std::vector<RangeSet> recorded_reads() const {
        const Tables& tables = recording_.tables();
        return gather_reads(recording_, [&](FileId file) {
            return may_have_been_there(tables.files[file]) && target_of(file) != out_.targets.size();
        });
    }

    size_t target_of(FileId file) const {
        const std::optional<std::string> path = plan_.maps.map(recording_.tables().path(file));
        const auto found = path ? by_path_.find(*path) : by_path_.end();
        return found == by_path_.end() ? out_.targets.size() : found->second;
    }

    void know(const FetchedPages& fetched, std::vector<RangeSet> reads) {
        const Tables& tables = recording_.tables();
        RecordedCache& recorded = out_.recorded;
        recorded.pages_known = true;
        recorded.fetched_bytes = 0;
        for (FileId file = 1; file < reads.size(); ++file) {
            const size_t target = reads[file].empty() ? out_.targets.size() : target_of(file);
            if (target == out_.targets.size()) {
                continue;
            }
            if (tables.files[file].size_exact) {
                reads[file].clip(tables.files[file].size);
            }
            const auto found = fetched.find(file);
            const RangeSet resident = found == fetched.end() ? reads[file] : reads[file].without(found->second);
            recorded.read_bytes += reads[file].bytes();
            *recorded.fetched_bytes += reads[file].bytes() - resident.bytes();
            add_all(out_.targets[target].resident, resident);
        }
    }

    const Plan& plan_;
    const LogReader& recording_;
    CachePlan out_;
    std::unordered_map<std::string, size_t> by_path_;
};

}  // namespace

CachePlan plan_cache(const Plan& plan, const LogReader& recording) { return CachePlanner(plan, recording).run(); }

}  // namespace reprise
