// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "formats/support/quantity.h"
#include "generate/job.h"

namespace reprise {
namespace {

/// So many steps an epoch stay, where the job has as many.
constexpr uint64_t kLeastSteps = 8;

void set_word(JobSection& section, std::string_view word, std::string value) {
    const auto found =
        std::find_if(section.words.begin(), section.words.end(), [&](const auto& each) { return each.first == word; });
    if (found != section.words.end()) {
        found->second = std::move(value);
    }
}

void smaller(Distribution& sizes, double factor) {
    sizes.a = std::max(sizes.a / factor, 1.0);
    sizes.b /= factor;
    const auto text = [](double bytes) { return std::to_string(std::llround(bytes)); };
    constexpr const char* kNames[] = {"", "uniform", "normal", "lognormal"};
    sizes.text = sizes.kind == Distribution::Kind::constant ? text(sizes.a)
                                                            : std::string(kNames[static_cast<size_t>(sizes.kind)]) +
                                                                  "(" + text(sizes.a) + "," + text(sizes.b) + ")";
}

/// Fewer samples, as far as some steps stay: fewer files, then fewer samples in each. Smaller samples by what is left,
/// which is returned.
double shrink_data(JobSection& section, TrainingJob& what, double factor, std::string& note) {
    const uint64_t before = what.samples, files = what.files();
    const double mean = what.sample_size.mean();
    const uint64_t least = std::min(before, kLeastSteps * what.samples_per_step());
    what.samples = std::max(static_cast<uint64_t>(std::llround(static_cast<double>(before) / factor)), least);
    const double left = factor * static_cast<double>(what.samples) / static_cast<double>(before);
    if (left > 1.001) {
        smaller(what.sample_size, left);
        set_word(section, "sample_size", what.sample_size.text);
    }
    if (what.format != SampleFormat::files) {
        // As many files stay as there are readers.
        const uint64_t readers = std::max<uint64_t>(what.workers, 1) * what.ranks;
        what.samples_per_file = std::clamp<uint64_t>(what.samples / std::min(readers, files), 1, what.samples_per_file);
        set_word(section, "samples_per_file", std::to_string(what.samples_per_file));
    }
    set_word(section, "samples", std::to_string(what.samples));
    note += counted(before, "sample") + " of " + format_bytes(static_cast<uint64_t>(mean)) + " in " +
            counted(files, "file") + " became " + format_count(what.samples) + " of " +
            format_bytes(static_cast<uint64_t>(what.sample_size.mean())) + " in " + format_count(what.files());
    return left;
}

void shrink_training(Job& job, JobSection& section, TrainingJob& what, double factor) {
    std::string note = "[" + section.name + "] is shrunk: ";
    const double left = what.format == SampleFormat::none ? 1 : shrink_data(section, what, factor, note);
    if (what.checkpoint_size != 0) {
        const auto was = static_cast<uint64_t>(what.checkpoint_size);
        what.checkpoint_size =
            std::max<int64_t>(std::llround(static_cast<double>(what.checkpoint_size) / factor), 4096);
        set_word(section, "checkpoint_size", std::to_string(what.checkpoint_size));
        note += (note.back() == ' ' ? "checkpoints of " : ", checkpoints of ") + format_bytes(was) + " became " +
                format_bytes(static_cast<uint64_t>(what.checkpoint_size));
    }
    if (what.format != SampleFormat::none) {
        note += left > 1.001 ? ". Steps take as long as before, so the storage has an easier job than the real one's"
                             : ". A smaller data set fits into memory: the second epoch may not reach the storage";
    }
    job.notes.push_back(note);
}

void shrink_io(Job& job, JobSection& section, IoJob& what, double factor) {
    const auto was = static_cast<uint64_t>(what.size);
    const auto part = [&](int64_t bytes) {
        return std::max<int64_t>(std::llround(static_cast<double>(bytes) / factor), what.bs_most);
    };
    what.file_size = part(what.file_size);
    what.size = std::max<int64_t>(part(what.size), what.file_size);
    use_whole_blocks(what);
    set_word(section, "filesize", std::to_string(what.file_size));
    set_word(section, "size", std::to_string(what.size));
    job.notes.push_back("[" + section.name + "] is shrunk: " + format_bytes(was) + " of each job became " +
                        format_bytes(static_cast<uint64_t>(what.size)));
}

int64_t smaller_bytes(int64_t bytes, double factor, int64_t least) {
    return std::max<int64_t>(std::llround(static_cast<double>(bytes) / factor), least);
}

void shrink_kv(Job& job, JobSection& section, KvCacheJob& what, double factor) {
    const auto was = static_cast<uint64_t>(what.capacity);
    what.capacity = smaller_bytes(what.capacity, factor, what.block_bytes());
    set_word(section, "kv_capacity", std::to_string(what.capacity));
    job.notes.push_back("[" + section.name + "] is shrunk: a tier of " + format_bytes(was) + " became one of " +
                        format_bytes(static_cast<uint64_t>(what.capacity)) +
                        ". Requests move as many bytes as before, which may fit into memory");
}

void shrink_load(Job& job, JobSection& section, ModelLoadJob& what, double factor) {
    const auto was = static_cast<uint64_t>(what.model_size);
    what.model_size = smaller_bytes(what.model_size, factor, 4096);
    set_word(section, "model_size", std::to_string(what.model_size));
    job.notes.push_back("[" + section.name + "] is shrunk: a model of " + format_bytes(was) + " became one of " +
                        format_bytes(static_cast<uint64_t>(what.model_size)));
}

/// Fewer samples, as far as each worker has some, and fewer packed files.
void shrink_preprocess(Job& job, JobSection& section, PreprocessJob& what, double factor) {
    const uint64_t before = what.samples, outputs = what.outputs();
    const uint64_t least = std::min(before, 2 * what.workers);
    what.samples = std::max(static_cast<uint64_t>(std::llround(static_cast<double>(before) / factor)), least);
    what.samples_per_file =
        std::clamp<uint64_t>(what.samples / std::min(outputs, what.workers), 1, what.samples_per_file);
    const double left = factor * static_cast<double>(what.samples) / static_cast<double>(before);
    if (left > 1.001) {
        smaller(what.sample_size, left);
        set_word(section, "sample_size", what.sample_size.text);
    }
    set_word(section, "samples", std::to_string(what.samples));
    set_word(section, "samples_per_file", std::to_string(what.samples_per_file));
    job.notes.push_back("[" + section.name + "] is shrunk: " + counted(before, "sample") + " became " +
                        format_count(what.samples) + " of " +
                        format_bytes(static_cast<uint64_t>(what.sample_size.mean())));
}

}  // namespace

void shrink(Job& job, double factor) {
    for (JobSection& section : job.sections) {
        if (auto* const training = std::get_if<TrainingJob>(&section.what)) {
            shrink_training(job, section, *training, factor);
        } else if (auto* const kv = std::get_if<KvCacheJob>(&section.what)) {
            shrink_kv(job, section, *kv, factor);
        } else if (auto* const load = std::get_if<ModelLoadJob>(&section.what)) {
            shrink_load(job, section, *load, factor);
        } else if (auto* const prep = std::get_if<PreprocessJob>(&section.what)) {
            shrink_preprocess(job, section, *prep, factor);
        } else {
            shrink_io(job, section, std::get<IoJob>(section.what), factor);
        }
    }
}

}  // namespace reprise
