// SPDX-License-Identifier: MIT
#include "cli/capture_metrics.h"

#include <algorithm>
#include <cctype>
#include <new>
#include <utility>

#include "formats/raw/dump.h"

namespace reprise::cli {
namespace {

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string event_name(size_t type) {
    std::string name = raw_type_name(static_cast<uint8_t>(type));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

}  // namespace

CaptureMetrics::CaptureMetrics(std::string log)
    : log_(std::move(log)), memory_(sizeof(Shared)), shared_(new (memory_.data()) Shared) {}

void CaptureMetrics::Counter::set(uint64_t now) {
    const uint64_t before = latest.load(std::memory_order_relaxed);
    all.fetch_add(std::max(now, before) - before, std::memory_order_relaxed);
    latest.store(std::max(now, before), std::memory_order_relaxed);
}

void CaptureMetrics::begin_run() {
    for (Counter& counter : shared_->by_type) {
        counter.latest = 0;
    }
    for (Counter* const counter : {&shared_->lost, &shared_->bytes, &shared_->tasks, &shared_->cpu_ns}) {
        counter->latest = 0;
    }
    shared_->elapsed_ns = shared_->most_lag_ns = 0;
    ++shared_->run;
}

void CaptureMetrics::progress(const CaptureProgress& now) {
    for (size_t type = 0; type < kTypes; ++type) {
        shared_->by_type[type].set(now.by_type[type]);
    }
    shared_->lost.set(now.lost);
    shared_->bytes.set(now.bytes);
    shared_->tasks.set(now.tasks);
    shared_->cpu_ns.set(static_cast<uint64_t>(std::max<int64_t>(now.own_cpu_ns, 0)));
    shared_->live = now.live;
    shared_->ring_used = now.ring_used;
    shared_->ring_bytes = now.ring_bytes;
    shared_->elapsed_ns = now.elapsed_ns;
    shared_->most_lag_ns = now.most_lag_ns;
    shared_->recording = 1;
}

void CaptureMetrics::end_run() { shared_->recording = shared_->live = shared_->ring_used = 0; }

std::string CaptureMetrics::text() const {
    Exposition out;
    add_process_metrics(out);
    out.add(Metric::capture_info, {log_}, uint64_t{1});
    out.add(Metric::capture_run, {}, shared_->run);
    out.add(Metric::capture_recording, {}, shared_->recording);
    out.add(Metric::capture_elapsed_seconds, {}, static_cast<double>(shared_->elapsed_ns) / 1e9);
    for (size_t type = 0; type < kTypes; ++type) {
        if (const uint64_t records = shared_->by_type[type].all; records != 0) {
            out.add(Metric::capture_records_total, {event_name(type)}, records);
        }
    }
    out.add(Metric::capture_lost_events_total, {}, shared_->lost.all);
    out.add(Metric::capture_written_bytes_total, {}, shared_->bytes.all);
    out.add(Metric::capture_ring_used_bytes, {}, shared_->ring_used);
    out.add(Metric::capture_ring_size_bytes, {}, shared_->ring_bytes);
    out.add(Metric::capture_longest_lag_seconds, {}, static_cast<double>(shared_->most_lag_ns) / 1e9);
    out.add(Metric::capture_tasks_total, {}, shared_->tasks.all);
    out.add(Metric::capture_live_tasks, {}, shared_->live);
    out.add(Metric::capture_recorder_cpu_seconds_total, {}, seconds(shared_->cpu_ns.all));
    return out.text();
}

}  // namespace reprise::cli
