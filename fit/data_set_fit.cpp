// SPDX-License-Identifier: MIT
#include "fit/data_set_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fit/fitted_values.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHdf5Head = 2048, kArrowHead = 8, kArrowAround = 1032, kTarTail = 1024;
constexpr int64_t kIndexHead = 34, kIndexEntry = 12;
constexpr double kEvenly = 0.001;  // files of one size, up to that share

std::string error_text(double error) {
    char text[32];
    std::snprintf(text, sizeof text, "±%.2g %%", 100 * error);
    return text;
}

class DataSetFitter {
public:
    DataSetFitter(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job)
        : trace_(trace), loop_(loop), loaded_(loaded), job_(job) {}

    DataSetFit fit() {
        out_.each = loaded_.each;
        FittedWord& format =
            job_.add("format", loaded_.format == SampleFormat::none ? "none" : loaded_.word, loaded_.why);
        if (loaded_.format == SampleFormat::none) {
            format.evidence = "no task reads a data set";
            out_.each = 1;
            return out_;
        }
        if (loaded_.guessed) {
            job_.cannot_see("format", "by how the files are read, not by their names");
        }
        for (const FileId file : trace_.data) {
            file_bytes_ += static_cast<double>(trace_.tables.files[file].size);
        }
        switch (loaded_.format) {
            case SampleFormat::none: break;
            case SampleFormat::files: files(); break;
            case SampleFormat::hdf5:
            case SampleFormat::indexed:
            case SampleFormat::arrow:
            case SampleFormat::lmdb: trace_.every_touch || !trace_.maps ? chosen() : first_touches(); break;
            case SampleFormat::tfrecord:
            case SampleFormat::tar:
            case SampleFormat::parquet: stream(); break;
        }
        if (loaded_.piece != 0) {
            job_.add("bs", std::to_string(loaded_.piece), "the size that most bytes are asked for with");
        }
        if (loaded_.pieces_or_samples && !loaded_.computes_are_samples) {
            for (const char* word : {"samples", "sample_size", "batch", "samples_per_file", "bs", "shuffle"}) {
                job_.cannot_see(word,
                                "reads that go on where the one before ended may be pieces of a sample, or samples");
            }
        }
        if (loaded_.direct) {
            job_.add("direct", "1", "opened with O_DIRECT");
        }
        return out_;
    }

private:
    int64_t size_of(FileId file) const { return static_cast<int64_t>(trace_.tables.files[file].size); }
    uint64_t batches_of_epoch() const { return loop_.batches_per_epoch() * loop_.ranks.size(); }

    FittedWord& sizes(const FittedValues& values, const std::string& evidence) {
        FittedWord& word = job_.add("sample_size", values.distribution.text, evidence);
        word.mean_error = values.mean_error;
        word.deviation_error = values.deviation_error;
        word.ks = values.distribution.varies() ? values.ks : -1;
        if (!values.fits || !values.kind_sure) {
            word.evidence += !values.fits ? "; no kind of distribution fits well"
                                          : "; another kind of distribution would fit as well";
        }
        return word;
    }
    FittedWord& count(uint64_t samples, const std::string& evidence) {
        out_.samples = samples;
        return job_.add("samples", std::to_string(samples), evidence);
    }
    void per_file(uint64_t samples, const std::string& evidence) {
        if (trace_.data.size() > 1) {
            job_.add("samples_per_file", std::to_string(samples), evidence);
        }
    }

    void files() {
        std::vector<double> values;
        for (const FileId file : trace_.data) {
            values.push_back(static_cast<double>(size_of(file)));
        }
        const std::string seen = counted(values.size(), "file");
        count(values.size(), seen + " *" + trace_.ending);
        sizes(fit_values(std::move(values), 1, Distribution::Unit::bytes), "sizes of " + seen);
    }

    // --- records that are read in any order

    struct Records {
        std::map<int64_t, int64_t> bytes;  // by offset
        int64_t sum = 0;
    };

    void chosen() {
        std::map<FileId, Records> all;
        for (const BatchSamples& batch : loaded_.batches) {
            for (const SampleAccess& access : batch.accesses) {
                Records& records = all[access.file];
                if (records.bytes.emplace(access.offset, access.bytes).second) {
                    records.sum += access.bytes;
                }
            }
        }
        std::vector<double> values;
        for (const auto& [file, records] : all) {
            for (const auto& [offset, bytes] : records.bytes) {
                values.push_back(static_cast<double>(bytes));
            }
        }
        if (values.empty()) {
            return unknown("no sample of it is read");
        }
        if (loaded_.format == SampleFormat::indexed && by_index(values)) {
            return;
        }
        if (loaded_.format == SampleFormat::arrow && evenly_in_arrow(values)) {
            return;
        }
        if (loaded_.format == SampleFormat::lmdb && evenly_in_lmdb(values)) {
            return;
        }
        const int64_t around = loaded_.format == SampleFormat::hdf5    ? kHdf5Head
                               : loaded_.format == SampleFormat::arrow ? kArrowAround
                                                                       : 0;
        const bool pages = trace_.maps;
        if (pages) {  // a page more than the sample, on average; of LMDB half of one, and its header
            const double more = loaded_.format == SampleFormat::lmdb ? kPage / 2 + 16 : kPage;
            for (double& value : values) {
                value = std::max(value - more, 1.0);
            }
        }
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        double spread = 0;
        for (const double value : values) {
            spread += (value - mean) * (value - mean) / static_cast<double>(values.size());
        }
        spread = std::sqrt(spread);
        uint64_t most = 0, samples = 0;
        bool exact = true;
        for (const FileId file : trace_.data) {
            const auto found = all.find(file);
            const double read = found == all.end() ? 0 : static_cast<double>(found->second.bytes.size());
            double left = static_cast<double>(size_of(file) - around);
            if (loaded_.format == SampleFormat::lmdb) {
                left -= found == all.end() ? 0 : static_cast<double>(found->second.bytes.begin()->first);
                left -= found == all.end() ? 0 : static_cast<double>(found->second.sum);
                left /= mean + kPage / 2 + 16;
            } else {
                const double taken = found == all.end() ? 0 : static_cast<double>(found->second.sum);
                left = (left - (pages ? taken - kPage * read : taken)) / mean;
            }
            // Of pages, and of those not read.
            const double blur =
                (pages ? 3 * std::sqrt(read) * 1700 / mean : 0) + 2.5 * std::sqrt(std::max(left, 0.0)) * spread / mean;
            exact = exact && std::abs(left - std::round(left)) + blur < 0.5 && std::abs(left) < 0.1 * read + 1;
            const auto number = static_cast<uint64_t>(std::max(read + std::round(left), read));
            most = std::max(most, number);
            samples += number;
        }
        count(samples, counted(values.size(), "sample") + " read, in " + counted(trace_.data.size(), "file"));
        per_file(most, "places of the samples read");
        if (!exact) {
            job_.cannot_see("samples", "what was not read leaves room for some more or less");
            if (trace_.data.size() > 1) {
                job_.cannot_see("samples_per_file", "as samples=");
            }
        }
        const bool same =
            *std::min_element(values.begin(), values.end()) == *std::max_element(values.begin(), values.end());
        FittedValues fitted = fit_values(values, 1, Distribution::Unit::bytes);
        sizes(fitted, (pages ? "pages of " : "sizes of ") + counted(values.size(), "sample"));
        if (pages && !same && fitted.distribution.b < 3 * kPage) {
            job_.cannot_see("sample_size", "its deviation: whole pages hide it");
        }
    }

    /// An index beside the file tells how many sequences there are.
    bool by_index(const std::vector<double>& values) {
        std::map<std::string_view, FileId> by_path;
        for (FileId file = 1; file < trace_.tables.files.size(); ++file) {
            by_path.emplace(trace_.tables.path(file), file);
        }
        uint64_t samples = 0, most = 0;
        bool even = true;
        int64_t each = 0;
        for (const FileId file : trace_.data) {
            const std::string_view path = trace_.tables.path(file);
            const auto index = by_path.find(std::string(path.substr(0, path.size() - trace_.ending.size())) + ".idx");
            const int64_t entries = index == by_path.end() ? 1 : size_of(index->second) - kIndexHead;
            if (entries <= 0 || entries % kIndexEntry != 0) {
                return false;
            }
            const auto number = static_cast<uint64_t>(entries / kIndexEntry);
            samples += number;
            most = std::max(most, number);
            const int64_t size = size_of(file) / static_cast<int64_t>(number);
            even = even && size_of(file) % static_cast<int64_t>(number) == 0 && (each == 0 || each == size);
            each = size;
        }
        count(samples, "sizes of the indexes");
        per_file(most, "sizes of the indexes");
        if (even) {
            FittedValues fitted;
            fitted.distribution.a = static_cast<double>(each);
            fitted.distribution.text = job_quantity(fitted.distribution.a, Distribution::Unit::bytes, true);
            sizes(fitted, "every file is a whole number of them");
            return true;
        }
        std::vector<double> lengths = values;
        for (double& value : lengths) {
            value = std::max(value - kPage, 1.0);
        }
        const double mean = file_bytes_ / static_cast<double>(samples);
        FittedValues fitted = fit_values(lengths, 1, Distribution::Unit::bytes);
        if (fitted.distribution.kind != Distribution::Kind::uniform) {
            fitted.distribution.a = mean;
            const double blur = kPage * static_cast<double>(kPage) / 6;
            fitted.distribution.b = std::sqrt(std::max(fitted.distribution.b * fitted.distribution.b - blur, 1.0));
            fitted.distribution.text = distribution_text(fitted.distribution, Distribution::Unit::bytes, false);
        }
        sizes(fitted, "pages of " + counted(values.size(), "sample"));
        if (fitted.distribution.b < 3 * kPage) {
            job_.cannot_see("sample_size", "its deviation: whole pages hide it");
        }
        return true;
    }

    /// Samples of one size: the number of them that divides the file, and lets all touched pages be those of samples.
    bool evenly_in_arrow(const std::vector<double>& values) {
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        const auto spread = std::minmax_element(values.begin(), values.end());
        if (*spread.second - *spread.first > 2 * kPage) {
            return false;
        }
        const FileId first = trace_.data.front(), last = trace_.data.back();
        const int64_t whole = size_of(first) - kArrowAround;
        // Between as many bytes as fit into the least span, and one less than a page of it.
        const double least = std::max(mean - 2 * kPage, 1.0), most_bytes = mean;
        const auto from = static_cast<int64_t>(static_cast<double>(whole) / most_bytes);
        const auto to = static_cast<int64_t>(std::min(static_cast<double>(whole) / least, 1e8));
        int64_t found = 0;
        for (int64_t number = std::max<int64_t>(from, 1); number <= to; ++number) {
            if (whole % number != 0) {
                continue;
            }
            const int64_t size = whole / number;
            if ((size_of(last) - kArrowAround) % size != 0 || !all_lie_at(size)) {
                continue;
            }
            if (found != 0) {
                found = 0;  // two that fit: neither is known
                break;
            }
            found = number;
        }
        if (found == 0) {
            return false;
        }
        const int64_t size = whole / found;
        uint64_t samples = 0;
        for (const FileId file : trace_.data) {
            samples += static_cast<uint64_t>((size_of(file) - kArrowAround) / size);
        }
        count(samples, "the only number that divides the file and fits the touched pages");
        per_file(static_cast<uint64_t>(found), "likewise");
        FittedValues fitted;
        fitted.distribution.a = static_cast<double>(size);
        fitted.distribution.text = job_quantity(fitted.distribution.a, Distribution::Unit::bytes, true);
        sizes(fitted, "likewise");
        return true;
    }
    bool all_lie_at(int64_t size) const {
        for (const BatchSamples& batch : loaded_.batches) {
            for (const SampleAccess& access : batch.accesses) {
                bool lies = false;
                const int64_t near = (access.offset - kArrowHead) / size;
                for (int64_t i = std::max<int64_t>(near, 0);
                     i <= near + std::max<int64_t>(kPage / size, 0) + 1 && !lies; ++i) {
                    const int64_t begin = kArrowHead + i * size, end = begin + size;
                    lies = begin / kPage * kPage == access.offset &&
                           (end + kPage - 1) / kPage * kPage == access.offset + access.bytes;
                }
                if (!lies) {
                    return false;
                }
            }
        }
        return true;
    }

    bool evenly_in_lmdb(const std::vector<double>& values) {
        const auto record = static_cast<int64_t>(values.front());
        if (std::any_of(values.begin(), values.end(), [&](double value) { return value != values.front(); })) {
            return false;
        }
        const auto head = [](int64_t number) {
            int64_t pages = 2;
            for (int64_t level = number, first = 1; first != 0 || level > 1; first = 0) {
                level = (level + 63) / 64;
                pages += level;
            }
            return pages * kPage;
        };
        uint64_t samples = 0, most = 0;
        const int64_t full = size_of(trace_.data.front());
        int64_t number = full / record;
        while (number > 0 && head(number) + number * record > full) {
            --number;
        }
        most = static_cast<uint64_t>(number);
        for (const FileId file : trace_.data) {
            // The tree is as large in the last file, which may hold fewer.
            samples += static_cast<uint64_t>((size_of(file) - head(number)) / record);
        }
        count(samples, "pages of a value, and what is left for the tree");
        per_file(most, "likewise");
        FittedValues fitted;
        fitted.distribution.a = static_cast<double>(std::max<int64_t>(record - kPage / 2 - 16, 1));
        fitted.distribution.text = job_quantity(fitted.distribution.a, Distribution::Unit::bytes, true);
        FittedWord& word = sizes(fitted, "whole pages of " + format_bytes(static_cast<uint64_t>(record)));
        word.mean_error = kPage / 2.0 / fitted.distribution.a;
        if (word.mean_error > 0.05) {
            job_.cannot_see("sample_size",
                            "values take whole pages, so that it may be " + error_text(word.mean_error) + " off");
        }
        return true;
    }

    /// A recording of page faults has only the first touch of a page.
    void first_touches() {
        uint64_t most = 0, early = 0;
        for (const BatchSamples& batch : loaded_.batches) {
            most = std::max<uint64_t>(most, batch.accesses.size());
            early += 1;
        }
        out_.each = std::max<uint64_t>(most, 1);
        count(std::max<uint64_t>(static_cast<uint64_t>(file_bytes_) / kPage, out_.each * loop_.ranks.size()),
              "a page each, of " + format_bytes(static_cast<uint64_t>(file_bytes_)));
        per_file(std::max<uint64_t>(out_.samples / trace_.data.size(), 1), "");
        FittedValues fitted;
        fitted.distribution.a = kPage;
        fitted.distribution.text = "4KiB";
        sizes(fitted, "a page");
        const char* const why = "only the first touch of a page is recorded (capture --with mapped-uses sees more)";
        job_.cannot_see("samples", why);
        job_.cannot_see("sample_size", why);
        job_.cannot_see("batch", "at least the " + counted(most, "page") + " that a batch touches first; " + why);
    }

    // --- records that are read from front to back

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

    std::optional<uint64_t> even_records(const StreamFit& found, bool tables) const {
        const int64_t full = size_of(trace_.data.front());
        const bool tar = loaded_.format == SampleFormat::tar;
        if (tables || found.record <= 0) {
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

    void record_sizes(const StreamFit& found, double record, uint64_t per, bool tables, bool varies) {
        const double around = tables ? 0 : loaded_.format == SampleFormat::tar ? 512 : 16;
        const auto blur = static_cast<double>(loaded_.piece);
        const double variance = blur * blur / 6;
        const double whole = std::round(record);
        // As far as pieces let it be seen, the records are alike.
        double mean = 0, square = 0;
        for (const double bytes : found.records) {
            mean += bytes / static_cast<double>(found.records.size());
        }
        for (const double bytes : found.records) {
            square += (bytes - mean) * (bytes - mean) / static_cast<double>(found.records.size());
        }
        FittedValues fitted;
        const bool seen = square > 2 * variance;
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
                drawn.text = distribution_text(drawn, Distribution::Unit::bytes, false);
            }
            sizes(fitted, "bytes read from one sample to the next");
            return;
        }
        fitted.distribution.kind = Distribution::Kind::normal;
        fitted.distribution.a = std::max(record - around, 1.0);
        fitted.distribution.b = std::sqrt(std::max(square - variance, 1.0));
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

    void unknown(const std::string& why) {
        count(std::max<uint64_t>(batches_of_epoch(), 1), why);
        job_.add("sample_size", "1MiB", why);
        job_.cannot_see("samples", why);
        job_.cannot_see("sample_size", why);
    }

    const JobTrace& trace_;
    const TrainingLoop& loop_;
    const LoadedSamples& loaded_;
    FittedJob& job_;
    DataSetFit out_;
    double file_bytes_ = 0;
};

}  // namespace

DataSetFit fit_data_set(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job) {
    return DataSetFitter(trace, loop, loaded, job).fit();
}

}  // namespace reprise
