// SPDX-License-Identifier: MIT
#include "replay/predict/predicted_log.h"

#include <memory>
#include <string>

#include "formats/oplog/copy_tables.h"
#include "formats/oplog/header_facts.h"

namespace reprise {

namespace {

std::unique_ptr<LogWriter> writer_for(const LogReader& log, const PredictOptions& options) {
    Header header;
    header.time_unit_ns = 1;
    header.origin_unix_ns = log.header().origin_unix_ns;
    header.clock = "monotonic";
    header.source = "predict";
    header.tool = "reprise predict";
    header.command = log.header().command;
    if (!options.what_if.empty()) {
        write_fact(header, fact::what_if, options.what_if);
    }
    write_fact(header, fact::filter, options.filter.to_string());
    write_fact(header, fact::recording, log.path().filename().string());
    WriterOptions how;
    how.level = 1;
    return std::make_unique<LogWriter>(options.output, header, how);
}

}  // namespace

PredictedLog::PredictedLog(const LogReader& log, const PredictOptions& options) : log_(writer_for(log, options)) {
    log_.write([&](LogWriter& writer) { strings_ = copy_tables(log.tables(), writer); });
}

void PredictedLog::append(TaskId task, Op op, bool later) {
    op.text = op.text < strings_.size() ? strings_[op.text] : 0;
    if (const auto held = held_.find(task); later || held != held_.end()) {
        std::deque<Row>& rows = held != held_.end() ? held->second : held_[task];
        rows.push_back({op, {op.list.begin(), op.list.end()}, later});
        if (later) {
            open_[op.request] = task;
        }
        return;
    }
    write(task, op);
}

void PredictedLog::done(uint32_t request, int64_t at) {
    const auto found = open_.find(request);
    if (found == open_.end()) {
        return;
    }
    const TaskId task = found->second;
    open_.erase(found);
    for (Row& row : held_[task]) {
        if (row.open && row.op.request == request) {
            row.op.duration = at - row.op.begin;
            row.open = false;
        }
    }
    write_closed(task);
}

void PredictedLog::write_closed(TaskId task) {
    std::deque<Row>& rows = held_[task];
    while (!rows.empty() && !rows.front().open) {
        Row& row = rows.front();
        row.op.list = row.list;
        write(task, row.op);
        rows.pop_front();
    }
    if (rows.empty()) {
        held_.erase(task);
    }
}

void PredictedLog::finish(const Prediction& result, const StorageModel& model) {
    std::vector<TaskId> tasks;
    for (auto& [task, rows] : held_) {
        tasks.push_back(task);
        for (Row& row : rows) {
            row.open = false;
        }
    }
    for (const TaskId task : tasks) {
        write_closed(task);
    }
    log_.write([&](LogWriter& writer) {
        Header& header = writer.header();
        const std::string poor = poor_reason(result, model), fair = fair_reason(result, model);
        write_fact(header, fact::trust, poor.empty() ? "fair" : "poor");
        write_fact(header, fact::trust_reason,
                   !poor.empty()                      ? poor
                   : !fair.empty()                    ? fair
                   : result.calls == CallTimes::model ? "predicted from a storage model, not run"
                                                      : "predicted with the service times of a recording, not run");
        if (result.interval) {
            write_fact(header, fact::elapsed_low, result.interval->low_ns);
            write_fact(header, fact::elapsed_high, result.interval->high_ns);
        }
        for (const Counter& counter : result.counters) {
            if (counter.severity == Severity::loss) {
                writer.count(counter);  // what the recording lacks, the prediction does too
            }
        }
        writer.finish();
    });
}

}  // namespace reprise
