#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_generate.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--ops N] [--lock FILE]

How fast `reprise generate` writes: random reads, each a new offset (default 100 million of four jobs), and its memory. Then MLPerf's AU
(the first step left out) and the step's time of generated jobs whose data is in memory: unet3d and resnet50 with the steps of an H100 and an
A100, on the POSIX engine; dlrm with 375 us steps and four accelerators, on the null engine. The data sets are shrunk so that they fit
into memory; steps take as long as in the job."""
import argparse
import json
import pathlib
import resource
import statistics
import tempfile
import time

from support import alone, run

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
arguments.add_argument("--rounds", type=int, default=3)
arguments.add_argument("--ops", type=int, default=100_000_000)
arguments.add_argument("--lock", type=pathlib.Path, help="hold a lock on it (flock) during each round")
options = arguments.parse_args()
reprise = str((options.bin / "reprise").resolve())
JOBS = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "jobs"


def rate(folder):
    job = folder / "reads.ini"
    job.write_text(f"[reads]\nrw=randread\nbs=4k\nnumjobs=4\nsize={options.ops // 4 * 4096}\n", encoding="ascii")
    log = folder / "reads.oplog"
    rates = []
    for _ in range(options.rounds):
        with alone(options.lock):
            begin = time.monotonic()
            made = json.loads(run(reprise, "generate", job, "-o", log, "-f", "--json"))
            rates.append(made["ops"] / (time.monotonic() - begin))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"generate: {made['ops']} ops, {statistics.median(rates) / 1e6:.2f} M ops/s (median of {options.rounds}), {peak:.0f} MiB of memory, "
          f"{log.stat().st_size / made['ops']:.2f} bytes per op", flush=True)
    log.unlink()


def utilisation(folder, name, text, engine, *more):
    job, log, root = folder / f"{name}.ini", folder / f"{name}.oplog", folder / name
    job.write_text(text, encoding="ascii")
    run(reprise, "generate", job, "-q", *more, "-o", log)
    where = ("--engine", "null")
    if engine == "posix":
        run(reprise, "prepare", "-q", log, "--root", root)
        where = ("--root", root, "--cache", "warm")
    found = []
    for _ in range(options.rounds):
        with alone(options.lock):
            run_log = folder / "run.oplog"
            result = json.loads(run(reprise, "replay", "-q", log, *where, "--json", "-f", "-o", run_log, allowed=(0, 1)))
            devices = json.loads(run(reprise, "info", run_log, "--json"))["summary"]["devices"]
            found.append((result["au_mlperf"], statistics.median(each["steps"]["p50_ns"] for each in devices)))
    au, step = (statistics.median(each[i] for each in found) for i in (0, 1))
    print(f"au {name}: {100 * au:.2f} %, step {step / 1e6:.4f} ms (median of {options.rounds})", flush=True)
    run("rm", "-rf", root)


def shrunk(name, samples, size):
    words = {"samples": samples, "sample_size": size}
    lines = [line for line in (JOBS / f"{name}.ini").read_text(encoding="utf-8").split("\n") if line.split("=")[0] not in words]
    return "\n".join(lines + [f"{word}={value}" for word, value in words.items()]) + "\n"


with tempfile.TemporaryDirectory(dir=options.dir) as place:
    folder = pathlib.Path(place)
    rate(folder)
    for accelerator in ("H100", "A100"):
        utilisation(folder, f"unet3d-{accelerator}", shrunk("unet3d", 42, "normal(20MiB,9MiB)"), "posix", "--accelerator", accelerator)
    for accelerator in ("H100", "A100"):
        utilisation(folder, f"resnet50-{accelerator}", shrunk("resnet50", 12000, 114660), "posix", "--accelerator", accelerator)
    utilisation(folder, "dlrm", "[dlrm]\nformat=parquet\nsamples=268435456\nsamples_per_file=4718592\nsample_size=761\nrow_group=65536\ncolumns=40\n"
                "batch=16384\nloader_workers=2\nprefetch=4\ngpus=4\ncompute=375us\n", "null")
