#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: truth.py [--case NAME...] [--rounds N] [--mb-per-s N] [--dir DIR] [--reprise FILE] [--json FILE] [--write-docs]

Scaled logs beside the real thing. Each job of job.py is recorded on a small data set without a limit. Then the job on a data set
K times as large and the replay of the recording with --scale K run in turn, cold, on a device with a limit: the time from the begin of
the first epoch to the end of the job is compared (medians). The scaled log is also compared with a recording of the job on the large set: ops by kind, files, bytes, order
(compare.py), and that with another one of the same job, with the samples in another order. Needs root, BPF, control groups of version 1 with blkio, PyTorch, h5py and lmdb; half an hour.
"""

import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path[:0] = [str(HERE), str(TOP / "tests/bench"), str(TOP / "tests/bench/accuracy")]
import compare  # noqa: E402
import storage  # noqa: E402
import support  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which has PyTorch
SAMPLES = 640
# name: layout, further words of the job, further words of capture, scales, goal in percent of the epochs' time
CASES = {
    "files, 2 loaders": ("files", ["--workers", "2"], [], (2, 4), 5),
    "files": ("files", [], [], (2, 4), 5),
    "mapped tokens, 2 loaders": ("tokens", ["--workers", "2"], [], (2, 4), 5),
    "mapped tokens": ("tokens", [], ["--with", "mapped-uses"], (2, 4), 5),
    "records of one file": ("records", [], [], (2, 4), 5),
    "tar shards, shuffle buffer": ("shards", [], [], (3,), 8),
    "HDF5": ("hdf5", [], [], (3,), 8),
    "LMDB": ("lmdb", [], ["--with", "mapped-uses"], (3,), 8),
}


class Bench:
    def __init__(self, reprise, work, disk):
        self.reprise, self.work, self.disk = reprise, work, disk

    def job(self, case, data, seed=0):
        layout, words = CASES[case][:2]
        return [PYTHON, HERE / "job.py", "run", layout, data, "--out", self.disk.path / "out", "--seed", seed, *words]

    def cold(self, limit, words, allowed=(0,)):
        """What it printed."""
        shutil.rmtree(self.disk.path / "out", ignore_errors=True)
        self.disk.cool()
        self.disk.limit.set(limit)
        self.begun = time.monotonic()
        try:
            done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        finally:
            self.ended = time.monotonic()
            self.disk.limit.set(False)
        if done.returncode not in allowed:
            sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def data(self, case, scale):
        where = self.disk.path / f"set{scale}"
        storage.command(PYTHON, HERE / "job.py", "make", CASES[case][0], where, SAMPLES * scale)
        return where

    def record(self, case, data, name, seed=0):
        log = self.work / f"{name}.oplog"
        self.cold(False, [self.reprise, "capture", "-q", "-f", *CASES[case][2], "-o", log, "--", *self.job(case, data, seed)])
        return log

    def replayed(self, log, root):
        result = self.work / "run.json"
        self.cold(True, [self.reprise, "replay", "-q", "-f", log, "--root", root, "--cache", "as-is", f"--json={result}"], allowed=(0, 1))
        found = json.loads(result.read_text(encoding="utf-8"))
        if found["ended"] != "complete" or not found["same_job"]:
            sys.exit(f"{log}: the replay is not the job: {found['ended']}, {found.get('not_same_job')}")
        subprocess.run([self.reprise, "prepare", "-q", "--reset", log, "--root", root], check=True)
        epochs = found.get("by_epoch")
        return sum(epoch["elapsed_ns"] for epoch in epochs) * 1e-9 if epochs else None, found["elapsed_s"]

    def rows(self, case, scale, rounds):
        """One row: the times of the epochs, and how far the scaled log is off a recorded one."""
        small, data = self.data(case, 1), self.data(case, scale)
        log = self.record(case, small, "small")
        scaled, root = self.work / "scaled.oplog", self.disk.path / "root"
        storage.command(self.reprise, "scale", "-q", "-f", log, "--scale", scale, "-o", scaled, check=False)  # 1: an epoch misses what was asked
        large = [self.record(case, data, f"large{seed}", seed) for seed in (1, 2)]
        worst = self.differences(scaled, *large)
        storage.command(self.reprise, "prepare", "-q", scaled, "--root", root)
        real, replayed = [], []
        for number in range(rounds):
            text = self.cold(True, self.job(case, data))
            real.append((self.ended - float(re.search(r"^epochs begin at ([\d.]+)", text, re.M)[1]), self.ended - self.begun))
            replayed.append(self.replayed(scaled, root))
            print(f"{case} x {scale}, round {number + 1}: epochs, all: real {real[-1]}, replayed {replayed[-1]} s", file=sys.stderr, flush=True)
        # A scaled log whose epochs cannot be told apart is compared from begin to end.
        which = 0 if all(one[0] is not None for one in replayed) else 1
        real, replayed = [one[which] for one in real], [one[which] for one in replayed]
        for folder in (small, data, root):
            shutil.rmtree(folder)
        there, here = (statistics.median(side) for side in (real, replayed))
        return {"case": case, "scale": scale, "rounds": rounds, "real": there, "real_range": [min(real), max(real)], "replayed": here,
                "error": 100 * (here / there - 1), "goal": CASES[case][4], "worst": worst}

    def differences(self, scaled, large, again):
        """Of each group the figure that is furthest off, (percent, name, how far apart two recordings of the job itself are)."""
        mine, real, other = (compare.figures(self.reprise, log, "dataset") for log in (scaled, large, again))
        groups = {"ops": [], "files, bytes": [], "order": []}
        for name, b in real.items():
            if name == "ops compute":  # not the job's: a gap between its calls, noted where it is long enough
                continue
            off, own = (compare.off(name, figures.get(name, 0), b) for figures in (mine, other))
            key = "ops" if name.startswith("ops ") else "files, bytes" if name in ("files read", "bytes read", "reads") else "order"
            groups[key].append((off, name, own))
        return {key: max(found, key=lambda one: abs(one[0]) - abs(one[2])) for key, found in groups.items()}


def table(rows):
    lines = ["| job, times the recorded data | epochs, the job there | range | replay of the small recording | error | goal | ops by kind off, at most | files, bytes | order |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        low, high = row["real_range"]
        off = [f"{off:+.1f} % ({name}; {own:+.1f} %)" if abs(off) >= 0.05 else "0" for off, name, own in
               (row["worst"][key] for key in ("ops", "files, bytes", "order"))]
        missed = "" if abs(row["error"]) <= row["goal"] else " **missed**"
        lines.append(f"| {row['case']}, x {row['scale']} | {row['real']:.2f} s | {low:.2f} to {high:.2f} | {row['replayed']:.2f} s | {row['error']:+.1f} % | "
                     f"{row['goal']} %{missed} | {' | '.join(off)} |")
    return lines


def main():
    parser = support.table_parser(__doc__)
    parser.add_argument("--case", choices=CASES, action="append", help="may be repeated; all if none is given")
    parser.add_argument("--mb-per-s", type=float, default=10.0, help="the limit of the device")
    arguments = parser.parse_args()
    storage.own_mounts()
    rows = []
    with storage.working_folder(arguments.dir) as work:
        with storage.Storage("scaling", storage.Kind("ext4", mb_per_s=arguments.mb_per_s), work) as disk:
            bench = Bench(arguments.reprise.resolve(), work, disk)
            for case in arguments.case or CASES:
                for scale in CASES[case][3]:
                    rows.append(bench.rows(case, scale, arguments.rounds))
    support.publish(arguments, "scaled", rows, table(rows), "tests/bench/scaling/truth.py", add=bool(arguments.case))
    return 0 if all(abs(row["error"]) <= row["goal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
