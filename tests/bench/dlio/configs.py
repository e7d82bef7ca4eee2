# SPDX-License-Identifier: MIT
"""Owns the workloads: DLIO's own YAML of four models with an H100's step (bert: a V100's), scaled down in data, and how slow their storage is.

Samples are smaller by what `scaled` says; batch, threads, shuffling and the time of a step are DLIO's. Samples are of equal size
(record_length_stdev is left out): both draw their own, and a few files do not average out."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    text: str  # of the YAML file
    mb_per_s: int  # of the throttled storage: a little less than the accelerator takes
    scaled: str
    step_s: float


def _workload(name, framework, dataset, reader, train, **rest):
    parts = {"model": name, "framework": framework, "workflow": {"generate_data": False, "train": True, "checkpoint": False},
             "dataset": {"data_folder": f"data/{name}", "keep_files": True, **dataset}, "reader": reader, "train": {"epochs": 2, **train}}
    lines = []
    for key, value in parts.items():
        if isinstance(value, dict):
            lines += [f"{key}:"] + [f"  {word}: {of}" for word, of in value.items()]
        else:
            lines.append(f"{key}: {value}")
    return Workload(name, "\n".join(lines) + "\n", step_s=train["computation_time"], **rest)


STEP_S = 0.323  # of an H100, unet3d
SAMPLE = 146600628  # bytes, unet3d
FULL_SIZE = dict(format="npz", num_samples_per_file=1, record_length=SAMPLE)


def full_size(files, epochs):
    """unet3d with samples as large as they are, of `files` files."""
    return _workload("unet3d", "pytorch", {**FULL_SIZE, "num_files_train": files, "record_length_resize": 2097152},
                     {"data_loader": "pytorch", "batch_size": 7, "read_threads": 4, "file_shuffle": "seed", "sample_shuffle": "seed"},
                     {"computation_time": STEP_S, "epochs": epochs}, mb_per_s=0, scaled="")


WORKLOADS = (
    _workload("unet3d", "pytorch", {"format": "npz", "num_files_train": 168, "num_samples_per_file": 1, "record_length": 3665015},
              {"data_loader": "pytorch", "batch_size": 7, "read_threads": 4, "file_shuffle": "seed", "sample_shuffle": "seed"},
              {"computation_time": 0.323}, mb_per_s=60, scaled="samples 40 times smaller"),
    _workload("resnet50", "tensorflow", {"format": "tfrecord", "num_files_train": 32, "num_samples_per_file": 250, "record_length": 28665},
              {"data_loader": "tensorflow", "read_threads": 8, "computation_threads": 8, "batch_size": 400},
              {"computation_time": 0.224}, mb_per_s=40, scaled="samples 4 times smaller, 8,000 of 1,281,024"),
    _workload("bert", "tensorflow", {"format": "tfrecord", "num_files_train": 10, "num_samples_per_file": 2000, "record_length": 2500, "file_prefix": "part"},
              {"data_loader": "tensorflow", "read_threads": 1, "computation_threads": 1, "transfer_size": 262144, "batch_size": 48,
               "file_shuffle": "seed", "sample_shuffle": "seed"},
              {"epochs": 1, "seed_change_epoch": False, "computation_time": 0.968, "total_training_steps": 16}, mb_per_s=20,
              scaled="20,000 samples of 156,766,000, 16 steps; it asks for 124 KB/s"),
    _workload("cosmoflow", "tensorflow", {"format": "tfrecord", "num_files_train": 1024, "num_samples_per_file": 1, "record_length": 88390},
              {"data_loader": "tensorflow", "read_threads": 4, "batch_size": 1, "file_shuffle": "seed", "sample_shuffle": "seed", "shuffle_size": 2},
              {"computation_time": 0.0035}, mb_per_s=20, scaled="samples 32 times smaller, 1,024 of 524,288"),
)
