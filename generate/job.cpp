// SPDX-License-Identifier: MIT
#include "generate/job.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "formats/support/error.h"
#include "formats/support/nearest.h"
#include "formats/support/quantity.h"
#include "generate/job_text.h"

namespace reprise {
namespace {

constexpr uint64_t kMostCount = uint64_t{1} << 40;
constexpr uint64_t kMostFiles = 100'000'000, kMostDrawn = 1'000'000'000;  // what generate() keeps numbers of
constexpr double kMostBytes = 0x1p60;                                     // of a section's files

template <class T>
struct Choice {
    std::string_view word;
    T value;
};

/// The words of one section as values.
class Words {
public:
    Words(const SectionText& text, const std::string& file) : text_(text), file_(file) {}

    bool given(const char* word) const { return text_.words.contains(word); }
    /// As given, or the default.
    std::string text(const char* word) const {
        const auto found = text_.words.find(word);
        return found == text_.words.end() ? std::string(find_word(word)->otherwise) : found->second.value;
    }
    [[noreturn]] void fail(const char* word, const std::string& what, const std::string& todo) const {
        const auto found = text_.words.find(word);
        wrong_line(file_, found == text_.words.end() ? text_.line : found->second.line, what, todo);
    }
    [[noreturn]] void wrong(const char* word, const std::string& todo) const {
        fail(word, std::string(word) + "= cannot be '" + escape_line(text(word)) + "'", todo);
    }
    void require(const char* word, const std::string& todo) const {
        if (!given(word)) {
            wrong_line(file_, text_.line, "[" + text_.name + "] has no " + word + "=", todo);
        }
    }

    uint64_t count(const char* word, uint64_t least, uint64_t most = kMostCount) const {
        const std::string value = text(word);
        uint64_t number = 0;
        const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || rest != value.data() + value.size() || number < least || number > most) {
            wrong(word, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        }
        return number;
    }
    std::optional<uint64_t> maybe_count(const char* word) const {
        return given(word) ? std::optional(count(word, 1)) : std::nullopt;
    }
    bool yes(const char* word) const { return count(word, 0, 1) == 1; }
    int64_t bytes(const char* word, int64_t least = 1) const {
        const auto value = read_bytes(text(word));
        if (!value || *value < least) {
            wrong(word, "a size such as 4k, 1MiB or 2GB");
        }
        return *value;
    }
    int64_t time(const char* word, double unit_ns) const {
        const auto value = read_time(text(word), unit_ns);
        if (!value) {
            wrong(word, "a time such as 250us, 10ms or 1.5s");
        }
        return *value;
    }
    Distribution drawn(const char* word, Distribution::Unit unit, double least) const {
        auto value = Distribution::parse(text(word), unit);
        const bool bytes = unit == Distribution::Unit::bytes;
        if (!value) {
            wrong(word, bytes ? "150k, normal(140MiB,65MiB), lognormal(1MiB,2MiB) or uniform(4k,64k)"
                              : "250ms, normal(250ms,20ms), lognormal(3ms,1ms) or uniform(1ms,2ms)");
        }
        value->least = least;
        return *value;
    }
    template <class T, size_t N>
    T choice(const char* word, const Choice<T> (&choices)[N]) const {
        const std::string value = text(word);
        std::vector<std::string> names;
        for (const Choice<T>& each : choices) {
            if (each.word == value) {
                return each.value;
            }
            names.emplace_back(each.word);
        }
        fail(word,
             std::string(word) + "= cannot be '" + escape_line(value) + "'" + did_you_mean(nearest_names(value, names)),
             "one of: " + join(names, ", "));
    }
    const std::string& file() const { return file_; }
    const SectionText& section() const { return text_; }

private:
    const SectionText& text_;
    const std::string& file_;
};

struct Direction {
    bool reads, writes, random;
};
constexpr Choice<Direction> kDirections[] = {
    {"read", {true, false, false}},     {"write", {false, true, false}}, {"randread", {true, false, true}},
    {"randwrite", {false, true, true}}, {"rw", {true, true, false}},     {"readwrite", {true, true, false}},
    {"randrw", {true, true, true}},
};
constexpr Choice<IoJob::Engine> kEngines[] = {{"psync", IoJob::Engine::psync},
                                              {"sync", IoJob::Engine::sync},
                                              {"io_uring", IoJob::Engine::uring},
                                              {"libaio", IoJob::Engine::aio}};

IoJob io_job(const Words& words) {
    IoJob job;
    const Direction way = words.choice("rw", kDirections);
    job.reads = way.reads;
    job.writes = way.writes;
    job.random = way.random;
    job.engine = words.choice("ioengine", kEngines);
    const std::string range = words.text("bs");
    const size_t dash = range.find('-');
    const auto least = read_bytes(range.substr(0, dash));
    const auto most = dash == range.npos ? least : read_bytes(range.substr(dash + 1));
    if (!least || !most || *least < 1 || *most < *least) {
        words.wrong("bs", "a size such as 4k, or a range such as 4k-64k");
    }
    job.bs_least = *least;
    job.bs_most = *most;
    job.files = words.count("nrfiles", 1, 10'000'000);
    job.jobs = words.count("numjobs", 1, 100'000);
    job.loops = words.count("loops", 1);
    job.threads = words.yes("thread");
    job.direct = words.yes("direct");
    job.end_fsync = words.yes("end_fsync");
    job.number_ios = words.maybe_count("number_ios");
    job.read_percent = words.count("rwmixread", 0, 100);
    job.depth = words.count("iodepth", 1, 4096);
    job.think_ns = words.time("thinktime", 1e3);
    job.think_blocks = words.count("thinktime_blocks", 1);
    job.fsync = words.count("fsync", 0);
    job.fdatasync = words.count("fdatasync", 0);
    if (words.given("filesize")) {
        job.file_size = words.bytes("filesize");
        job.size = words.given("size") ? words.bytes("size") : job.file_size * static_cast<int64_t>(job.files);
    } else {
        words.require("size", "bytes that each job reads and writes, e.g. size=1g");
        job.size = words.bytes("size");
        job.file_size = job.size / static_cast<int64_t>(job.files);
    }
    if (static_cast<double>(job.file_size) * static_cast<double>(job.files) > kMostBytes ||
        static_cast<double>(job.size) > kMostBytes || job.files * job.jobs > kMostFiles) {
        words.fail("size", "more bytes or files than a log can name", "fewer nrfiles= or numjobs=, or a smaller size=");
    }
    if (job.file_size < job.bs_most) {
        words.fail("size", "a file of " + format_bytes(static_cast<uint64_t>(job.file_size)) + " is smaller than bs=",
                   "a larger size=, fewer nrfiles=, or a smaller bs=");
    }
    const bool asynchronous = job.engine == IoJob::Engine::uring || job.engine == IoJob::Engine::aio;
    if (job.depth > 1 && !asynchronous) {
        words.fail("iodepth", "iodepth= above 1 needs requests in flight, which psync and sync do not have",
                   "ioengine=io_uring or ioengine=libaio, or numjobs= in its place");
    }
    if (asynchronous && (job.fsync != 0 || job.fdatasync != 0)) {
        words.fail(job.fsync != 0 ? "fsync" : "fdatasync", "fsync= beside requests in flight is not made yet",
                   "end_fsync=1, or ioengine=psync");
    }
    if (job.direct && job.bs_least % 512 != 0) {
        words.fail("bs", "direct=1 needs a bs= of whole sectors", "a multiple of 512");
    }
    return job;
}

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

void checkpoints(const Words& words, TrainingJob& job) {
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

void check_steps(const Words& words, const TrainingJob& job) {
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
void no_data_set(const Words& words, TrainingJob& job) {
    for (const char* word : {"samples", "sample_size", "samples_per_file"}) {
        if (words.section().own.contains(word)) {
            words.fail(word, std::string(word) + "= beside format=none, which has no data set", "leave it out");
        }
    }
    words.require("steps", "format=none has no data set whose end would be the job's: e.g. steps=100");
    job.workers = 0;
}

void data_set(const Words& words, TrainingJob& job) {
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

TrainingJob training_job(const Words& words) {
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
    job.prefetch = words.count("prefetch", 1, 1'000'000);
    const std::string shuffle = words.text("shuffle");
    job.shuffled = shuffle != "none";
    job.shuffle_buffer = shuffle == "none" || shuffle == "full" ? 0 : words.count("shuffle", 2);
    job.epochs = words.count("epochs", 1, 1'000'000);
    job.steps = words.maybe_count("steps");
    job.decode = words.drawn("decode", Distribution::Unit::seconds, 0);
    job.compute = words.drawn("compute", Distribution::Unit::seconds, 0);
    job.on_processor = words.choice("compute_on", kComputers);
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
    return job;
}

/// What a section without a word has in its place; empty where the word says nothing there.
std::string resolved(const Words& words, const JobSection& section, std::string_view word) {
    if (const auto* const io = std::get_if<IoJob>(&section.what)) {
        return word == "filesize"                                  ? std::to_string(io->file_size)
               : word == "rwmixread" && !(io->reads && io->writes) ? ""
               : word == "thinktime_blocks" && io->think_ns == 0   ? ""
                                                                   : words.text(word.data());
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
    constexpr std::string_view kLoader[] = {"loader_workers", "prefetch", "shuffle", "decode"};
    if (!data && std::find(std::begin(kLoader), std::end(kLoader), word) != std::end(kLoader)) {
        return "";
    }
    const bool no_tables = (word == "row_group" || word == "columns") && !tables;
    const bool no_checkpoints = word.starts_with("checkpoint_") && job.checkpoint_size == 0;
    return no_tables || no_checkpoints ? "" : words.text(word.data());
}

std::vector<std::pair<std::string, std::string>> resolved_words(const Words& words, const JobSection& section) {
    const bool training = std::holds_alternative<TrainingJob>(section.what);
    std::vector<std::pair<std::string, std::string>> out;
    for (const WordInfo& word : all_words()) {
        if (word.place != WordPlace::both && (word.place == WordPlace::training) != training) {
            continue;
        }
        const std::string value =
            words.given(word.name.data()) ? words.text(word.name.data()) : resolved(words, section, word.name);
        if (!value.empty()) {
            out.emplace_back(word.name, value);
        }
    }
    return out;
}

}  // namespace

Job parse_job(std::string_view text, const std::string& name) {
    Job job;
    for (const SectionText& section : read_sections(text, name)) {
        const Words words(section, name);
        JobSection& out = job.sections.emplace_back();
        out.name = section.name;
        out.directory = words.text("directory");
        if (out.directory.front() != '/') {
            words.wrong("directory", "a path from the root, e.g. /data/train");
        }
        while (out.directory.size() > 1 && out.directory.back() == '/') {
            out.directory.pop_back();
        }
        out.seed = words.count("seed", 0);
        out.stonewall = words.yes("stonewall");
        if (section.training) {
            out.what = training_job(words);
        } else {
            out.what = io_job(words);
        }
        out.words = resolved_words(words, out);
    }
    return job;
}

Job read_job(const std::filesystem::path& file) {
    constexpr size_t kMostBytes = size_t{16} << 20;
    const std::string text = read_text(file, kMostBytes, "job file");
    check_size(text, kMostBytes, file.string(), "job file");
    return parse_job(text, file.string());
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
