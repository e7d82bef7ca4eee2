#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_requests.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--requests N] [--depth N] [--lock FILE]

Asynchronous requests as fast as they go: cached 4 KiB reads by io_uring, depth 32, one thread. In turn a bare loop on liburing
(requests/ring_loop.c), fio with the same options, and replays of the recordings of both with --pace afap; each submitting one
request at a time and sixteen. Then the null engine over the same recordings, and what recording costs the bare loop per request,
in turn with unrecorded runs, and what it loses. Needs root, liburing-dev and fio. Exit code 77: not here."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from support import alone, run

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
arguments.add_argument("--rounds", type=int, default=7)
arguments.add_argument("--requests", type=int, default=1_000_000)
arguments.add_argument("--depth", type=int, default=32)
arguments.add_argument("--lock", type=pathlib.Path, help="hold a lock on it (flock) during each round")
options = arguments.parse_args()
reprise = str((options.bin / "reprise").resolve())
HERE = pathlib.Path(__file__).resolve().parent
BATCHES, SIZE_MIB = (1, 16), 64


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def median(values):
    return statistics.median(values)


class Bench:
    def __init__(self, folder):
        self.folder, self.data, self.loop = folder, folder / "data", folder / "ring_loop"
        run("cc", "-O2", "-o", self.loop, HERE / "requests/ring_loop.c", "-luring")
        with open(self.data, "wb") as file:
            for _ in range(SIZE_MIB):
                file.write(os.urandom(1 << 20))
        self.logs, self.roots = {}, {}

    def file(self, name):
        """What a replay of that recording reads, or without one the data that are recorded. Where a file's pages lie in memory decides a
        tenth of the time: all sides read the same one."""
        return pathlib.Path(f"{self.roots[name]}{self.data}") if name in self.roots else self.data

    def loop_words(self, batch):
        return [self.loop, self.file(f"loop-{batch}"), options.depth, options.requests, batch]

    def fio_words(self, batch):
        return ["fio", "--name=j", "--thread", f"--filename={self.file(f'fio-{batch}')}", "--ioengine=io_uring", "--rw=randread", "--bs=4k",
                f"--iodepth={options.depth}", f"--iodepth_batch={batch}", "--invalidate=0", "--norandommap", f"--number_ios={options.requests}",
                "--io_size=1t", "--gtod_reduce=1", "--output-format=json", "--eta=never"]

    def run_loop(self, batch):
        """Requests per second."""
        return 1e9 / float(run(*self.loop_words(batch)).split()[1])

    def run_fio(self, batch):
        found = json.loads(run(*self.fio_words(batch)))["jobs"][0]["read"]
        return found["total_ios"] / found["runtime"] * 1e3

    def record(self, name, words):
        log, root = self.folder / f"{name}.oplog", self.folder / f"{name}.root"
        run(reprise, "capture", "-q", "-f", "-o", log, "--", *words)
        run(reprise, "prepare", "-q", log, "--root", root)
        for path in root.rglob("*"):  # into the cache
            if path.is_file():
                path.read_bytes()
        self.logs[name], self.roots[name] = log, root

    def replay(self, name):
        found = json.loads(run(reprise, "replay", "-q", self.logs[name], "--root", self.roots[name], "--pace", "afap", "--cache", "as-is", "--json",
                               allowed=(0, 1)))
        if found["ended"] != "complete" or found["mismatches"]:
            sys.exit(f"bench_requests.py: the replay of {name} went wrong: {found['ended']}, {found['mismatches']} mismatches")
        return options.requests / found["elapsed_s"]

    def rates(self, batch):
        for name, words in (("loop", self.loop_words(batch)), ("fio", self.fio_words(batch))):
            self.record(f"{name}-{batch}", words)
        found = {name: [] for name in ("loop", "fio", "replay of loop", "replay of fio")}
        for _ in range(options.rounds):
            with alone(options.lock):
                found["loop"].append(self.run_loop(batch))
                found["replay of loop"].append(self.replay(f"loop-{batch}"))
                found["fio"].append(self.run_fio(batch))
                found["replay of fio"].append(self.replay(f"fio-{batch}"))
        print(f"rate, {batch} at a time: {options.requests} cached 4 KiB reads, depth {options.depth}, one thread (median of {options.rounds}, M requests/s)")
        for name in ("loop", "fio"):
            ratio = median(ours / bare for ours, bare in zip(found[f"replay of {name}"], found[name]))
            print(f"  {name}: {median(found[name]) / 1e6:.3f}, its recording replayed: {median(found[f'replay of {name}']) / 1e6:.3f}, {100 * ratio:.1f} %",
                  flush=True)

    def null(self, batch):
        log = self.logs[f"loop-{batch}"]
        rates = []
        for _ in range(options.rounds):
            with alone(options.lock):
                found = json.loads(run(reprise, "replay", "-q", log, "--engine", "null", "--pace", "afap", "--json", allowed=(0, 1)))
            rates.append(options.requests / (found["harness_ns_per_op"] * found["ops"]) * 1e9)
        print(f"null, {batch} at a time: {median(rates) / 1e6:.2f} M requests/s per core, {found['ops'] / options.requests:.2f} ops a request", flush=True)

    def recording(self, batch):
        """Nanoseconds of processor time per request, and by the clock, with the recorder and without; what it lost."""
        alone_ns, recorded_ns, lost = [], [], 0
        log = self.folder / "recorded.oplog"
        for _ in range(options.rounds):
            with alone(options.lock):
                alone_ns.append([float(word) for word in run(*self.loop_words(batch)).split()])
                text = run(reprise, "capture", "--json", "-f", "-o", log, "--", *self.loop_words(batch))
            numbers = re.search(r"^([\d.]+) ([\d.]+)$", text, re.M)
            recorded_ns.append([float(numbers[1]), float(numbers[2])])
            lost += json.loads(text[text.index("{"):])["lost"]
        submitted = run("sh", "-c", 'exec "$0" dump "$1" | grep -c " uring_submit "', reprise, log).strip()
        completed = run("sh", "-c", 'exec "$0" dump "$1" | grep -c " uring_complete "', reprise, log).strip()
        cpu, wall = (median(run[i] for run in recorded_ns) - median(run[i] for run in alone_ns) for i in (0, 1))
        print(f"recording, {batch} at a time: unrecorded {median(run[0] for run in alone_ns):.0f} ns, recorded {cpu:+.0f} ns ({wall:+.0f} by the clock); "
              f"lost {lost}; of {options.requests} requests {submitted} submissions and {completed} completions", flush=True)


if os.geteuid() != 0:
    skip("recording needs root")
if not json.loads(subprocess.run([reprise, "capture", "--check", "--json"], stdout=subprocess.PIPE).stdout)["can_record"]:
    skip("this machine cannot record")
if missing := [tool for tool in ("fio", "cc") if not shutil.which(tool)]:
    skip(f"missing: {', '.join(missing)}")
with tempfile.TemporaryDirectory(dir=options.dir) as place:
    bench = Bench(pathlib.Path(place))
    for one in BATCHES:
        bench.rates(one)
    for one in BATCHES:
        bench.null(one)
    for one in BATCHES:
        bench.recording(one)
