#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_recorded.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--quick] [--zram] [--json FILE] [JOB...]

How much longer jobs take when they are recorded. Each round runs every job by itself and recorded, in random order, with
memory backed and the data as warm or cold as the job wants it before each run. Per job: the median over the rounds of
recorded / alone, of the whole process (from its exec to its exit) and of its inner loop where it times one itself, with
the 95 % bounds of that median by order statistics, which assume nothing of how the times are distributed. A bar that lies
between the bounds is neither met nor missed: unresolved. Beside it the processor time of the job, the recorder's own, the
share of the machine that it took, and what the recording took before and after the job.

Needs root, /usr/bin/python3 with torch and PIL, rsync, ninja, cmake and a C++ compiler; what a job lacks is named. Data
lies on ext4 on a loop device in DIR or, with --zram, on one in memory: nothing then hides what a recording costs. Exit code 77: this machine cannot record."""
import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent / "accuracy"))
import jobs as accuracy_jobs  # noqa: E402
import measure  # noqa: E402
import storage  # noqa: E402

PYTHON = accuracy_jobs.PYTHON
BACKED_MIB = 768  # as the accuracy harness
ROOM = "reprise_formats_raw"  # two sources


class Job:
    """`words`: {data}, {out} and {bin} are filled in. `bar`: how much longer a recorded run may take."""

    def __init__(self, name, words, bar, cold=False, inner=False, needs=(), clean=None):
        self.name, self.words, self.bar, self.cold, self.inner, self.needs, self.clean = name, words, bar, cold, inner, needs, clean


def all_jobs(quick):
    train = accuracy_jobs.TRAIN
    return [
        Job("resnet", (PYTHON, train / "train_resnet.py", "{data}/images", "--out", "{out}"), 0.01, inner=True, needs=("torch",)),
        Job("bert", (PYTHON, train / "train_bert.py", "{data}/tokens.bin", "--out", "{out}", "--steps", 30 if quick else 60), 0.01, inner=True,
            needs=("torch",)),
        Job("shm-loader", ("{bin}/shm_loader", "{data}/blocks", 16 if quick else 64), 0.01, cold=True, inner=True),
        Job("pool-reader", ("{bin}/pool_reader", "{data}/blocks", 4, 4 if quick else 10), 0.01, inner=True),
        Job("rsync", ("rsync", "-a", "{data}/tree/", "{out}/copy"), 0.02, needs=("rsync",)),
        Job("ninja", ("env", "CCACHE_DISABLE=1", "ninja", "-C", "{build}", "-j2", ROOM), 0.02, needs=("ninja", "cmake"),
            clean=("ninja", "-C", "{build}", "-t", "clean", ROOM)),
        Job("find-cat", ("sh", "-c", "find {data}/tree -type f -print0 | xargs -0 cat > /dev/null"), 0.02, cold=True),
    ]


def median_bounds(values):
    """(lower, median, upper): 95 % bounds of the median by order statistics; infinite where there are too few values."""
    ordered = sorted(values)
    n = len(ordered)
    # P(fewer than k values lie below the median) for a fair coin.
    below = 0.0
    rank = 0
    for k in range(n // 2 + 1):
        below += math.comb(n, k) / 2**n
        if below > 0.025:
            break
        rank = k + 1
    if rank == 0:
        return -math.inf, statistics.median(ordered), math.inf
    return ordered[rank - 1], statistics.median(ordered), ordered[n - rank]


def verdict(bounds, bar):
    low, _, high = bounds
    return "met" if high <= bar else "MISSED" if low > bar else "unresolved"


def missing(job):
    for need in job.needs:
        if need == "torch":
            if subprocess.run([PYTHON, "-c", "import torch, PIL"], stderr=subprocess.DEVNULL).returncode != 0:
                return "python3-torch or python3-pil"
        elif shutil.which(need) is None:
            return need
    return None


def make_data(folder, wanted, quick):
    images = {"resnet": "images", "bert": "tokens.bin"}
    accuracy_jobs.make_data(folder, {images[name] for name in wanted if name in images}, True)
    source = random.Random(20260101)
    if {"shm-loader", "pool-reader"} & wanted:
        (folder / "blocks").mkdir()
        for i in range(64 if quick else 256):
            (folder / "blocks" / f"{i:03}").write_bytes(source.randbytes(4 << 20))
    if {"rsync", "find-cat"} & wanted:
        for i in range(4000 if quick else 20_000):
            place = folder / "tree" / f"{i % 20}" / f"{i % 37}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i:05}").write_bytes(source.randbytes(int(1000 * 16 ** source.random())))


def build(work):
    for program in ("shm_loader", "pool_reader"):
        subprocess.run(["c++", "-std=c++20", "-O2", "-Wall", "-pthread", "-o", work / program, HERE / "jobs" / f"{program}.cpp", "-lrt"], check=True)
    subprocess.run(["cc", "-O2", "-Wall", "-o", work / "timed", HERE / "jobs" / "timed.c"], check=True)


class Bench:
    def __init__(self, reprise, work, place, build_folder):
        self.reprise, self.work, self.place, self.build_folder = str(reprise), work, place, build_folder

    def fill(self, words):
        data = self.place.path
        return [str(word).format(data=data, out=data / "out", bin=self.work, build=self.build_folder) for word in words]

    def run(self, job, recorded):
        """One run: whole, inner, cpu; of a recorded one also the recorder's cpu, what it took around the job, its records."""
        out = self.place.path / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if job.clean:
            subprocess.run(self.fill(job.clean), check=True, stdout=subprocess.DEVNULL)
        measure.back_memory(BACKED_MIB)
        if job.cold:
            self.place.rehearse(self.place.path / ("tree" if job.name == "find-cat" else "blocks"))
            self.place.cool()
        times = self.work / "times"
        times.unlink(missing_ok=True)
        words = [str(self.work / "timed"), str(times), *self.fill(job.words)]
        result = self.work / "capture.json"
        if recorded:
            words = [self.reprise, "capture", "-q", "-f", f"--json={result}", "-o", str(self.work / "job.oplog"), "--", *words]
        text, whole = measure.timed(words)
        wall, cpu = map(float, times.read_text().split())
        found = {"whole": wall, "cpu": cpu}
        if job.inner:
            match = re.search(r"^span ([\d.]+)|steps in ([\d.]+) s", text, re.M)
            found["inner"] = float(match[1] or match[2])
        if recorded:
            said = json.loads(result.read_text())
            found.update(recorder_cpu=said["recorder_cpu_ns"] * 1e-9, around=whole - wall, records=said["records"], lost=said["lost"],
                         ops=said["ops"], said=said)
        return found


def summary(job, runs):
    """A row of the table from the rounds of a job."""
    row = {"job": job.name, "bar": job.bar, "rounds": len(runs)}
    for span in ("whole", "inner", "cpu"):
        if span in runs[0][0]:
            bounds = median_bounds([recorded[span] / alone[span] - 1 for alone, recorded in runs])
            row[span] = {"low": bounds[0], "median": bounds[1], "high": bounds[2],
                         "alone_s": statistics.median(alone[span] for alone, _ in runs)}
            if span != "cpu":
                row[span]["verdict"] = verdict(bounds, job.bar)
    middle = {key: statistics.median(recorded[key] for _, recorded in runs) for key in ("recorder_cpu", "around", "records", "lost", "ops", "whole")}
    row.update(recorder_cpu_s=middle["recorder_cpu"], around_s=middle["around"], records=middle["records"], lost=middle["lost"],
               machine_share=middle["recorder_cpu"] / middle["whole"] / os.cpu_count())
    return row


def show(rows):
    def part(row, span):
        if span not in row:
            return f"{'-':>34}"
        x = row[span]
        tail = f" {x['verdict']}" if "verdict" in x else ""
        return f"{100 * x['median']:+6.2f} % [{100 * x['low']:+6.2f}, {100 * x['high']:+6.2f}]{tail:11}"

    print(f"{'job':12} {'bar':>4} {'whole process':>34} {'inner loop':>34} {'processor time':>25} {'alone':>7} recorder: CPU, of machine, around, records")
    for row in rows:
        print(f"{row['job']:12} {100 * row['bar']:3.0f}% {part(row, 'whole'):>34} {part(row, 'inner'):>34} {part(row, 'cpu').rstrip():>25} "
              f"{row['whole']['alone_s']:6.2f}s {row['recorder_cpu_s']:.3f} s, {100 * row['machine_share']:.2f} %, {row['around_s']:.2f} s, "
              f"{row['records']:.0f}{', LOST ' + str(row['lost']) if row['lost'] else ''}", flush=True)


def main(options, folder):
    wanted = [job for job in all_jobs(options.quick) if not options.jobs or job.name in options.jobs]
    for job in list(wanted):
        if lacks := missing(job):
            print(f"{job.name}: left out, {lacks} is not installed")
            wanted.remove(job)
    work = folder / "work"
    work.mkdir()
    build(work)
    build_folder = folder / "build"
    if any(job.name == "ninja" for job in wanted):
        subprocess.run(["cmake", "-S", TOP, "-B", build_folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0",
                        "-DREPRISE_TESTS=OFF", "-DREPRISE_BENCH=OFF"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rounds = {job.name: [] for job in wanted}
    order = random.Random()
    with storage.Storage("recorded", "ext4", folder=folder, memory=options.zram, size_mib=4096) as place:
        made = folder / "data"
        make_data(made, {job.name for job in wanted}, options.quick)
        for entry in made.iterdir():
            shutil.move(entry, place.path / entry.name)
        bench = Bench(options.bin / "reprise", work, place, build_folder)
        for job in wanted:
            bench.run(job, False)  # programs and data into memory
        for number in range(options.rounds):
            for job in order.sample(wanted, len(wanted)):
                first = order.random() < 0.5
                pair = {first: bench.run(job, first), not first: bench.run(job, not first)}
                rounds[job.name].append((pair[False], pair[True]))
            print(f"--- after round {number + 1} at {time.strftime('%H:%M:%S')}, load {os.getloadavg()[0]:.1f}", flush=True)
            rows = [summary(job, rounds[job.name]) for job in wanted]
            show(rows)
    if options.json:
        options.json.write_text(json.dumps({"machine": measure.machine(), "rows": rows}, indent=1))


def parsed():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", required=True, type=pathlib.Path)
    arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--quick", action="store_true", help="small data: a smoke test, not a measurement")
    arguments.add_argument("--zram", action="store_true")
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("jobs", nargs="*", metavar="JOB")
    return arguments.parse_args()


if __name__ == "__main__":
    options = parsed()
    options.bin = options.bin.resolve()
    if os.geteuid() != 0:
        print("SKIPPED: recording needs root")
        sys.exit(77)
    if unknown := set(options.jobs) - {job.name for job in all_jobs(False)}:
        sys.exit(f"no such job: {', '.join(sorted(unknown))}")
    check = json.loads(subprocess.run([options.bin / "reprise", "capture", "--check", "--json"], capture_output=True).stdout)
    if not check["can_record"]:
        print(f"SKIPPED: this machine cannot record: {check['refusal']}")
        sys.exit(77)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # devices and mounts are to be gone, also in the background
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="reprise-recorded-") as name:
        main(options, pathlib.Path(name))
