# SPDX-License-Identifier: MIT
"""Owns what the jobs need from PyPI: one virtual environment for each package, outside the measured storage, made once.

Every package is pinned and installed without its dependencies being resolved anew, so that a run in a year measures the same
programs. An environment that cannot be made has a reason; its cells are skipped and the reason is said.
"""

import os
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "build" / "bench-venv"
PYTHON = "/usr/bin/python3"
STAMP = "pinned.txt"  # in an environment that is complete: what it was made from

# By the name under which they are imported.
PINNED = {
    "pyarrow": ("pyarrow==17.0.0", "numpy==1.26.4"),
    "duckdb": ("duckdb==1.1.3",),
    "polars": ("polars==1.9.0",),
    "h5py": ("h5py==3.11.0", "numpy==1.26.4"),
    "lmdb": ("lmdb==1.5.1",),
    "caio": ("caio==0.12.10",),
    "liburing": ("liburing==2026.3.30",),
    "zarr": ("zarr==3.0.8", "numcodecs==0.14.1", "crc32c==2.7.1", "donfig==0.8.1.post1", "pyyaml==6.0.2", "typing-extensions==4.12.2",
             "packaging==24.1", "numpy==1.26.4"),
    "deepspeed": ("ninja==1.11.1.1", "hjson==3.1.0", "msgpack==1.0.8", "py-cpuinfo==9.0.0", "psutil==6.0.0", "pydantic==1.10.17", "typing-extensions==4.12.2",
                  "tqdm==4.66.4", "einops==0.8.0", "packaging==24.1", "setuptools==74.1.2", "wheel==0.44.0", "pynvml==11.5.0"),
    "tensorflow": (  # 220 MB to download, 1.2 GB installed
        "tensorflow-cpu==2.15.1", "numpy==1.26.4", "absl-py==2.1.0", "astunparse==1.6.3", "flatbuffers==24.3.25", "gast==0.6.0",
        "google-pasta==0.2.0", "grpcio==1.66.1", "h5py==3.11.0", "keras==2.15.0", "libclang==18.1.1", "ml-dtypes==0.3.2",
        "opt-einsum==3.3.0", "packaging==24.1", "protobuf==4.25.4", "setuptools==74.1.2", "six==1.16.0",
        "tensorflow-estimator==2.15.0", "tensorflow-io-gcs-filesystem==0.37.1", "termcolor==2.4.0", "typing-extensions==4.12.2",
        "wheel==0.44.0", "wrapt==1.14.1", "requests==2.32.3", "urllib3==2.2.3", "idna==3.10", "certifi==2024.8.30", "charset-normalizer==3.3.2"),
    # PyPI has no build without CUDA for this architecture: 2.4 GB to download. Nothing here compiles for an accelerator: no triton.
    "torch": (
        "torch==2.4.1", "numpy==1.26.4", "filelock==3.15.4", "fsspec==2024.6.1", "jinja2==3.1.4", "markupsafe==2.1.5", "mpmath==1.3.0",
        "networkx==3.3", "sympy==1.13.2", "typing-extensions==4.12.2", "nvidia-cublas-cu12==12.1.3.1", "nvidia-cuda-cupti-cu12==12.1.105",
        "nvidia-cuda-nvrtc-cu12==12.1.105", "nvidia-cuda-runtime-cu12==12.1.105", "nvidia-cudnn-cu12==9.1.0.70",
        "nvidia-cufft-cu12==11.0.2.54", "nvidia-curand-cu12==10.3.2.106", "nvidia-cusolver-cu12==11.4.5.107",
        "nvidia-cusparse-cu12==12.1.0.106", "nvidia-nccl-cu12==2.20.5", "nvidia-nvjitlink-cu12==12.6.68", "nvidia-nvtx-cu12==12.1.105"),
}

# Built from source against Debian's PyTorch (needs libtorch-dev, pybind11-dev, libaio-dev): what pip installs last, and a program that
# compiles what it would compile at its first use, into `extensions` of its environment. Takes minutes.
BUILT = {"deepspeed": ("deepspeed==0.14.5", """
import os, sys
os.environ |= {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": sys.prefix + "/extensions", "CPATH": "/usr/include/torch/csrc/api/include"}
os.makedirs(sys.prefix + "/extensions", exist_ok=True)
from deepspeed.ops.op_builder.async_io import AsyncIOBuilder
AsyncIOBuilder().load()
""")}
_SOURCE = {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0", "CPATH": "/usr/include/torch/csrc/api/include"}


def python(name):
    return FOLDER / name / "bin" / "python"


# What shows that a package works, where importing it does not: its machine code may be for other processors.
TRIED = {"liburing": "import liburing; liburing.io_uring_queue_init(8, liburing.Ring())"}


def _works(name):
    words = BUILT[name][1] if name in BUILT else TRIED.get(name, f"import {name}")
    done = subprocess.run([str(python(name)), "-c", words], env={**os.environ, "PATH": f"{python(name).parent}:{os.environ['PATH']}"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout.strip().rsplit("\n", 1)[-1] or f"exit code {done.returncode}"


def make(name):
    """None when the environment is there; otherwise why it cannot be made, in a line."""
    folder, wanted = FOLDER / name, "\n".join((*PINNED[name], *BUILT.get(name, ())[:1])) + "\n"
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    install = (python(name), "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir")
    steps = [(PYTHON, "-m", "venv", *(["--system-site-packages"] if name in BUILT else []), folder), (*install, "--only-binary", ":all:", *PINNED[name])]
    if name in BUILT:
        steps.append((*install, "--no-build-isolation", BUILT[name][0]))
    for words in steps:
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | _SOURCE)
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            why = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else f"exit code {done.returncode}")
            shutil.rmtree(folder, ignore_errors=True)
            return f"{name} could not be installed: {why[:200]}"
    if why := _works(name):
        shutil.rmtree(folder, ignore_errors=True)
        return f"{name} was installed but does not start: {why[:200]}"
    stamp.write_text(wanted, encoding="utf-8")
    return None


def refused(names):
    """{name: why} of those that cannot be had here. Says what it installs: the first time takes minutes."""
    found = {}
    for name in sorted(names):
        if not (FOLDER / name / STAMP).exists():
            print(f"accuracy: installing {PINNED[name][0]} into {FOLDER / name} ...", file=sys.stderr, flush=True)
        if why := make(name):
            found[name] = why
    return found
