// SPDX-License-Identifier: MIT
// Workloads of DLIO: which words their keys become, what is said of the rest, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "formats/support/error.h"
#include "generate/dlio.h"
#include "tests/support.h"

using namespace reprise;

namespace {

Job job_of(const std::string& yaml, uint64_t gpus = 1) { return parse_dlio(yaml, "w.yaml", gpus); }

const TrainingJob& training_of(const Job& job) {
    REQUIRE(job.sections.size() == 1);
    REQUIRE(std::holds_alternative<TrainingJob>(job.sections[0].what));
    return std::get<TrainingJob>(job.sections[0].what);
}

bool says(const Job& job, const std::string& part) {
    return std::any_of(job.notes.begin(), job.notes.end(),
                       [&](const std::string& note) { return note.find(part) != note.npos; });
}

std::string error_of(const std::string& yaml, uint64_t gpus = 1) {
    try {
        job_of(yaml, gpus);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        return error.what();
    }
    return "no error";
}

bool fails(const std::string& yaml, const std::string& part) {
    const std::string error = error_of(yaml);
    INFO(error);
    return error.find(part) != error.npos;
}

constexpr const char* kUnet =
    "model: {name: unet3d, type: cnn, model_size: 499153191}\n"
    "framework: pytorch\n"
    "workflow: {generate_data: False, train: True, checkpoint: True}\n"
    "dataset:\n"
    "  data_folder: data/unet3d/\n"
    "  format: npz\n"
    "  num_files_train: 168\n"
    "  record_length_bytes: 146600628\n"
    "  record_length_bytes_stdev: 68341808\n"
    "  record_length_bytes_resize: 2097152\n"
    "reader: {data_loader: pytorch, batch_size: 7, read_threads: 4, file_shuffle: seed, sample_shuffle: seed}\n"
    "train: {epochs: 5, computation_time: 0.323}\n"
    "checkpoint: {checkpoint_folder: c, checkpoint_after_epoch: 5, epochs_between_checkpoints: 2}\n"
    "metric: {au: 0.90}\n";

}  // namespace

TEST_CASE("unet3d of MLPerf Storage") {
    const Job job = job_of(kUnet, 2);
    const TrainingJob& what = training_of(job);
    CHECK(job.sections[0].name == "unet3d");
    CHECK(job.sections[0].directory == "/data/unet3d/train");
    CHECK(job.sections[0].seed == 123);
    CHECK(what.format == SampleFormat::files);
    CHECK(what.extension == ".npz");
    CHECK(what.samples == 168);
    CHECK(what.sample_size.text == "normal(146600628,68341808)");
    CHECK(what.batch == 7);
    CHECK(what.workers == 4);
    CHECK(what.prefetch == 1);  // two batches among four workers
    CHECK(what.shuffled);
    CHECK(what.epochs == 5);
    CHECK(what.compute.mean() == 323e6);
    CHECK(what.gpus == 2);
    CHECK(what.ranks == 2);
    CHECK(what.checkpoint_epochs == 5);  // only the one after epoch 5
    CHECK(what.checkpoint_size == 499153191);
    CHECK(what.checkpoint_mode == TrainingJob::Checkpoint::blocking);
    CHECK(says(job, "change no reads or writes: framework, dataset.record_length_bytes_resize, metric"));
    CHECK(says(job, "'data/unet3d/' is /data/unet3d in the log"));
    CHECK_FALSE(says(job, "--gpus"));
    CHECK(says(job_of(kUnet), "--gpus N"));
}

TEST_CASE("what --show prints is the same job") {
    const Job job = job_of(kUnet, 4);
    CHECK(show_job(parse_job(show_job(job), "shown.ini")) == show_job(job));
}

TEST_CASE("a stream of several samples a file") {
    const Job job = job_of(
        "model: resnet50\n"
        "dataset: {format: tfrecord, num_files_train: 1024, num_samples_per_file: 1251, record_length: 114660.07}\n"
        "reader: {batch_size: 400, read_threads: 8, sample_shuffle: seed, transfer_size: 1048576}\n"
        "train: {total_training_steps: 100, seed: 7}\n");
    const TrainingJob& what = training_of(job);
    CHECK(job.sections[0].name == "resnet50");
    CHECK(job.sections[0].seed == 7);
    CHECK(what.format == SampleFormat::tfrecord);
    CHECK(what.samples == 1024 * 1251);
    CHECK(what.samples_per_file == 1251);
    CHECK(what.sample_size.mean() == 114660);
    CHECK(what.bs == 1048576);
    CHECK(what.interleave);
    CHECK(what.prefetch == 3);  // and one that is mapped
    CHECK(what.steps == 100);
    CHECK(what.shuffled);
    CHECK(says(job, "shuffles whole files"));
}

TEST_CASE("DLIO's defaults") {
    const Job job = job_of("dataset: {num_samples_per_file: 4}\n");
    const TrainingJob& what = training_of(job);
    CHECK(job.sections[0].name == "dlio");
    CHECK(what.format == SampleFormat::tfrecord);
    CHECK(what.samples == 32);
    CHECK(what.sample_size.mean() == 65536);
    CHECK(what.batch == 1);
    CHECK(what.workers == 1);
    CHECK(what.prefetch == 2);
    CHECK_FALSE(what.shuffled);
    CHECK(what.checkpoint_size == 0);
}

TEST_CASE("several samples in an npz file") {
    const Job job = job_of("dataset: {format: npz, num_samples_per_file: 4}\n");
    CHECK(training_of(job).format == SampleFormat::hdf5);
    CHECK(training_of(job).samples_per_file == 4);
    CHECK(says(job, "DLIO loads the whole file"));
}

TEST_CASE("times are numbers, mappings, or drawn otherwise") {
    const auto compute = [](const std::string& value) {
        return training_of(job_of("train: {computation_time: " + value + "}\n")).compute;
    };
    CHECK(compute("1.5").mean() == 1.5e9);
    CHECK(compute("{mean: 2}").mean() == 2e9);
    CHECK(compute("{mean: 2, stdev: 0.5, type: normal}").kind == Distribution::Kind::normal);
    CHECK(compute("{min: 1, max: 3, type: uniform}").mean() == 2e9);
    const Distribution gamma = compute("{shape: 4, scale: 2, type: gamma}");
    CHECK(gamma.kind == Distribution::Kind::lognormal);
    CHECK(gamma.a == 8e9);
    CHECK(gamma.b == 4e9);
    CHECK(says(job_of("train: {computation_time: {lam: 4, type: poisson}}\n"), "type poisson became a lognormal"));
    CHECK(training_of(job_of("train: {computation_time: 1, computation_time_stdev: 0.1}\n")).compute.text ==
          "normal(1s,0.1s)");
    CHECK(fails("train: {computation_time: {mean: 2, typo: 1}}\n", "'typo' is no key"));
    CHECK(fails("train: {computation_time: {type: gamma, shape: 1}}\n", "has no scale"));
    CHECK(fails("train: {computation_time: -1}\n", "cannot be '-1'"));
    CHECK(fails("train: {computation_time: {type: cauchy}}\n", "one of: normal"));
}

TEST_CASE("columns that are read of a table") {
    const Job job = job_of(
        "dataset:\n"
        "  format: parquet\n"
        "  num_samples_per_file: 100\n"
        "  record_length_bytes: 700\n"
        "  parquet:\n"
        "    row_group_size: 50\n"
        "    columns:\n"
        "      - {name: a, dtype: float16, read: false}\n"
        "      - {name: b, dtype: float32, read: true}\n"
        "      - {name: c, dtype: float64}\n");
    const TrainingJob& what = training_of(job);
    CHECK(what.columns == 2);
    CHECK(what.row_group == 50);
    CHECK(what.sample_size.mean() == 600);
    CHECK(says(job, "2 of 3 are read"));
}

TEST_CASE("checkpoints every few epochs and steps, and who writes them") {
    const auto with = [](const std::string& checkpoint, const std::string& model = "{model_size_bytes: 1000}") {
        return job_of("model: " + model + "\nworkflow: {checkpoint: True}\ntrain: {epochs: 6}\ncheckpoint: {" +
                          checkpoint + "}\n",
                      4);
    };
    CHECK(training_of(with("checkpoint_after_epoch: 2, epochs_between_checkpoints: 2")).checkpoint_epochs == 2);
    const Job later = with("checkpoint_after_epoch: 3, epochs_between_checkpoints: 2");
    CHECK(training_of(later).checkpoint_epochs == 2);
    CHECK(says(later, "DLIO makes the first one after epoch 3"));
    CHECK(training_of(with("checkpoint_after_epoch: 7")).checkpoint_size == 0);
    const Job steps = with("steps_between_checkpoints: 2, type: all_ranks");
    CHECK(training_of(steps).checkpoint_steps == 2);
    CHECK(training_of(steps).checkpoint_mode == TrainingJob::Checkpoint::sharded);
    CHECK(training_of(steps).checkpoint_size == 4000);
    // Megatron: per rank the model's state and three times the groups, and the layers once.
    const Job groups = with("type: all_ranks",
                            "{model_size: 10, optimization_groups: [100, 20], num_layers: 5, "
                            "layer_parameters: [7, 3]}");
    CHECK(training_of(groups).checkpoint_size == 4 * (10 + 360) + 50);
    CHECK(says(job_of("workflow: {checkpoint: True}\n"), "default of 10240 bytes"));
}

TEST_CASE("checkpoints alone have the size that MLPerf Storage documents") {
    const Job job = job_of(
        "model:\n"
        "  name: llama_8b\n"
        "  type: transformer\n"
        "  num_layers: 32\n"
        "  parallelism: {zero_stage: 3}\n"
        "  transformer: {vocab_size: 128256, hidden_size: 4096, ffn_hidden_size: 14336, num_attention_heads: 32, "
        "num_kv_heads: 8}\n"
        "workflow: {train: False, checkpoint: True}\n"
        "checkpoint: {checkpoint_folder: /c, num_checkpoints_write: 2, num_checkpoints_read: 1, fsync: True, "
        "time_between_checkpoints: 5}\n",
        8);
    REQUIRE(job.sections.size() == 3);
    CHECK(job.sections[0].name == "llama_8b-save-1");
    CHECK(job.sections[2].name == "llama_8b-load-1");
    CHECK(job.sections[0].directory == "/c");
    CHECK(job.sections[1].stonewall);
    const auto& save = std::get<IoJob>(job.sections[0].what);
    CHECK(save.writes);
    CHECK(save.end_fsync);
    CHECK(save.jobs == 8);
    CHECK(save.size * 8 / (int64_t{1} << 30) == 104);  // 15 GiB of weights and 90 GiB of the optimizer
    CHECK(std::get<IoJob>(job.sections[2].what).reads);
    CHECK(says(job, "checkpoint.time_between_checkpoints"));
}

TEST_CASE("what Hydra has written down, and values that are not there") {
    CHECK(training_of(job_of("workload:\n  dataset: {num_files_train: 5}\nhydra: {run: {dir: x}}\n")).samples == 5);
    CHECK(training_of(job_of("dataset:\n  num_files_train:\nreader: ~\ndata_reader: {batch_size: 2}\n")).batch == 2);
}

TEST_CASE("keys and values that are wrong are named with their line") {
    CHECK(fails("reader:\n  batch_sizes: 4\n", "w.yaml:2: 'reader.batch_sizes' is no known key of DLIO"));
    CHECK(fails("reader:\n  batch_sizes: 4\n", "did you mean reader.batch_size"));
    CHECK(fails("train: {batch_size: 4}\n", "did you mean reader.batch_size"));
    CHECK(fails("reeder:\n  batch_size: 4\n", "did you mean reader"));
    CHECK(fails("zebra: 1\n", "'zebra' is no known key"));
    CHECK(fails("dataset:\n  format: npz\n  num_files_train: many\n", "w.yaml:3: dataset.num_files_train cannot be"));
    CHECK(fails("dataset: {record_length: 5, record_length_bytes: 6}\n", "a second dataset.record_length_bytes"));
    CHECK(fails("dataset: {format: npz, format: npz}\n", "a second dataset.format"));
    CHECK(fails("dataset: {format: synthetic}\n", "reads no files"));
    CHECK(fails("dataset: {format: root}\n", "one of: npz"));
    CHECK(fails("dataset: 3\n", "dataset has no keys"));
    CHECK(fails("dataset: {data_folder: 's3://bucket/x'}\n", "objects are not made into a log"));
    CHECK(fails("dataset: {data_folder: 'a b'}\n", "a path without blanks"));
    CHECK(fails("storage: {storage_type: s3}\n", "objects are not made into a log"));
    CHECK(fails("reader: {batch_size: 9}\n", "an epoch has no step"));
    CHECK(fails("reader: {odirect: True}\n", "odirect with format tfrecord"));
    CHECK(fails("workflow: {train: False}\n", "nothing is trained"));
    CHECK(fails("workflow: {train: maybe}\n", "True or False"));
    CHECK(fails("train:\n  epochs: 3\n   seed: 4\n", "w.yaml:3: is not YAML"));
    CHECK(fails("- a\n", "is no DLIO workload"));
    CHECK(fails("", "is no DLIO workload"));
    CHECK(fails("train: {epochs: 1}\n---\ntrain: {epochs: 2}\n", "w.yaml:2: a second YAML document"));
    CHECK(training_of(job_of("# DLIO\n---\ntrain: {epochs: 2}\n")).epochs == 2);
    CHECK(fails("train: *nobody\n", "is not YAML"));
}

TEST_CASE("hostile files are refused, not followed") {
    CHECK(fails("train: " + std::string(100'000, '[') + "\n", "w.yaml"));
    CHECK(fails(", batch_size: 1", "w.yaml:1"));  // yaml-cpp's LoadAll() never ends here
    CHECK(fails(std::string((1 << 20) + 1, '#'), "at most 1 MiB"));
    std::string bomb = "output:\n  a0: &a0 [x, x]\n";
    for (int i = 1; i < 40; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        bomb += "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
    }
    CHECK(training_of(job_of(bomb)).samples == 8);
    CHECK(fails("dataset: {format: parquet, parquet: {columns: &c [*c]}}\n", "w.yaml"));
}

TEST_CASE("files are found by their name") {
    CHECK(is_yaml_name("a/b.yaml"));
    CHECK(is_yaml_name("b.yml"));
    CHECK_FALSE(is_yaml_name("b.ini"));
    CHECK_THROWS_WITH_AS(read_dlio("/no/such.yaml", 1), doctest::Contains("cannot be read"), Error);
    CHECK_THROWS_AS(read_dlio("/", 1), Error);
}
