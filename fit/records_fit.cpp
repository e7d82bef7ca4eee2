// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <optional>

#include "fit/data_set_words.h"

namespace reprise {
namespace {

constexpr int64_t kTarTail = 1024;
constexpr double kEvenly = 0.001;  // files of one size, up to that share

class RecordsFitter : DataSetWords {
public:
    using DataSetWords::DataSetWords;

    void fit() { stream(); }

private:
    void stream() {
        const StreamFit found = fit_stream(trace_, loop_, loaded_);
        const bool tables = loaded_.format == SampleFormat::parquet;
        if (tables) {
            job_.add("columns", std::to_string(std::max<uint64_t>(loaded_.columns, 1)), "reads of a row group");
        }
        if (!loaded_.computes_are_samples) {
            return whole_batches(tables);
        }
        const int64_t full = size_of(trace_.data.front());
        const bool alone = trace_.data.size() == 1;
        double number =
            static_cast<double>(tables ? group_bytes(trace_.data.front()) : full) / std::max(found.record, 1.0);
        bool exact = false;
        std::string evidence;
        if (found.complete > 0 && found.same) {
            number = static_cast<double>(found.per_file);
            exact = true;
            evidence = counted(found.complete, "file") + " read from front to back by one loader";
        } else if (const auto even = even_records(found, tables)) {
            number = static_cast<double>(*even);
            exact = true;
            evidence = "the only number that divides the file near what is read";
        }
        const auto per = static_cast<uint64_t>(std::max(std::round(number), 1.0));
        const auto tail = [&](FileId file) {
            return tables ? size_of(file) - group_bytes(file) : loaded_.format == SampleFormat::tar ? kTarTail : 0;
        };
        // The last file may hold fewer.
        const size_t files = std::max<size_t>(trace_.data.size() - 1, 1);
        double whole = 0;
        for (size_t i = 0; i < files; ++i) {
            whole += static_cast<double>(size_of(trace_.data[i]) - tail(trace_.data[i]));
        }
        const double record = whole / static_cast<double>(files) / static_cast<double>(per);
        const int64_t last_size = size_of(trace_.data.back()) - tail(trace_.data.back());
        const auto last = static_cast<uint64_t>(std::max(std::round(static_cast<double>(last_size) / record), 1.0));
        // Files that vary are as long as their records, not as many.
        double least = file_bytes_, most = 0;
        for (size_t i = 0; i + 1 < trace_.data.size(); ++i) {
            least = std::min(least, static_cast<double>(size_of(trace_.data[i])));
            most = std::max(most, static_cast<double>(size_of(trace_.data[i])));
        }
        const bool varies = !alone && most - least > kEvenly * most;
        const uint64_t samples = alone ? per : per * (trace_.data.size() - 1) + std::min(last, per);
        evidence = evidence.empty() ? "bytes of a record, " + error_text(found.record_error) : evidence;
        count(samples, evidence);
        per_file(per, evidence);
        const bool known_last = alone || (!varies && exact);
        if (!exact) {
            job_.cannot_see("samples", "no loader reads a file from front to back; " + error_text(found.record_error));
            if (!alone) {
                job_.cannot_see("samples_per_file", "as samples=");
            }
        } else if (!known_last) {
            job_.cannot_see("samples", "the last file may hold fewer than the others");
        }
        if (tables) {
            const bool groups = found.per_group > 0;
            job_.add("row_group", std::to_string(std::max<uint64_t>(groups ? found.per_group : per, 1)),
                     "samples between the reads of two groups");
            if (!groups && found.complete == 0) {
                job_.cannot_see("row_group", "no loader goes from one group to the next");
            }
        }
        record_sizes(found, record, per, tables, varies);
    }

    /// Bytes of a file's row groups, by its footer.
    int64_t group_bytes(FileId file) const {
        const auto end = loaded_.ends.find(file);
        return end == loaded_.ends.end() ? size_of(file) : end->second - 4;
    }

    /// Records do, by more than the pieces they are read in explain.
    bool vary(const StreamFit& found) const {
        const auto piece = static_cast<double>(loaded_.piece);
        return found.variance > piece * piece / 3;
    }

    std::optional<uint64_t> even_records(const StreamFit& found, bool tables) const {
        const int64_t full = size_of(trace_.data.front());
        const bool tar = loaded_.format == SampleFormat::tar;
        if (tables || found.record <= 0 || vary(found)) {
            return std::nullopt;
        }
        const int64_t bytes = full - (tar ? kTarTail : 0);
        const double middle = static_cast<double>(bytes) / found.record;
        const double margin = 2 * found.record_error + 0.001;
        std::optional<uint64_t> out;
        for (auto number = static_cast<int64_t>(middle * (1 - margin));
             static_cast<double>(number) <= middle * (1 + margin) + 1; ++number) {
            if (number < 1 || bytes % number != 0 || (tar && bytes / number % 512 != 0)) {
                continue;
            }
            if (out) {
                return std::nullopt;
            }
            out = static_cast<uint64_t>(number);
        }
        return out;
    }

    /// A normal of which many draws would be less than a byte is no job file; a lognormal of the same mean is.
    static void keep_above_least(Distribution& drawn) {
        if (drawn.kind == Distribution::Kind::normal && drawn.share_below() > Distribution::kMostBelow) {
            drawn.kind = Distribution::Kind::lognormal;
        }
    }

    void record_sizes(const StreamFit& found, double record, uint64_t per, bool tables, bool varies) {
        const double around = tables ? 0 : loaded_.format == SampleFormat::tar ? 512 : 16;
        const auto blur = static_cast<double>(loaded_.piece);
        const double variance = blur * blur / 6;
        const double whole = std::round(record);
        // As far as pieces let it be seen, the records are alike.
        const double square = found.variance;
        FittedValues fitted;
        const bool seen = vary(found);
        if (!varies && (tables || !seen)) {
            fitted.distribution.a = std::max(std::abs(record - whole) < 1e-6 ? whole - around : record - around, 1.0);
            fitted.distribution.text = job_quantity(std::round(fitted.distribution.a), Distribution::Unit::bytes, true);
            FittedWord& word = sizes(fitted, "bytes of a file over its " + counted(per, "sample"));
            word.mean_error = found.complete > 0 ? 0 : found.record_error;
            if (loaded_.format == SampleFormat::tar) {  // whole sectors
                word.mean_error = std::max(word.mean_error, 512 / record);
            }
            if (word.mean_error > 0.05) {
                job_.cannot_see("sample_size", "it may be " + error_text(word.mean_error) + " off");
            } else if (trace_.data.size() == 1 || tables) {
                word.evidence += "; whether it varies is not seen";
                job_.cannot_see("sample_size", "whether it varies: the reads of a stream do not show its records");
            }
            return;
        }
        if (!tables && seen && square > 8 * variance) {
            std::vector<double> values = found.records;
            for (double& value : values) {
                value = std::max(value - around, 1.0);
            }
            fitted = fit_values(std::move(values), 1, Distribution::Unit::bytes);
            Distribution& drawn = fitted.distribution;
            if (drawn.kind != Distribution::Kind::uniform) {  // reads end up to a piece late
                drawn.a = std::max(record - around, 1.0);
                drawn.b = std::sqrt(std::max(drawn.b * drawn.b - variance, 1.0));
                keep_above_least(drawn);
                drawn.text = distribution_text(drawn, Distribution::Unit::bytes, false);
            }
            sizes(fitted, "bytes read from one sample to the next");
            return;
        }
        fitted.distribution.kind = Distribution::Kind::normal;
        fitted.distribution.a = std::max(record - around, 1.0);
        fitted.distribution.b = std::sqrt(std::max(square - variance, 1.0));
        fitted.distribution.least = 1;
        keep_above_least(fitted.distribution);
        fitted.distribution.text = distribution_text(fitted.distribution, Distribution::Unit::bytes, false);
        sizes(fitted, "mean of " + counted(per, "sample"));
        job_.cannot_see("sample_size", "its deviation: reads of " + format_bytes(static_cast<uint64_t>(loaded_.piece)) +
                                           " hide the records");
    }

    /// Nothing tells the samples of a batch apart: one stands for all of them.
    void whole_batches(bool tables) {
        out_.batch_is_sample = true;
        out_.each = 1;
        const uint64_t samples = std::max<uint64_t>(batches_of_epoch(), 1);
        const double each = file_bytes_ / static_cast<double>(samples);
        const char* const why = "nothing is computed for each sample, and reads of a stream do not show its records";
        count(samples, "a batch as one sample");
        const uint64_t per = std::max<uint64_t>((samples + trace_.data.size() - 1) / trace_.data.size(), 1);
        per_file(per, "likewise");
        FittedValues fitted;
        fitted.distribution.a = std::max(each - (tables ? 0 : loaded_.format == SampleFormat::tar ? 512 : 16), 1.0);
        fitted.distribution.text = job_quantity(std::round(fitted.distribution.a), Distribution::Unit::bytes, true);
        sizes(fitted, "bytes of an epoch over its batches");
        if (tables) {
            job_.add("row_group", std::to_string(per), "");
            job_.cannot_see("row_group", why);
            job_.cannot_see("columns", "row groups that follow each other are read without a gap");
        }
        for (const char* word : {"samples", "sample_size", "batch"}) {
            job_.cannot_see(word, why);
        }
        if (trace_.data.size() > 1) {
            job_.cannot_see("samples_per_file", why);
        }
    }
};

}  // namespace

void fit_records(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job,
                 DataSetFit& out) {
    RecordsFitter(trace, loop, loaded, job, out).fit();
}

}  // namespace reprise
