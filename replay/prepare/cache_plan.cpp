// SPDX-License-Identifier: MIT
#include "replay/prepare/cache_plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/context_series.h"
#include "formats/oplog/file_names.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/text_index.h"
#include "replay/plan/file_systems.h"
#include "replay/plan/reads.h"
#include "replay/plan/recorded_doubts.h"

namespace reprise {
namespace {

RangeSet common(const RangeSet& a, const RangeSet& b) { return a.without(a.without(b)); }

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

/// Names that the job gave to files which were there before: by renames and links of their own, or of a directory above
/// them.
class LaterNames {
public:
    explicit LaterNames(const Tables& tables) : tables_(tables) {
        // The name that was there may have the greater number: it was learnt of by the later one.
        std::unordered_map<FileId, FileId> there;  // by the first one of the names
        std::vector<std::pair<FileId, FileId>> names;
        each_further_name(
            tables, [&](FileId file) { return may_have_been_there(tables.files[file]) || may_be(file); },
            [&](FileId first, FileId file) {
                for (const FileId one : {first, file}) {
                    if (may_be(one)) {
                        names.emplace_back(one, first);
                    } else {
                        there.emplace(first, one);
                    }
                }
            });
        for (const auto& [name, first] : names) {
            if (const auto found = there.find(first); found != there.end()) {
                same_inode_.emplace(name, found->second);
            }
        }
    }
    /// Whether the file may turn out to be such a name.
    bool may_be(FileId file) const {
        const FileRow& row = tables_.files[file];
        return row.origin == Origin::created && (row.type == FileType::regular || row.type == FileType::unknown);
    }
    void note(const std::vector<FileReads::Rename>& renames) {
        for (const FileReads::Rename& one : renames) {
            if (one.exchange) {
                moved_.insert({tables_.path(one.from), tables_.path(one.to)});
                continue;
            }
            before_.emplace(one.to, one.from);
            if (tables_.files[one.from].type != FileType::regular) {
                moved_.insert(tables_.path(one.from));
            }
        }
    }
    /// The name that was there before; 0: it is no such name.
    FileId first_of(FileId file) const {
        constexpr int kMostNames = 1000;  // a log may say that it goes round
        FileId first = file;
        int names = 0;
        for (auto found = before_.find(first); found != before_.end() && names < kMostNames;
             found = before_.find(first), ++names) {
            first = found->second;
        }
        if (first != file) {
            return may_have_been_there(tables_.files[first]) ? first : 0;
        }
        const auto same = same_inode_.find(file);
        if (same == same_inode_.end()) {
            return 0;
        }
        for (std::string_view path = tables_.path(same->second); !path.empty();
             path = path.substr(0, path.rfind('/'))) {
            if (moved_.contains(path)) {
                return same->second;
            }
            if (path.find('/') == path.npos) {
                break;
            }
        }
        return 0;
    }

private:
    const Tables& tables_;
    std::unordered_map<FileId, FileId> same_inode_, before_;
    std::unordered_set<std::string_view> moved_;  // that lies elsewhere since, with all below it
};

/// What is read of files that were there before, whatever they are called by then: by their first names.
FileReads reads_of_files_before(const LogReader& log, const std::function<bool(FileId)>& wanted) {
    const Tables& tables = log.tables();
    LaterNames names(tables);
    FileReads all = gather_reads(log, [&](FileId file) {
        return (may_have_been_there(tables.files[file]) || names.may_be(file)) && wanted(file);
    });
    names.note(all.renames);
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (!names.may_be(file)) {
            continue;
        }
        const FileId first = names.first_of(file);
        const RangeSet made = first != 0 ? all.made[first] : RangeSet();
        for (FileRanges* what : {&all.reads, &all.made, &all.advised, &all.touched}) {
            if ((*what)[file].empty()) {
                continue;
            }
            if (first != 0 && wanted(first)) {
                add_all(what->of(first), what == &all.made ? all.made[file] : (*what)[file].without(made));
            }
            what->of(file) = {};
        }
    }
    return all;
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
    const FileRanges reads = reads_of_files_before(recording, [](FileId) { return true; }).reads;
    for (FileId file = 1; file < tables.files.size(); ++file) {
        recorded.read_bytes += reads[file].bytes();
    }
    const uint64_t from_device =
        std::min(bytes_of_series(context, "device read"), bytes_of_series(context, "page cache added"));
    recorded.fetched_bytes = std::min(from_device, recorded.read_bytes);
}

bool has_device(std::string_view file_system) {
    constexpr std::string_view kOnDevice[] = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "exfat"};
    return std::find(std::begin(kOnDevice), std::end(kOnDevice), file_system) != std::end(kOnDevice);
}

class CachePlanner {
public:
    CachePlanner(const Plan& plan, const LogReader& recording) : plan_(plan), recording_(recording) {}

    CachePlan run() {
        const Tables& tables = plan_.log->tables();
        FileReads all = reads_of_files_before(
            *plan_.log, [&](FileId file) { return plan_.keeps_file(file) && plan_.paths[file].relative != nullptr; });
        out_.beside_bytes = all.beside_bytes;
        out_.drops = all.drops;
        const auto is_read = [&](FileId file) { return !all.reads[file].empty() || !all.advised[file].empty(); };
        size_t read = 0;
        for (FileId file = 1; file < tables.files.size(); ++file) {
            read += is_read(file) ? 1 : 0;
        }
        out_.targets.reserve(read);
        by_path_.reserve(read);
        target_of_.resize(tables.files.size(), kNone);
        for (FileId file = 1; file < tables.files.size(); ++file) {
            if (is_read(file)) {
                const char* const path = plan_.paths[file].relative;
                const auto fresh = static_cast<uint32_t>(out_.targets.size());
                const uint32_t target = target_of_[file] = by_path_.find_or_add(path, fresh);
                if (target == fresh) {
                    out_.targets.push_back({path, {}, {}});
                }
                add_all(out_.targets[target].reads, all.reads[file]);
                add_all(out_.targets[target].reads, all.advised[file]);
            }
        }
        uint64_t touched = 0;
        for (FileId file = 1; file < tables.files.size(); ++file) {
            touched += all.touched[file].bytes();
        }
        fetched_ = fetched_pages(recording_);
        cached_ = cached_pages(recording_);
        if (fetched_ || cached_) {
            know(plan_.log == &recording_ ? std::move(all) : recorded_reads());
        } else {
            estimate(recording_, out_.recorded);
        }
        const RecordedCache& recorded = out_.recorded;
        if (recorded.touched_bytes != 0) {  // a scaled log has more of the same
            const double times = static_cast<double>(touched) / static_cast<double>(recorded.touched_bytes);
            out_.around_bytes =
                static_cast<uint64_t>(static_cast<double>(recorded.around_bytes) * std::max(times - 1, 0.0));
        }
        return std::move(out_);
    }

private:
    /// Of files that the plan's log reads as well.
    FileReads recorded_reads() const {
        const Tables& tables = recording_.tables();
        return reads_of_files_before(recording_, [&](FileId file) {
            return tables.files[file].origin == Origin::created || target_of(file) != kNone;
        });
    }

    /// Of a file of the recording; kNone: the plan's log does not read it.
    uint32_t target_of(FileId file) const {
        if (plan_.log == &recording_) {
            return target_of_[file];
        }
        const std::optional<std::string> path = plan_.maps.map(recording_.tables().path(file));
        return path ? by_path_.find(*path) : kNone;
    }

    /// What of `reads` was in memory when the recording began.
    RangeSet resident(FileId file, const RangeSet& reads, const RangeSet& made) {
        if (fetched_) {
            const auto found = fetched_->find(file);
            return found != fetched_->end()                      ? reads.without(found->second)
                   : passes_page_cache(*fetched_, cached_, file) ? common(reads, made)
                                                                 : reads;
        }
        const auto found = cached_->find(file);
        const uint64_t bytes = found == cached_->end() ? 0 : found->second * RangeSet::kPage;
        const FileRow& row = recording_.tables().files[file];
        const bool all = row.size_exact && bytes >= row.size;
        out_.recorded.guessed_files += found == cached_->end() || (bytes != 0 && !all) ? 1 : 0;
        RangeSet beginning = reads;
        if (!all) {
            beginning.clip(bytes);
        }
        return beginning;
    }

    /// Of what the kernel was advised to read, what it did read: what it fetched. Where the whole file was in memory,
    /// or the recording does not say what was fetched, all of it counts.
    RangeSet read_by_advice(FileId file, const RangeSet& advised) const {
        if (!fetched_) {
            return advised;
        }
        const auto cached = cached_ ? cached_->find(file) : CachedPages::const_iterator{};
        const FileRow& row = recording_.tables().files[file];
        if (cached_ && cached != cached_->end() && row.size_exact && cached->second * RangeSet::kPage >= row.size) {
            return advised;
        }
        const auto found = fetched_->find(file);
        return found == fetched_->end() ? RangeSet() : common(advised, found->second);
    }

    /// What several names of one file read is read of one file.
    void join_names(FileReads& all) const {
        const Tables& tables = recording_.tables();
        each_further_name(
            recording_.tables(),
            [&](FileId file) {
                const bool used = !all.reads[file].empty() || !all.advised[file].empty();
                return used && tables.files[file].origin == Origin::existed && target_of(file) != kNone;
            },
            [&](FileId one, FileId file) {
                for (FileRanges* what : {&all.reads, &all.made, &all.advised, &all.touched}) {
                    if (!(*what)[file].empty()) {
                        add_all(what->of(one), (*what)[file]);
                        what->of(file) = {};
                    }
                }
            });
    }

    /// What was fetched near `touched` and not for `reads`: a fault maps what is in memory there.
    RangeSet around(FileId file, const RangeSet& touched, const RangeSet& reads) const {
        constexpr uint64_t kMapped = uint64_t{2} << 20;  // at most by one fault: a huge page
        const auto found = fetched_ ? fetched_->find(file) : FetchedPages::const_iterator{};
        if (!fetched_ || found == fetched_->end()) {
            return {};
        }
        RangeSet near;
        for (const auto& [begin, end] : touched.ranges()) {
            const uint64_t last = end <= UINT64_MAX - kMapped ? end + kMapped - 1 : end;
            near.add(begin / kMapped * kMapped, last / kMapped * kMapped);
        }
        return common(near, found->second).without(reads);
    }

    /// Of a file with page faults, how far the recording read around them (RecordedCache::fault_reach).
    int64_t fault_reach(FileId file, uint64_t touched, uint64_t around) const {
        const uint64_t device = recording_.tables().files[file].device;
        const std::string name = device_name(device);
        if (read_ahead_.is_object() && read_ahead_.contains(name) && read_ahead_[name].is_number_unsigned()) {
            return static_cast<int64_t>(
                std::min(read_ahead_[name].get<uint64_t>(), static_cast<uint64_t>(kMostFaultReach)));
        }
        const uint64_t pages = std::max<uint64_t>(touched / RangeSet::kPage, 1);
        const uint64_t each = std::min((touched + around) / pages, static_cast<uint64_t>(kMostFaultReach));
        return static_cast<int64_t>(std::bit_ceil(each));
    }

    void know(FileReads all) {
        join_names(all);
        const Holes holes = holes_at_first(recording_, all);
        const RecordedFileSystems systems(recording_.header());
        uint64_t from_devices = 0;  // fetched, of file systems that keep their data on a device of this machine
        const Tables& tables = recording_.tables();
        RecordedCache& recorded = out_.recorded;
        recorded.pages_known = true;
        recorded.fetched_bytes = 0;
        for (FileId file = 1; file < tables.files.size(); ++file) {
            RangeSet reads = std::move(all.reads.of(file));
            if (!all.advised[file].empty()) {
                add_all(reads, read_by_advice(file, all.advised[file]));
            }
            const uint32_t target = reads.empty() ? kNone : target_of(file);
            if (target == kNone) {
                continue;
            }
            if (tables.files[file].size_exact) {
                reads.clip(tables.files[file].size);
            }
            if (const auto none = holes.find(file); none != holes.end()) {
                recorded.hole_bytes += common(reads, none->second).bytes();
                reads = reads.without(none->second);
            }
            const RangeSet found = resident(file, reads, all.made[file]);
            recorded.read_bytes += reads.bytes();
            *recorded.fetched_bytes += reads.bytes() - found.bytes();
            const uint64_t device = tables.files[file].device;
            const bool counted = has_device(systems.type(device)) && systems.is_counted(device);
            from_devices += counted ? reads.bytes() - found.bytes() : 0;
            const RangeSet touched = common(all.touched[file], reads);
            recorded.touched_bytes += touched.bytes();
            recorded.touched_in_memory += common(touched, found).bytes();
            if (const RangeSet near = touched.empty() ? RangeSet() : around(file, touched, reads); !near.empty()) {
                recorded.around_bytes += near.bytes();
                recorded.fault_reach = std::max(recorded.fault_reach, fault_reach(file, touched.bytes(), near.bytes()));
                add_all(out_.targets[target].reads, near);
            }
            add_all(out_.targets[target].resident, found);
        }
        const Context context = read_context(recording_.header());
        const bool counted = std::any_of(context.series.begin(), context.series.end(),
                                         [](const ContextSeries& series) { return series.name == "device read"; });
        // A merged log has the counters of one machine.
        if (fetched_ && counted && !read_fact(recording_.header(), fact::merged)) {
            recorded.unserved_bytes = from_devices - std::min(from_devices, bytes_of_series(context, "device read"));
        }
    }

    const Plan& plan_;
    const LogReader& recording_;
    const nlohmann::json read_ahead_ =
        nlohmann::json::parse(read_fact(recording_.header(), fact::recorded_read_ahead).value_or(""), nullptr, false);
    std::optional<FetchedPages> fetched_;
    std::optional<CachedPages> cached_;
    CachePlan out_;
    struct PathOf {
        const CachePlan& plan;
        std::string_view operator()(uint32_t target) const { return plan.targets[target].path; }
    };
    TextIndex<PathOf> by_path_{PathOf{out_}};
    static constexpr uint32_t kNone = TextIndex<PathOf>::kNone;
    std::vector<uint32_t> target_of_;  // by FileId of the plan's log
};

}  // namespace

bool RecordedCache::hides_touches() const {
    constexpr uint64_t kLeast = 16 * RangeSet::kPage;
    return touched_in_memory >= kLeast && touched_in_memory >= touched_bytes / 2;
}

CachePlan plan_cache(const Plan& plan, const LogReader& recording) { return CachePlanner(plan, recording).run(); }

}  // namespace reprise
