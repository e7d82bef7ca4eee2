// SPDX-License-Identifier: MIT
// A job as a job file describes it, with all defaults filled in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "generate/arrivals.h"
#include "generate/distribution.h"
#include "generate/loading_job.h"
#include "generate/preparing_job.h"
#include "generate/serving_job.h"

namespace reprise {

/// A section with rw=: what fio would do.
struct IoJob {
    enum class Engine : uint8_t { psync, sync, uring, aio } engine = Engine::psync;
    bool reads = true, writes = false, random = false;
    int64_t bs_least = 4096, bs_most = 4096;  // bytes
    int64_t file_size = 0;                    // bytes
    int64_t size = 0;                         // bytes that a job moves in each loop
    uint64_t files = 1, jobs = 1, loops = 1;
    bool threads = false, direct = false, end_fsync = false;
    std::optional<uint64_t> number_ios;
    uint64_t read_percent = 50;
    uint64_t depth = 1;
    int64_t think_ns = 0;
    uint64_t think_blocks = 1, fsync = 0, fdatasync = 0;
    std::optional<Arrivals> arrivals;  // none: a closed loop
    uint64_t servers = 1;              // tasks of each job that serve arrivals
};

/// A loop moves at most what the files have of whole blocks, as with fio.
void use_whole_blocks(IoJob& job);

enum class SampleFormat : uint8_t { none, files, tfrecord, tar, hdf5, indexed, parquet, arrow, lmdb };
/// Read from front to back: samples are not chosen, files are.
constexpr bool is_stream(SampleFormat format) {
    return format == SampleFormat::tfrecord || format == SampleFormat::tar || format == SampleFormat::parquet;
}
constexpr bool is_mapped(SampleFormat format) {
    return format == SampleFormat::indexed || format == SampleFormat::arrow || format == SampleFormat::lmdb;
}

/// A section with format=: a training job.
struct TrainingJob {
    SampleFormat format = SampleFormat::files;
    std::string extension;  // of files, with its dot
    uint64_t samples = 0, samples_per_file = 1, row_group = 1024, columns = 8;
    Distribution sample_size, decode, compute, overhead;  // bytes, then ns
    int64_t bs = 0;                                       // of each read, bytes; 0: the sample as a whole
    bool direct = false;
    uint64_t batch = 1, workers = 4, prefetch = 2;
    bool interleave = false;  // a batch takes samples from all workers in turn
    bool shuffled = false;
    uint64_t shuffle_buffer = 0;  // samples; 0: all
    uint64_t epochs = 1;
    std::optional<uint64_t> steps;
    bool on_processor = false;  // steps are computed by the ranks, not by accelerators
    uint64_t gpus = 1, ranks = 1;
    enum class Sync : uint8_t { step, epoch, none } sync = Sync::step;
    enum class Checkpoint : uint8_t { blocking, async, sharded } checkpoint_mode = Checkpoint::blocking;
    uint64_t checkpoint_steps = 0, checkpoint_epochs = 0;  // both 0: never
    int64_t checkpoint_size = 0, checkpoint_bs = 1 << 20;  // bytes
    int64_t checkpoint_copy_ns = 0;

    uint64_t gpus_per_rank() const { return gpus / ranks; }
    /// As tf.data reads files of records.
    bool interleaves_streams() const {
        return interleave && (format == SampleFormat::tfrecord || format == SampleFormat::tar);
    }
    /// Of each rank, in batches.
    uint64_t ahead() const { return interleave ? prefetch : workers * prefetch; }
    uint64_t files() const {
        return format == SampleFormat::none ? 0 : (samples + samples_per_file - 1) / samples_per_file;
    }
    /// All ranks together.
    uint64_t samples_per_step() const { return batch * gpus; }
    uint64_t steps_per_epoch() const { return samples / samples_per_step(); }
    uint64_t all_steps() const {
        return steps ? std::min(*steps, steps_per_epoch() * epochs) : steps_per_epoch() * epochs;
    }
};

struct JobSection {
    std::string name, directory;
    uint64_t seed = 1;
    bool stonewall = false;
    std::variant<IoJob, TrainingJob, KvCacheJob, ModelLoadJob, PreprocessJob> what;
    /// As the file has them, or the defaults: for --show. In the order of words.def.
    std::vector<std::pair<std::string, std::string>> words = {};
};

struct Job {
    std::vector<JobSection> sections;
    std::vector<std::string> notes;  // sentences: what the log differs from what was asked for
};

/// Throws Error (bad_input) with file and line, and the nearest known word where one is not known. `accelerator`: in
/// place of the file's accelerator=; empty: as the file says.
Job read_job(const std::filesystem::path& file, std::string_view accelerator = {});
/// `name`: in messages.
Job parse_job(std::string_view text, const std::string& name, std::string_view accelerator = {});

/// The job with the data set and checkpoints `factor` times smaller: fewer samples, as far as four steps stay, then
/// smaller ones. Notes say so.
void shrink(Job& job, double factor);

/// The resolved job as a job file: what read_job() of it gives is the same job.
std::string show_job(const Job& job);

}  // namespace reprise
