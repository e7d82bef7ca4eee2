# SPDX-License-Identifier: MIT
"""Owns where DLIO runs: a virtual environment below `folder`, on Debian's Python with its PyTorch, mpi4py and h5py (python3-torch,
python3-mpi4py, python3-h5py, python3-pandas, python3-psutil, python3-pil, python3-yaml, python3-venv), as PyPI has no PyTorch without CUDA."""

import pathlib
import subprocess

PINNED = ("dlio-benchmark==2.0.0", "pydftracer==1.0.2", "hydra-core==1.3.2", "omegaconf==2.3.0", "antlr4-python3-runtime==4.9.3", "packaging==24.1",
          "tensorflow-cpu==2.15.1", "absl-py==2.1.0", "astunparse==1.6.3", "flatbuffers==24.3.25", "gast==0.6.0", "google-pasta==0.2.0",
          "grpcio==1.66.1", "keras==2.15.0", "libclang==18.1.1", "ml-dtypes==0.3.2", "opt-einsum==3.3.0", "protobuf==4.25.4", "six==1.16.0",
          "tensorflow-estimator==2.15.0", "tensorflow-io-gcs-filesystem==0.37.1", "termcolor==2.4.0", "typing-extensions==4.12.2",
          "wrapt==1.14.1", "setuptools==74.1.2", "requests==2.32.3", "urllib3==2.2.3", "idna==3.10", "certifi==2024.8.30",
          "charset-normalizer==3.3.2")


def make(folder):
    """The environment's Python; made where it is not there yet. Raises RuntimeError."""
    python = pathlib.Path(folder) / "bin" / "python"
    stamp = pathlib.Path(folder) / "pinned.txt"
    if stamp.exists() and stamp.read_text(encoding="ascii") == "\n".join(PINNED):
        return python
    for words in (["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", str(folder)],
                  [str(python), "-m", "pip", "install", "-q", "--no-deps", *PINNED],
                  [str(python), "-c", "import torch, tensorflow, mpi4py, h5py, pandas, dlio_benchmark.main"]):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"no environment for DLIO: {' '.join(words[:4])} ...: {done.stdout.strip()[-500:]}")
    # A tool of NVIDIA's loader, which none of the workloads uses; DLIO calls it after each TFRecord file that it makes.
    tool = pathlib.Path(folder) / "bin" / "tfrecord2idx"
    tool.write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
    tool.chmod(0o755)
    stamp.write_text("\n".join(PINNED), encoding="ascii")
    return python
