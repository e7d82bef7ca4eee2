// SPDX-License-Identifier: MIT
#include "analyze/job_figures.h"

#include <nlohmann/json.hpp>

#include "formats/support/histogram.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

Json calls_json(const Latency& latency) {
    return {{"calls", latency.count}, {"p50_ns", latency.p50}, {"p99_ns", latency.p99}};
}

}  // namespace

JobFigures job_figures(const Summary& summary) {
    JobFigures out;
    out.elapsed = summary.elapsed();
    out.bytes_read = summary.bytes_read;
    out.bytes_written = summary.bytes_written;
    out.storage_bytes_read = summary.storage_bytes_read;
    out.bytes_touched = summary.storage_bytes_touched;
    out.reads = summary.reads;
    out.writes = summary.writes;
    out.requests = summary.requests;
    out.time = summary.time;
    if (!summary.devices.empty()) {
        out.au = summary.au();
        out.busy = summary.busy();
        out.stall = summary.stall();
    }
    return out;
}

FigureCounter::FigureCounter(const Tables& tables)
    : tables_(tables), time_(tables), latency_(kOpKindLimit), requests_(tables, [this](const DoneRequest& request) {
          in_flight_.add(request);
          const bool reads = request.what.reads(), writes = request.what.writes();
          moved(reads ? Way::read : writes ? Way::write : Way::neither, request.file, request.result);
      }) {}

Json to_json(const JobFigures& figures) {
    return {{"elapsed_s", static_cast<double>(figures.elapsed) / 1e9},
            {"bytes_read", figures.bytes_read},
            {"bytes_written", figures.bytes_written},
            {"storage_bytes_read", figures.storage_bytes_read},
            {"bytes_touched", figures.bytes_touched},
            {"reads", calls_json(figures.reads)},
            {"writes", calls_json(figures.writes)},
            {"requests", to_json(figures.requests)},
            {"task_time", to_json(figures.time)},
            {"au", figures.au ? Json(*figures.au) : Json(nullptr)},
            {"stall_s", figures.au ? Json(static_cast<double>(figures.stall) / 1e9) : Json(nullptr)}};
}

void FigureCounter::add(TaskId task, const Op& op, bool performed) {
    time_.add(task, op);
    if (performed) {
        latency_[static_cast<size_t>(op.kind)].add(op.duration);
    }
    const OpInfo& row = info(op.kind);
    const FileId file = tables_.file_of(op);
    if (row.is(Trait::async)) {
        if (performed || op.result >= 0) {
            requests_.add(task, op);
        }
    } else if (row.is(Trait::reads) && row.is(Trait::writes)) {
        // Copies: one end may be a pipe or a socket.
        moved(file != 0 ? Way::read : Way::neither, file, op.result);
        moved(tables_.file2_of(op) != 0 ? Way::write : Way::neither, 0, op.result);
    } else {
        moved(row.is(Trait::reads) ? Way::read : row.is(Trait::writes) ? Way::write : Way::neither, file, op.result);
    }
}

void FigureCounter::moved(Way way, FileId file, int64_t bytes) {
    if (way == Way::neither || bytes <= 0) {
        return;
    }
    const auto more = static_cast<uint64_t>(bytes);
    (way == Way::read ? out_.bytes_read : out_.bytes_written) += more;
    out_.storage_bytes_read += way == Way::read && time_.on_storage(file) ? more : 0;
}

JobFigures FigureCounter::finish() {
    requests_.finish();
    out_.requests = in_flight_.finish(requests_);
    out_.reads = latency_of_all(Trait::reads, latency_);
    out_.writes = latency_of_all(Trait::writes, latency_);
    out_.time = time_.result();
    out_.bytes_touched = time_.bytes_touched();
    return out_;
}

}  // namespace reprise
