// SPDX-License-Identifier: MIT
// What the counts of a log come to.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "analyze/job/job_counter.h"
#include "formats/support/path.h"

namespace reprise {
namespace {

std::string_view directory_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == path.npos ? std::string_view() : slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

}  // namespace

void JobCounter::finish(JobAnalysis& out) {
    for (const auto& [id, request] : requests_) {
        if (request.known && request.on_storage) {  // never reaped: in flight to the end
            in_flight(request.begin, cells_.end());
        }
    }
    finish_cells(out);
    finish_lanes(out);
    out.time = std::move(counted_.time);
    out.direct_read = counted_.direct_read;
    out.reads_by_size = std::move(counted_.reads_by_size);
    out.writes_by_size = std::move(counted_.writes_by_size);
    out.metadata_calls = counted_.metadata_calls;
    out.sync_calls = counted_.sync_calls;
    out.blocking_waits = counted_.blocking_waits;
    out.metadata_ns = counted_.metadata_ns;
    out.data_ns = counted_.data_ns;
    out.sync_ns = counted_.sync_ns;
    for (std::unique_ptr<KindOfRole>& row : kinds_) {
        if (row) {
            out.kinds.push_back(std::move(*row));
        }
    }
    std::stable_sort(out.kinds.begin(), out.kinds.end(),
                     [](const KindOfRole& a, const KindOfRole& b) { return a.latency.sum() > b.latency.sum(); });
    for (size_t role = 0; role < orders_.size(); ++role) {
        if (orders_[role].total() > 0) {
            out.orders.push_back({static_cast<Role>(role), orders_[role]});
        }
    }
    out.by_process = skew_of({process_bytes_.begin(), process_bytes_.end()});
    std::vector<Access> accesses = accesses_.finish();
    out.sampled = accesses_.share();
    out.reuse = reuse_of(accesses, out.sampled);
    finish_files(out);
    finish_epochs(out, std::move(accesses));
}

void JobCounter::finish_cells(JobAnalysis& out) {
    const double width = cells_.width_ns();
    const size_t per_interval = cells_.count() / kIntervals;
    std::vector<double> written(cells_.count()), saved(cells_.count());
    double depth_sum = 0;
    size_t with_any = 0;
    for (size_t cell = 0; cell < of_cell_.size(); ++cell) {
        const Cell& at = of_cell_[cell];
        const size_t interval = cell / per_interval;
        counted_.time.read_bytes[interval] += at.read;
        counted_.time.written_bytes[interval] += at.written;
        counted_.time.in_flight_ns[interval] += at.in_flight;
        counted_.time.busy_ns[interval] += at.busy;
        written[cell] = at.written;
        saved[cell] = at.saved;
        const double depth = at.in_flight / width;
        const double storage = std::min(depth, 1.0), busy = std::min(at.busy / width, 1.0);
        out.overlap.storage += storage * width;
        out.overlap.busy += busy * width;
        out.overlap.both += storage * busy * width;
        const size_t size = depth <= 0 ? 0 : depth <= 1 ? 1 : 1 + static_cast<size_t>(std::ceil(std::log2(depth)));
        out.depths[std::min(size, out.depths.size() - 1)] += 1.0 / static_cast<double>(of_cell_.size());
        depth_sum += depth;
        with_any += depth > 0 ? 1 : 0;
        out.most_depth = std::max(out.most_depth, depth);
    }
    out.mean_depth = with_any == 0 ? 0 : depth_sum / static_cast<double>(with_any);
    out.bursts_of_checkpoints = std::any_of(saved.begin(), saved.end(), [](double bytes) { return bytes > 0; });
    out.bursts = find_bursts(out.bursts_of_checkpoints ? saved : written, width);
}

void JobCounter::finish_lanes(JobAnalysis& out) {
    for (auto& [key, lane] : device_lanes_) {
        const auto worked = [](const std::array<float, 4>& part) { return part[0] > 0; };
        const auto first = std::find_if(lane.parts.begin(), lane.parts.end(), worked);
        const auto last = std::find_if(lane.parts.rbegin(), lane.parts.rend(), worked).base();
        const auto width = static_cast<float>(lanes_grid_.width_ns());
        for (auto at = first; at != last; ++at) {
            (*at)[1] = std::max(width - (*at)[0], 0.0F);
        }
        if (key.first < tables_.processes.size() && device_lanes_.size() > 1) {
            lane.name += " of process " + std::to_string(tables_.processes[key.first].pid);
        }
        out.lanes.push_back(std::move(lane));
    }
    // Many ranks have many accelerators; the first ones stand for all.
    out.lanes.resize(std::min(out.lanes.size(), kLanes));
    for (JobLane& lane : counted_.lanes) {
        out.lanes.push_back(std::move(lane));
    }
}

void JobCounter::finish_files(JobAnalysis& out) {
    std::vector<FileId> used;
    std::vector<double> bytes;
    std::map<std::string_view, HotDirectory> directories;
    for (FileId file = 1; file < files_.size(); ++file) {
        const UsedFile& use = files_[file];
        const Role role = tables_.files[file].role;
        if (use.ops == 0 || role == Role::ipc || tables_.files[file].type == FileType::directory) {
            continue;
        }
        used.push_back(file);
        bytes.push_back(role == Role::program || role == Role::system ? 0
                                                                      : static_cast<double>(use.read + use.written));
        HotDirectory& directory = directories[directory_of(tables_.path(file))];
        ++directory.files;
        directory.ops += use.ops;
        directory.read += use.read;
        directory.written += use.written;
        directory.time = end_of(directory.time, use.time);
    }
    out.by_file = skew_of(std::move(bytes));
    const auto heat = [&](FileId file) {
        const UsedFile& use = files_[file];
        return std::tuple(use.read + use.written, use.ops, -static_cast<int64_t>(file));
    };
    const size_t hot = std::min(options_.hot, used.size());
    std::partial_sort(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(hot), used.end(),
                      [&](FileId a, FileId b) { return heat(a) > heat(b); });
    for (size_t i = 0; i < hot; ++i) {
        const FileId file = used[i];
        const auto again = out.reuse.by_file.find(file);
        out.hot_files.push_back({file, std::string(tables_.path(file)), tables_.files[file].role, files_[file],
                                 again == out.reuse.by_file.end() ? -1 : again->second});
    }
    for (auto& [path, directory] : directories) {
        directory.path = std::string(path);
        out.hot_directories.push_back(std::move(directory));
    }
    std::stable_sort(out.hot_directories.begin(), out.hot_directories.end(),
                     [](const HotDirectory& a, const HotDirectory& b) {
                         return std::pair(a.read + a.written, a.ops) > std::pair(b.read + b.written, b.ops);
                     });
    out.hot_directories.resize(std::min(options_.hot, out.hot_directories.size()));
}

void JobCounter::finish_epochs(JobAnalysis& out, std::vector<Access> accesses) {
    std::vector<SampleFile> files(files_.size());
    for (size_t file = 0; file < files_.size(); ++file) {
        files[file] = {files_[file].reads, files_[file].opens, files_[file].written > 0};
    }
    std::vector<MarkedEpoch> marked;
    for (const auto& [number, epoch] : marked_) {
        marked.push_back(epoch);
    }
    std::stable_sort(marked.begin(), marked.end(),
                     [](const MarkedEpoch& a, const MarkedEpoch& b) { return a.begin < b.begin; });
    out.passes = find_passes(accesses, out.sampled, tables_, files, marked);
    for (const JobEpoch& epoch : out.passes.epochs) {
        EpochFigures row;
        row.epoch = epoch;
        const size_t from = cells_.at(epoch.begin), to = std::max(cells_.at(epoch.end), from + 1);
        for (size_t cell = from; cell < std::min(to, of_cell_.size()); ++cell) {
            row.read_bytes += of_cell_[cell].read;
            row.written_bytes += of_cell_[cell].written;
            row.reads += of_cell_[cell].reads;
            row.read_ns += of_cell_[cell].read_ns;
            row.busy_ns += of_cell_[cell].busy;
        }
        out.epochs.push_back(row);
    }
}

}  // namespace reprise
