// SPDX-License-Identifier: MIT
#include "generate/dlio.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "generate/dlio_parts.h"
#include "generate/job_text.h"

namespace reprise {
namespace {

constexpr size_t kMostFileBytes = size_t{1} << 20;
constexpr double kMostRecord = 0x1p50;

struct Format {
    std::string_view name;    // of DLIO
    std::string_view format;  // of job files
    bool whole = false;       // a file is read as a whole
    std::string_view note = {};
};
constexpr Format kFormats[] = {
    {"npz", "npz", true},
    {"npy", "files", true},
    {"jpeg", "jpeg", true},
    {"png", "files", true},
    {"csv", "files", true},
    {"tfrecord", "tfrecord"},
    {"hdf5", "hdf5"},
    {"hdf5_opt", "hdf5"},
    {"mmap_indexed_binary", "indexed"},
    {"indexed_binary", "indexed", false, "indexed_binary files are mapped here; DLIO seeks and reads"},
    {"parquet", "parquet"},
};

const Format& format_of(DlioKeys& keys) {
    const std::string name = keys.text("dataset.format", "tfrecord");
    const auto* const found =
        std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& each) { return each.name == name; });
    if (found == std::end(kFormats)) {
        keys.fail("dataset.format",
                  name == "synthetic" ? "format synthetic reads no files"
                                      : "format '" + escape_line(name) + "' is not made into a log",
                  "one of: npz, npy, jpeg, png, csv, tfrecord, hdf5, indexed_binary, mmap_indexed_binary, parquet");
    }
    return *found;
}

/// Of the numbers that NumPy calls so.
uint64_t element_bytes(DlioKeys& keys) {
    const std::string type = keys.text("dataset.record_element_type", "uint8");
    if (keys.given("dataset.record_element_type")) {
        constexpr std::pair<std::string_view, uint64_t> kBytes[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
        for (const auto& [bits, bytes] : kBytes) {
            for (const char* kind : {"int", "uint", "float"}) {
                if (type == kind + std::string(bits)) {
                    return bytes;
                }
            }
        }
        keys.wrong("dataset.record_element_type", "a type of NumPy: uint8, int16, float32, float64 ...");
    }
    return keys.count("dataset.record_element_bytes", 1, 1, 64);
}

double record_bytes(DlioKeys& keys) {
    double bytes = keys.number("dataset.record_length_bytes", 65536, 1, kMostRecord);
    const std::vector<double> sizes = keys.numbers("dataset.record_dims");
    if (!sizes.empty()) {
        bytes = static_cast<double>(element_bytes(keys));
        for (const double size : sizes) {
            bytes *= size;
        }
        if (!(bytes >= 1) || !(bytes <= kMostRecord)) {
            keys.fail("dataset.record_dims", "a record of these sizes has no bytes, or too many", "correct the list");
        }
    }
    return bytes;
}

/// The share of a record that is read of a table; sets columns=.
double read_columns(DlioJob& job) {
    DlioKeys& keys = job.keys;
    const auto list = keys.node("dataset.parquet.columns");
    if (!list) {
        return 1;
    }
    constexpr size_t kMostColumns = 10'000, kMostKeys = 16;
    if (!list->IsSequence() || list->size() == 0 || list->size() > kMostColumns) {
        keys.wrong("dataset.parquet.columns", "a list of columns, at most 10,000");
    }
    uint64_t read = 0;
    double all_bytes = 0, read_bytes = 0;
    for (const auto& column : *list) {
        if (!column.IsMap() || column.size() > kMostKeys) {
            keys.wrong("dataset.parquet.columns", "a list of mappings with name, dtype, size and read");
        }
        const auto entry = [&](const char* key, const char* otherwise) -> std::string {
            const YAML::Node value = column[key];
            return value && value.IsScalar() ? value.Scalar() : otherwise;
        };
        const std::string type = entry("dtype", "float32"), wanted = entry("read", "true");
        const YAML::Node size = column["size"];
        const double numbers =
            size && size.IsScalar() ? keys.number_of("dataset.parquet.columns", size, 0, kMostRecord) : 1;
        const double bytes = numbers * (type.ends_with("64")   ? 8
                                        : type.ends_with("32") ? 4
                                        : type.ends_with("16") ? 2
                                                               : 1);
        all_bytes += bytes;
        if (wanted != "false" && wanted != "False") {
            ++read;
            read_bytes += bytes;
        }
    }
    if (read == 0 || !(read_bytes > 0)) {
        keys.fail("dataset.parquet.columns", "no column is read", "read: true for one of them");
    }
    job.word("columns", read);
    if (read < list->size()) {
        job.note("dataset.parquet.columns: " + std::to_string(read) + " of " + std::to_string(list->size()) +
                 " are read; the others are left out of the files, too, so that these are smaller than DLIO's");
    }
    return read_bytes / all_bytes;
}

uint64_t data_set(DlioJob& job, const Format& format) {
    DlioKeys& keys = job.keys;
    const uint64_t files = keys.count("dataset.num_files_train", 8, 1, 100'000'000);
    const uint64_t each = keys.count("dataset.num_samples_per_file", 1, 1, uint64_t{1} << 36);
    if (files > DlioKeys::kMostCount / each) {
        keys.fail("dataset.num_samples_per_file", "the data set would have more than 2^40 samples",
                  "fewer files, or fewer samples in each");
    }
    if (format.whole && each > 1) {
        job.word("format", "hdf5");
        job.note(
            "dataset.format: " + std::string(format.name) +
            " with several samples in a file is made as format=hdf5, where only the sample is read; DLIO loads the "
            "whole file for each");
    } else {
        job.word("format", std::string(format.format));
    }
    job.word("samples", files * each);
    if (!format.whole || each > 1) {
        job.word("samples_per_file", each);
    }
    double share = 1;
    if (format.name == "parquet") {
        job.word("row_group", keys.count("dataset.parquet.row_group_size", 1024, 1));
        share = read_columns(job);
    }
    const auto bytes = [&](double value) { return std::to_string(std::max<int64_t>(std::llround(value * share), 1)); };
    const double length = record_bytes(keys);
    const double deviation = keys.number("dataset.record_length_bytes_stdev", 0, 0, kMostRecord);
    job.word("sample_size", deviation > 0 ? "normal(" + bytes(length) + "," + bytes(deviation) + ")" : bytes(length));
    if (!format.note.empty()) {
        job.note("dataset.format: " + std::string(format.note));
    }
    return files * each;
}

bool shuffles(DlioKeys& keys, std::string_view key) {
    const std::string how = keys.text(key, "off");
    if (how == "seed" || how == "random" || how == "on" || how == "true" || how == "True") {
        return true;
    }
    if (how != "off" && how != "false" && how != "False" && how != "none" && how != "None") {
        keys.wrong(key, "seed, random or off");
    }
    return false;
}

bool is_torch(DlioKeys& keys) {
    const std::string loader = keys.text("reader.data_loader", "tensorflow");
    constexpr std::string_view kKnown[] = {"tensorflow", "pytorch", "dali", "native_dali"};
    if (std::find(std::begin(kKnown), std::end(kKnown), loader) == std::end(kKnown)) {
        keys.wrong("reader.data_loader", "one of: tensorflow, pytorch, dali, native_dali");
    }
    return loader == "pytorch";
}

void loader(DlioJob& job, const Format& format, uint64_t samples) {
    DlioKeys& keys = job.keys;
    const bool torch = is_torch(keys);
    const bool stream = format.format == "tfrecord" || format.format == "parquet";
    const uint64_t batch = keys.count("reader.batch_size", 1, 1, uint64_t{1} << 32);
    if (batch * job.gpus > samples) {
        keys.fail("reader.batch_size",
                  "an epoch has no step: it has " + counted(samples, "sample") + ", and a step takes " +
                      format_count(batch * job.gpus) + " with " + counted(job.gpus, "accelerator"),
                  "more num_files_train, or fewer --gpus");
    }
    job.word("batch", batch);
    const uint64_t threads = keys.count("reader.read_threads", 1, 0, 4096);
    job.word("loader_workers", threads);
    const uint64_t given = keys.count("reader.prefetch_size", 2, 0, 1'000'000);
    const uint64_t batches = given == 0 ? 2 : given;
    // The threads of tf.data read files of their own, and a batch takes records from all of them; it is mapped by so
    // many calls at once, each of which has its batch.
    const bool interleaves = format.format == "tfrecord" && !torch && threads > 1;
    const uint64_t maps = keys.count("reader.computation_threads", 1, 0, 4096);
    if (interleaves) {
        job.word("interleave", 1);
    }
    job.word("prefetch", interleaves ? batches + maps : threads > 1 ? (batches + threads - 1) / threads : batches);
    if (threads > 1 && !torch && !interleaves) {
        job.note("reader.prefetch_size: batches are kept by each of the " + std::to_string(threads) +
                 " threads; TensorFlow and DALI keep them for all");
    }
    const bool by_file = shuffles(keys, "reader.file_shuffle"), by_sample = shuffles(keys, "reader.sample_shuffle");
    const bool full = stream ? by_file || by_sample : by_sample || (by_file && format.whole);
    job.word("shuffle", full ? "full" : "none");
    if (stream && by_sample && !by_file) {
        job.note("reader.sample_shuffle: format=" + std::string(format.format) + " shuffles whole files");
    }
    if (!full && by_file) {
        job.note("reader.file_shuffle: files with several samples are read in their order");
    }
    if (stream && keys.given("reader.transfer_size")) {
        job.word("bs", keys.count("reader.transfer_size", 262144, 1, uint64_t{1} << 40));
    }
    if (keys.yes("reader.odirect", false)) {
        if (!format.whole) {
            keys.fail("reader.odirect", "odirect with format " + std::string(format.name), "format npz or npy");
        }
        job.word("direct", 1);
    }
    const std::string decode = dlio_times(job, "reader.preprocess_time");
    if (!decode.empty()) {
        job.word("decode", decode);
        job.note("reader.preprocess_time: decode= is work of a processor; DLIO sleeps");
    }
}

void training(DlioJob& job) {
    DlioKeys& keys = job.keys;
    const Format& format = format_of(keys);
    job.section(job.name);
    job.word("directory", dlio_folder(job, "dataset.data_folder", "./data/") + "/train");
    job.word("seed", keys.count("train.seed", 123, 0));
    loader(job, format, data_set(job, format));
    const uint64_t epochs = keys.count("train.epochs", 1, 1);
    job.word("epochs", epochs);
    if (const auto steps = keys.maybe_count("train.total_training_steps")) {
        job.word("steps", *steps);
        if (epochs > 1) {
            job.note("train.total_training_steps: the job stops there; DLIO ends each epoch there");
        }
    }
    const std::string compute = dlio_times(job, "train.computation_time");
    if (!compute.empty()) {
        job.word("compute", compute);
    }
    job.word("gpus", job.gpus);
    dlio_checkpoints(job, epochs);
}

std::string section_name(DlioKeys& keys) {
    std::string name = keys.text("model.name", "dlio");
    name.resize(std::min<size_t>(name.size(), 64));
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.') {
            c = '_';
        }
    }
    return name.empty() || name == "global" || name == "." || name == ".." ? "dlio" : name;
}

void check_storage(DlioKeys& keys) {
    const std::string type = keys.text("storage.storage_type", "local_fs");
    if (type != "local_fs" && type != "parallel_fs") {
        keys.wrong(
            "storage.storage_type",
            "local_fs or parallel_fs: objects are not made into a log. Files with the same reads: write local_fs "
            "and a data_folder that is a path");
    }
}

}  // namespace

bool is_yaml_name(const std::filesystem::path& file) {
    return file.extension() == ".yaml" || file.extension() == ".yml";
}

Job parse_dlio(std::string_view yaml, const std::string& name, uint64_t gpus) {
    check_size(yaml, kMostFileBytes, name, "workload of DLIO");
    DlioKeys keys(yaml, name);
    DlioJob out{.keys = keys, .gpus = gpus, .name = section_name(keys), .text = {}, .notes = {}};
    try {
        check_storage(keys);
        const bool makes = keys.yes("workflow.generate_data", false);
        if (keys.yes("workflow.train", true)) {
            training(out);
            if (makes) {
                out.note("workflow.generate_data: the data set is not part of the log; `prepare` makes it");
            }
        } else if (keys.yes("workflow.checkpoint", false)) {
            dlio_checkpoints_alone(out);
        } else {
            keys.fail("workflow.train", "nothing is trained and no checkpoint is written",
                      "train: True; `prepare` makes the data set");
        }
    } catch (const YAML::Exception& wrong) {
        throw bad_input(name + ":" + std::to_string(std::max(wrong.mark.line, 0) + 1), escape_line(wrong.msg),
                        "correct the line");
    }
    Job job = parse_job(out.text, name + ", as a job file");
    if (gpus == 1) {
        out.note("1 accelerator: DLIO has one for each MPI rank, which the file does not say; --gpus N");
    }
    job.notes = std::move(out.notes);
    for (std::string& note : keys.ignored()) {
        job.notes.push_back(std::move(note));
    }
    return job;
}

Job read_dlio(const std::filesystem::path& file, uint64_t gpus) {
    return parse_dlio(read_text(file, kMostFileBytes, "workload of DLIO"), file.string(), gpus);
}

}  // namespace reprise
