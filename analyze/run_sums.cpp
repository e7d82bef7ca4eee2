// SPDX-License-Identifier: MIT
#include "analyze/run_sums.h"

#include <algorithm>
#include <utility>

#include "formats/oplog/op_fields.h"
#include "formats/support/pack.h"

namespace reprise {

template <>
inline constexpr uint64_t kGreatest<StepRule> = static_cast<uint64_t>(StepRule::submission);

namespace {

constexpr uint32_t kVersion = 1;

void put_latencies(SideSums& side) {
    side.figures.reads = latency_of_all(Trait::reads, side.latency);
    side.figures.writes = latency_of_all(Trait::writes, side.latency);
}

/// Adds the mean numbers of `from` to parts of the time from `begin` to `end`, which holds its own.
void add_over_time(std::vector<double>& into, int64_t begin, int64_t end, const InFlight& from) {
    const double whole = static_cast<double>(distance_ns(begin, end));
    const double own = static_cast<double>(distance_ns(from.begin, from.end));
    const double part = whole / static_cast<double>(into.size());
    const double step = own / static_cast<double>(from.over_time.size());
    if (part <= 0 || from.over_time.empty()) {
        return;
    }
    const double first = static_cast<double>(distance_ns(begin, from.begin));
    for (size_t i = 0; i < from.over_time.size(); ++i) {
        const double low = first + static_cast<double>(i) * step, high = low + step;
        auto at = static_cast<size_t>(std::max(low / part, 0.0));
        for (; at < into.size() && static_cast<double>(at) * part < high; ++at) {
            const double from_here = std::max(low, static_cast<double>(at) * part);
            const double to = std::min(high, static_cast<double>(at + 1) * part);
            into[at] += from.over_time[i] * std::max(to - from_here, 0.0) / part;
        }
    }
}

void merge(InFlight& into, const InFlight& from) {
    into.unfinished += from.unfinished;
    for (size_t i = 0; i < into.by_kind.size(); ++i) {
        into.by_kind[i] += from.by_kind[i];
    }
    if (from.over_time.empty() || into.over_time.empty()) {  // one of them had no requests
        if (into.over_time.empty()) {
            into.begin = from.begin;
            into.end = from.end;
            into.over_time = from.over_time;
        }
    } else {
        const int64_t begin = std::min(into.begin, from.begin), end = std::max(into.end, from.end);
        std::vector<double> over_time(InFlight::kParts);
        add_over_time(over_time, begin, end, into);
        add_over_time(over_time, begin, end, from);
        into.over_time = std::move(over_time);
        into.begin = begin;
        into.end = end;
    }
    into.all.add(from.all);
    into.all.depth.merge(from.all.depth);  // of ranks side by side: the time is that of both
    into.rings.insert(into.rings.end(), from.rings.begin(), from.rings.end());
    std::sort(into.rings.begin(), into.rings.end(), [](const RingFigures& a, const RingFigures& b) {
        return static_cast<const RingName&>(a.ring) < static_cast<const RingName&>(b.ring);
    });
}

void merge_devices(SideSums& into, const SideSums& from) {
    into.begin = std::min(into.begin, from.begin);
    into.end = std::max(into.end, from.end);
    std::vector<DeviceUtilisation>& devices = into.use.devices;
    devices.insert(devices.end(), from.use.devices.begin(), from.use.devices.end());
    std::stable_sort(devices.begin(), devices.end(), [](const DeviceUtilisation& a, const DeviceUtilisation& b) {
        return std::pair{a.process, a.device} < std::pair{b.process, b.device};
    });
    for (DeviceUtilisation& device : devices) {
        device.begin = into.begin;
        device.end = std::max(device.end, into.end);
        for (EpochUtilisation& epoch : device.epochs) {
            epoch.end = epoch.complete ? epoch.end : std::max(epoch.end, into.end);
        }
    }
}

void merge(SideSums& into, const SideSums& from) {
    JobFigures& figures = into.figures;
    figures.bytes_read += from.figures.bytes_read;
    figures.bytes_written += from.figures.bytes_written;
    figures.storage_bytes_read += from.figures.storage_bytes_read;
    figures.bytes_touched += from.figures.bytes_touched;
    merge(figures.requests, from.figures.requests);
    figures.time.compute += from.figures.time.compute;
    figures.time.storage += from.figures.time.storage;
    figures.time.accelerator += from.figures.time.accelerator;
    figures.time.waits += from.figures.time.waits;
    figures.time.total += from.figures.time.total;
    into.latency.resize(std::max(into.latency.size(), from.latency.size()));
    for (size_t kind = 0; kind < from.latency.size(); ++kind) {
        into.latency[kind].merge(from.latency[kind]);
    }
    put_latencies(into);
    merge_devices(into, from);
}

/// Shown by the tables of the log.
void check(const SideSums& side, const Tables& tables) {
    const bool known = std::all_of(side.use.devices.begin(), side.use.devices.end(),
                                   [&](const auto& device) { return device.process < tables.processes.size(); }) &&
                       std::all_of(side.figures.requests.rings.begin(), side.figures.requests.rings.end(),
                                   [&](const auto& of) { return of.ring.process < tables.processes.size(); });
    const size_t parts = side.figures.requests.over_time.size();
    if (!known || side.latency.size() != kOpKindLimit || (parts != 0 && parts != InFlight::kParts)) {
        throw Corrupt("the figures of a rank are none of this log");
    }
}

}  // namespace

template <class Archive>
void fields(Archive& archive, RequestFigures& of) {
    auto& [requests, reads, writes, failed, bytes_read, bytes_written, latency, depth] = of;
    archive(requests, reads, writes, failed, bytes_read, bytes_written, latency, depth);
}
template <class Archive>
void fields(Archive& archive, RingFigures& of) {
    fields(archive, static_cast<RequestFigures&>(of));
    archive(of.ring.process, of.ring.handle, of.ring.aio, of.ring.pid, of.ring.fd, of.ring.polled);
}
template <class Archive>
void fields(Archive& archive, InFlight& of) {
    auto& [all, rings, unfinished, begin, end, over_time, by_kind] = of;
    archive(all, rings, unfinished, begin, end, over_time, by_kind);
}
template <class Archive>
void fields(Archive& archive, TimeSpent& of) {
    auto& [compute, storage, accelerator, waits, total] = of;
    archive(compute, storage, accelerator, waits, total);
}
template <class Archive>
void fields(Archive& archive, JobFigures& of) {
    auto& [elapsed, bytes_read, bytes_written, storage_read, touched, reads, writes, requests, time, au, busy, stall] =
        of;
    static_cast<void>(reads);  // of the histograms
    static_cast<void>(writes);
    archive(elapsed, bytes_read, bytes_written, storage_read, touched, requests, time, au, busy, stall);
}
template <class Archive>
void fields(Archive& archive, Utilisation& of) {
    auto& [begin, end, submits, busy, first_work, last_work, later_busy, later_elapsed] = of;
    archive(begin, end, submits, busy, first_work, last_work, later_busy, later_elapsed);
}
template <class Archive>
void fields(Archive& archive, EpochUtilisation& of) {
    fields(archive, static_cast<Utilisation&>(of));
    archive(of.number, of.complete);
}
template <class Archive>
void fields(Archive& archive, DeviceUtilisation& of) {
    fields(archive, static_cast<Utilisation&>(of));
    archive(of.process, of.device, of.epochs, of.steps.rule, of.steps.lengths);
}
template <class Archive>
void fields(Archive& archive, AcceleratorUse& of) {
    auto& [devices] = of;
    archive(devices);
}
template <class Archive>
void fields(Archive& archive, SideSums& of) {
    auto& [figures, latency, use, begin, end] = of;
    archive(figures, latency, use, begin, end);
}
template <class Archive>
void fields(Archive& archive, RunSums& of) {
    auto& [recorded, here, asked] = of;
    archive(recorded, here, asked);
}

SideSums sums_of(FigureCounter& counter, AcceleratorObserver& observer) {
    SideSums out;
    out.figures = counter.finish();
    for (size_t kind = 0; kind < kOpKindLimit; ++kind) {
        out.latency.push_back(counter.latency(static_cast<OpKind>(kind)));
    }
    out.begin = observer.begin();
    out.end = observer.end();
    out.use = observer.finish();
    return out;
}

void merge(RunSums& into, const RunSums& from) {
    merge(into.recorded, from.recorded);
    merge(into.here, from.here);
    into.asked.resize(std::max(into.asked.size(), from.asked.size()));
    for (size_t epoch = 0; epoch < from.asked.size(); ++epoch) {
        into.asked[epoch] += from.asked[epoch];
    }
}

void pack(const RunSums& sums, Bytes& out) {
    put_fixed(out, kVersion);
    Packer archive(out);
    archive(const_cast<RunSums&>(sums));  // NOLINT: packing reads only
}

RunSums unpack_sums(ByteReader& in, const Tables& tables) {
    if (in.fixed<uint32_t>() != kVersion) {
        throw Corrupt("the figures of a rank are of another version of reprise");
    }
    RunSums sums;
    Unpacker archive(in);
    archive(sums);
    for (SideSums* const side : {&sums.recorded, &sums.here}) {
        check(*side, tables);
        put_latencies(*side);
    }
    return sums;
}

}  // namespace reprise
