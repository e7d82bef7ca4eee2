// SPDX-License-Identifier: MIT
#include "replay/predict/predicted_log.h"

#include <string>

#include "formats/oplog/copy_tables.h"
#include "formats/oplog/header_facts.h"

namespace reprise {

PredictedLog::PredictedLog(const LogReader& log, const PredictOptions& options) {
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
    writer_ = std::make_unique<LogWriter>(options.output, header, how);
    strings_ = copy_tables(log.tables(), *writer_);
}

void PredictedLog::append(TaskId task, Op op) {
    op.text = op.text < strings_.size() ? strings_[op.text] : 0;
    writer_->append(task, op);
}

void PredictedLog::finish(const Prediction& result, const StorageModel& model) {
    Header& header = writer_->header();
    const std::string poor = poor_reason(result, model), fair = fair_reason(result);
    write_fact(header, fact::trust, poor.empty() ? "fair" : "poor");
    write_fact(header, fact::trust_reason,
               !poor.empty()   ? poor
               : !fair.empty() ? fair
                               : "predicted from a storage model, not run");
    if (result.interval) {
        write_fact(header, fact::elapsed_low, result.interval->low_ns);
        write_fact(header, fact::elapsed_high, result.interval->high_ns);
    }
    writer_->finish();
}

}  // namespace reprise
