// SPDX-License-Identifier: MIT
#include "generate/job.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "formats/support/error.h"
#include "formats/support/nearest.h"
#include "formats/support/quantity.h"
#include "generate/job_text.h"
#include "generate/section_words.h"

namespace reprise {
namespace {

struct FormatName {
    SampleFormat format;
    std::string_view extension;
};
constexpr Choice<FormatName> kFormats[] = {
    {"none", {SampleFormat::none, ""}},
    {"files", {SampleFormat::files, ".bin"}},
    {"npz", {SampleFormat::files, ".npz"}},
    {"jpeg", {SampleFormat::files, ".jpg"}},
    {"tfrecord", {SampleFormat::tfrecord, ".tfrecord"}},
    {"tar", {SampleFormat::tar, ".tar"}},
    {"hdf5", {SampleFormat::hdf5, ".h5"}},
    {"indexed", {SampleFormat::indexed, ".bin"}},
    {"parquet", {SampleFormat::parquet, ".parquet"}},
    {"arrow", {SampleFormat::arrow, ".arrow"}},
    {"lmdb", {SampleFormat::lmdb, ".mdb"}},
};
constexpr Choice<TrainingJob::Sync> kSyncs[] = {
    {"step", TrainingJob::Sync::step}, {"epoch", TrainingJob::Sync::epoch}, {"none", TrainingJob::Sync::none}};
constexpr Choice<bool> kComputers[] = {{"accelerator", false}, {"processor", true}};
constexpr Choice<TrainingJob::Checkpoint> kCheckpoints[] = {{"blocking", TrainingJob::Checkpoint::blocking},
                                                            {"async", TrainingJob::Checkpoint::async},
                                                            {"sharded", TrainingJob::Checkpoint::sharded}};

void checkpoints(const SectionWords& words, TrainingJob& job) {
    job.checkpoint_mode = words.choice("checkpoint_mode", kCheckpoints);
    job.checkpoint_bs = words.bytes("checkpoint_bs", 512);
    if (!words.given("checkpoint_every")) {
        if (words.given("checkpoint_size")) {
            words.fail("checkpoint_size", "checkpoint_size= without checkpoint_every=", "e.g. checkpoint_every=1000");
        }
        return;
    }
    const std::string every = words.text("checkpoint_every");
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(every.data(), every.data() + every.size(), number);
    const std::string_view unit(rest, static_cast<size_t>(every.data() + every.size() - rest));
    const bool epochs = unit == "epochs" || unit == "epoch";
    if (error != std::errc() || number == 0 || (!unit.empty() && !epochs && unit != "steps")) {
        words.wrong("checkpoint_every", "so many steps or epochs: 1000, 2epochs");
    }
    (epochs ? job.checkpoint_epochs : job.checkpoint_steps) = number;
    words.require("checkpoint_size", "bytes of a checkpoint, e.g. checkpoint_size=1GiB");
    job.checkpoint_size = words.bytes("checkpoint_size");
    constexpr double kCopyBytesPerNs = 10;
    job.checkpoint_copy_ns = words.given("checkpoint_copy")
                                 ? words.time("checkpoint_copy", 1e9)
                                 : std::llround(static_cast<double>(job.checkpoint_size) / kCopyBytesPerNs);
}

void check_steps(const SectionWords& words, const TrainingJob& job) {
    const double bytes = static_cast<double>(job.samples) * job.sample_size.mean();
    const bool drawn = job.sample_size.varies() && job.format != SampleFormat::files && !is_stream(job.format);
    if (job.files() > kMostFiles || bytes > kMostBytes || (drawn && job.samples > kMostDrawn)) {
        words.fail("samples",
                   "a data set of " + format_count(job.samples) + " samples in " + counted(job.files(), "file") +
                       " is too large",
                   "fewer samples=, more samples_per_file=, or a smaller sample_size=");
    }

    if (job.steps_per_epoch() == 0) {
        words.fail("samples",
                   "an epoch has no step: " + counted(job.samples, "sample") + ", but a step takes " +
                       format_count(job.samples_per_step()) + " (batch= for each of gpus=)",
                   "more samples=, or a smaller batch=");
    }
}

/// Of a job without data: as many samples as its steps take.
void no_data_set(const SectionWords& words, TrainingJob& job) {
    for (const char* word : {"samples", "sample_size", "samples_per_file"}) {
        if (words.section().own.contains(word)) {
            words.fail(word, std::string(word) + "= beside format=none, which has no data set", "leave it out");
        }
    }
    words.require("steps", "format=none has no data set whose end would be the job's: e.g. steps=100");
    job.workers = 0;
}

void data_set(const SectionWords& words, TrainingJob& job) {
    if (job.format == SampleFormat::none) {
        return no_data_set(words, job);
    }
    words.require("samples", "samples of the data set, e.g. samples=10000");
    words.require("sample_size", "bytes of a sample, e.g. sample_size=150k");
    job.samples = words.count("samples", 1);
    job.sample_size = words.drawn("sample_size", Distribution::Unit::bytes, 1);
    if (job.format != SampleFormat::files) {
        job.samples_per_file = words.given("samples_per_file") ? words.count("samples_per_file", 1) : job.samples;
    } else if (words.given("samples_per_file")) {
        words.fail("samples_per_file", "samples_per_file= of a format with a file for each sample",
                   "leave it out, or take format=tfrecord, tar, hdf5 ...");
    }
}

TrainingJob training_job(const SectionWords& words) {
    TrainingJob job;
    const FormatName format = words.choice("format", kFormats);
    job.format = format.format;
    job.extension = format.extension;
    data_set(words, job);
    const bool tables = job.format == SampleFormat::parquet;
    if (!tables && (words.section().own.contains("row_group") || words.section().own.contains("columns"))) {
        words.fail(words.given("row_group") ? "row_group" : "columns", "row_group= and columns= are of format=parquet",
                   "leave them out");
    }
    job.row_group = words.count("row_group", 1);
    job.columns = words.count("columns", 1, 10'000);
    constexpr int64_t kStreamRead = 256 << 10;
    job.bs = words.given("bs") ? words.bytes("bs") : is_stream(job.format) ? kStreamRead : 0;
    job.direct = words.yes("direct");
    const bool sectors =
        job.format == SampleFormat::files || job.format == SampleFormat::tfrecord || job.format == SampleFormat::tar;
    if (job.direct && (!sectors || job.bs % 512 != 0)) {
        words.fail("direct", "direct=1 needs reads of whole sectors",
                   "format=npz, jpeg, files, tfrecord or tar, and a bs= that is a multiple of 512");
    }
    job.batch = words.count("batch", 1, 1'000'000'000);
    if (job.format != SampleFormat::none) {
        job.workers = words.count("loader_workers", 0, 4096);
    }
    job.interleave = words.yes("interleave");
    if (job.interleave && job.workers == 0) {
        words.fail("interleave", "interleave=1 needs loaders", "loader_workers= of 1 or more");
    }
    job.prefetch = words.count("prefetch", 1, 1'000'000);
    const std::string shuffle = words.text("shuffle");
    job.shuffled = shuffle != "none";
    if (shuffle != "none" && shuffle != "full" && shuffle.find_first_not_of("0123456789") != shuffle.npos) {
        words.wrong("shuffle", "none, full, or a buffer of so many samples, e.g. shuffle=1000");
    }
    job.shuffle_buffer = shuffle == "none" || shuffle == "full" ? 0 : words.count("shuffle", 2);
    job.epochs = words.count("epochs", 1, 1'000'000);
    job.steps = words.maybe_count("steps");
    job.decode = words.drawn("decode", Distribution::Unit::seconds, 0);
    job.compute = words.drawn("compute", Distribution::Unit::seconds, 0);
    job.on_processor = words.choice("compute_on", kComputers);
    job.overhead = words.drawn("overhead", Distribution::Unit::seconds, 0);
    if (job.overhead.mean() > 0 && (job.on_processor || job.compute.mean() <= 0)) {
        words.fail("overhead", "overhead= comes beside an accelerator's work, and there is none",
                   job.on_processor ? "add it to compute=, which a processor does"
                                    : "write it as compute= with compute_on=processor");
    }
    job.gpus = words.count("gpus", 1, 1'000'000);
    job.ranks = words.given("ranks") ? words.count("ranks", 1, 1'000'000) : job.gpus;
    if (job.gpus % job.ranks != 0) {
        words.fail("ranks",
                   format_count(job.gpus) + " accelerators cannot be shared evenly by " + counted(job.ranks, "rank"),
                   "a ranks= that divides gpus=");
    }
    if (job.on_processor && job.gpus != job.ranks) {
        words.fail("compute_on", "compute_on=processor with accelerators that share ranks",
                   "leave out gpus=, or give as many as ranks=");
    }
    job.sync = words.choice("sync", kSyncs);
    checkpoints(words, job);
    if (job.format == SampleFormat::none) {
        job.batch = 1;
        job.samples = *job.steps * job.samples_per_step();
    }
    check_steps(words, job);
    if (job.steps && !words.given("epochs")) {
        job.epochs = (*job.steps + job.steps_per_epoch() - 1) / job.steps_per_epoch();
    }
    return job;
}

/// What a section without a word has in its place; empty where the word says nothing there.
std::string resolved(const SectionWords& words, const JobSection& section, std::string_view word) {
    if (const auto* const io = std::get_if<IoJob>(&section.what)) {
        return resolved_io(words, *io, word);
    }
    if (!std::holds_alternative<TrainingJob>(section.what)) {
        return resolved_workload(words, section, word);
    }
    const auto& job = std::get<TrainingJob>(section.what);
    const bool data = job.format != SampleFormat::none;
    const bool packed = data && job.format != SampleFormat::files, tables = job.format == SampleFormat::parquet;
    if (word == "bs") {
        return job.bs == 0 ? "" : std::to_string(job.bs);
    }
    if (word == "samples_per_file") {
        return packed ? std::to_string(job.samples_per_file) : "";
    }
    if (word == "ranks") {
        return std::to_string(job.ranks);
    }
    if (word == "epochs") {
        return std::to_string(job.epochs);
    }
    constexpr std::string_view kLoader[] = {"loader_workers", "interleave", "prefetch", "shuffle", "decode"};
    if (!data && std::find(std::begin(kLoader), std::end(kLoader), word) != std::end(kLoader)) {
        return "";
    }
    const bool no_tables = (word == "row_group" || word == "columns") && !tables;
    const bool no_checkpoints = word.starts_with("checkpoint_") && job.checkpoint_size == 0;
    return no_tables || no_checkpoints ? "" : words.text(word.data());
}

std::vector<std::pair<std::string, std::string>> resolved_words(const SectionWords& words, const JobSection& section) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const WordInfo& word : all_words()) {
        if (!fits(word.place, words.section().kind)) {
            continue;
        }
        const auto* const io = std::get_if<IoJob>(&section.what);
        const bool of_open_loops = word.name == "runtime" || word.name == "concurrency";
        if (io != nullptr && !io->arrivals && of_open_loops) {
            continue;  // [global] has it for others
        }
        const std::string value =
            words.given(word.name.data()) ? words.text(word.name.data()) : resolved(words, section, word.name);
        if (!value.empty()) {
            out.emplace_back(word.name, value);
        }
    }
    return out;
}

/// A time without a unit is in seconds, where fio has microseconds and others milliseconds.
void add_notes(const SectionWords& words, const JobSection& section, std::vector<std::string>& notes) {
    for (const WordInfo& word : all_words()) {
        const bool times = word.value == WordValue::times || word.value == WordValue::duration;
        const std::string value = times && words.given(word.name.data()) ? words.text(word.name.data()) : "";
        const bool bare = !value.empty() && value.find_first_not_of("0123456789.") == value.npos;
        if (bare && word.name != "runtime" && value.find_first_of("123456789") != value.npos) {
            notes.push_back("[" + section.name + "] " + std::string(word.name) + "=" + value +
                            ": seconds, as it has no unit");
        }
    }
    const auto* const job = std::get_if<TrainingJob>(&section.what);
    if (job == nullptr || job->format == SampleFormat::none) {
        return;
    }
    const uint64_t left = job->samples - job->steps_per_epoch() * job->samples_per_step();
    if (left != 0) {
        notes.push_back("[" + section.name + "] " + format_count(left) + " of " + counted(job->samples, "sample") +
                        " are not read in an epoch: they fill no step of " + format_count(job->samples_per_step()));
    }
    if (is_stream(job->format) && job->shuffle_buffer != 0) {
        notes.push_back("[" + section.name + "] shuffle=" + std::to_string(job->shuffle_buffer) +
                        ": as full, files are shuffled; what a buffer reads ahead of the first batch is not made");
    }
}

/// What [global] says of open loops, and no section is one.
void check_open_words(const std::vector<SectionText>& sections, const Job& job, const std::string& name) {
    for (const char* const word : {"runtime", "concurrency"}) {
        const SectionText* at = nullptr;
        bool used = false;
        for (size_t i = 0; i < sections.size(); ++i) {
            const auto* const io = std::get_if<IoJob>(&job.sections[i].what);
            const bool closed = io != nullptr && !io->arrivals;
            if (sections[i].words.contains(word)) {
                at = closed ? &sections[i] : at;
                used = used || !closed;
            }
        }
        if (at != nullptr && !used) {
            wrong_line(name, at->words.at(word).line, std::string(word) + "= is of an open loop, and no section is one",
                       word == std::string("runtime") ? "size=, number_ios= or loops= end a closed loop"
                                                      : "numjobs= in its place, or rate_iops=");
        }
    }
}

}  // namespace

Job parse_job(std::string_view text, const std::string& name, std::string_view accelerator) {
    Job job;
    const std::vector<SectionText> sections = read_sections(text, name, accelerator);
    for (const SectionText& section : sections) {
        const SectionWords words(section, name);
        JobSection& out = job.sections.emplace_back();
        out.name = section.name;
        out.directory = words.text("directory");
        const bool leaves = (out.directory + "/").find("/../") != std::string::npos;
        if (out.directory.front() != '/' || leaves) {
            words.wrong("directory",
                        leaves ? "a path without .., e.g. /data/train" : "a path from the root, e.g. /data/train");
        }
        while (out.directory.size() > 1 && out.directory.back() == '/') {
            out.directory.pop_back();
        }
        out.seed = words.count("seed", 0);
        out.stonewall = words.yes("stonewall");
        switch (section.kind) {
            case WordPlace::training: out.what = training_job(words); break;
            case WordPlace::kv: out.what = kv_cache_job(words); break;
            case WordPlace::load: out.what = model_load_job(words); break;
            case WordPlace::prep: out.what = preprocess_job(words); break;
            default:
                out.what = io_job(words);
                for (std::string& note : unit_notes(words)) {
                    job.notes.push_back(std::move(note));
                }
                break;
        }
        out.words = resolved_words(words, out);
        add_notes(words, out, job.notes);
    }
    check_open_words(sections, job, name);
    return job;
}

Job read_job(const std::filesystem::path& file, std::string_view accelerator) {
    constexpr size_t kMostBytes = size_t{16} << 20;
    const std::string text = read_text(file, kMostBytes, "job file");
    check_size(text, kMostBytes, file.string(), "job file");
    return parse_job(text, file.string(), accelerator);
}

std::string show_job(const Job& job) {
    std::string out;
    for (const JobSection& section : job.sections) {
        out += (out.empty() ? "[" : "\n[") + section.name + "]\n";
        for (const auto& [word, value] : section.words) {
            out += word + "=" + value + "\n";
        }
    }
    return out;
}

}  // namespace reprise
