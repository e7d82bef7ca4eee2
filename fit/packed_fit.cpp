// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fit/data_set_words.h"

namespace reprise {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHdf5Head = 2048, kArrowHead = 8, kArrowAround = 1032;
constexpr int64_t kIndexHead = 34, kIndexEntry = 12;

class PackedFitter : DataSetWords {
public:
    using DataSetWords::DataSetWords;

    void fit() { trace_.every_touch || !trace_.maps ? chosen() : first_touches(); }

private:
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
            const double more = loaded_.format == SampleFormat::lmdb ? kPage / 2.0 + 16 : kPage;
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
                left /= mean + kPage / 2.0 + 16;
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
        uint64_t most = 0;
        for (const BatchSamples& batch : loaded_.batches) {
            most = std::max<uint64_t>(most, batch.accesses.size());
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

    void unknown(const std::string& why) {
        count(std::max<uint64_t>(batches_of_epoch(), 1), why);
        job_.add("sample_size", "1MiB", why);
        job_.cannot_see("samples", why);
        job_.cannot_see("sample_size", why);
    }
};

}  // namespace

void fit_packed(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job,
                DataSetFit& out) {
    PackedFitter(trace, loop, loaded, job, out).fit();
}

}  // namespace reprise
