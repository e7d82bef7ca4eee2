#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: fit_beside.py --bin BUILD_FOLDER [--traces DIR] [--environment DIR] [--rounds N] [--write-docs]

`reprise fit` beside dftracer_gen_dlio_config of dftracer-utils (PyPI), on the same DFTracer trace of a DLIO run, whose truth is in the trace:
unet3d, HDF5, eight ranks. DIR (../shared/traces, $REPRISE_TRACES) has dftracer/dlio_unet3d_hdf5_8ranks; exit code 77 without it. Times are
medians of N rounds (5) in turn, from the trace to the written file. Needs python3-venv and python3-yaml."""
import argparse
import gzip
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "scripts"), str(TOP / "tests" / "bench")]
import docs_tables  # noqa: E402
from support import run  # noqa: E402

PINNED = "dftracer-utils==0.0.14"
TRACE = "dftracer/dlio_unet3d_hdf5_8ranks"
# As DLIO wrote the trace; the names that the tool knows are those of a later DFTracer.
NAMES = {"fetch_block": ("ai_framework", "TorchFramework.compute"), "fetch_iter": ("data_loader", "loop.iter"),
         "preprocess": ("reader", "FormatReader.preprocess"), "item": ("data_loader", "TorchDataset.__getitem__")}
# What the trace shows of the run, by reprise's words.
TRUE = {"format": "hdf5", "samples": "160", "sample_size": "146579449", "samples_per_file": "1", "batch": "4", "loader_workers": "0", "epochs": "5",
        "gpus": "8", "ranks": "8", "checkpoint_every": "25"}

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--traces", type=pathlib.Path, default=pathlib.Path(os.environ.get("REPRISE_TRACES", TOP.parent / "shared/traces")))
arguments.add_argument("--environment", type=pathlib.Path)
arguments.add_argument("--rounds", type=int, default=5)
arguments.add_argument("--write-docs", action="store_true")


def tool_in(folder):
    tool = folder / "bin" / "dftracer_gen_dlio_config"
    if not tool.exists():
        run("/usr/bin/python3", "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", "-q", "--no-deps", PINNED)
    return tool


def true_compute(files):
    """Mean seconds of a step's computing."""
    spans = [json.loads(line.rstrip().rstrip(","))["dur"] for file in files for line in gzip.open(file, "rt")
             if '"TorchFramework.compute"' in line]
    return statistics.mean(spans) / 1e6


def timed(times, *words):
    begin = time.monotonic()
    for each in words:
        run(*each)
    times.append(time.monotonic() - begin)


def seconds(value):
    """The middle of a value as reprise prints it."""
    number, unit = re.search(r"([\d.]+)(ms|us|s)", value).groups()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def middle(time_of):
    """The median of a distribution as DLIO's YAML has it; that of normal and constant ones is their mean."""
    return math.exp(time_of["mean"]) if time_of.get("type") == "lognormal" else time_of["mean"]


def measure(options, folder, trace):
    reprise, tool = (options.bin / "reprise").resolve(), tool_in(options.environment or folder / "environment")
    log, job, config, names = folder / "job.oplog", folder / "job.ini", folder / "dlio.yaml", folder / "names.yaml"
    names.write_text(yaml.dump({part: {"cat": cat, "name": name} for part, (cat, name) in NAMES.items()}), encoding="ascii")
    ours, theirs, as_is = [], [], 0
    for each in range(options.rounds):
        copy = folder / f"trace{each}"  # the tool leaves an index beside the trace
        copy.mkdir()
        for file in trace:
            shutil.copy(file, copy)
        if each == 0:
            as_is = subprocess.run([tool, "-d", copy, "-o", folder / "as-is.yaml", "--index-dir", folder], capture_output=True).returncode
        timed(ours, (reprise, "import", "-q", "-f", *trace, "-o", log), (reprise, "fit", "-q", "-f", log, "-o", job))
        timed(theirs, (tool, "-f", "-d", copy, "-o", config, "--event-map", names))
    fitted = {word["word"]: word["value"] for word in json.loads(run(reprise, "fit", log, "--json"))["words"]}
    made = yaml.safe_load(config.read_text(encoding="ascii"))
    true, wrong = true_compute(trace), [word for word, value in TRUE.items() if fitted.get(word) != value]
    our_step, their_step = seconds(fitted["compute"]), middle(made["train"]["computation_time"])
    other = sorted(f"{part}.{word}" for part, words in made.items() for word in words)
    return ["| | in the trace | reprise fit | dftracer_gen_dlio_config |", "|---|---|---|---|",
            f"| computing of a step | {true:.4f} s | {our_step:.4f} s ({100 * (our_step / true - 1):+.2f} %) | {their_step:.4f} s ({100 * (their_step / true - 1):+.2f} %) |",
            f"| {', '.join(f'`{word}`' for word in TRUE)} | {len(TRUE)} | {len(TRUE) - len(wrong)} right"
            f"{', not ' + ', '.join(wrong) if wrong else ''} | none: it fits {' and '.join(f'`{word}`' for word in other)} |",
            f"| the trace's own event names | | yes | {'yes' if as_is == 0 else 'no: refused without `--event-map`'} |",
            f"| from the trace to the file | {sum(file.stat().st_size for file in trace) / 1024:.0f} KiB | {statistics.median(ours) * 1e3:.0f} ms | {statistics.median(theirs) * 1e3:.0f} ms |"]


def main():
    options = arguments.parse_args()
    trace = sorted((options.traces / TRACE).glob("*.pfw.gz"))
    if not trace:
        print(f"fit_beside: no trace {TRACE} in {options.traces}; set REPRISE_TRACES", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        table = measure(options, pathlib.Path(folder), trace)
    print("\n".join(table))
    if options.write_docs:
        docs_tables.keep_table("beside", table, "tests/bench/dlio/fit_beside.py")


if __name__ == "__main__":
    main()
