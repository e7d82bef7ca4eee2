#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Published MLPerf Storage v1.0 results beside `reprise predict --gpus`: one number is fitted on one point of a storage
system (what a host gets from it), the other points are predicted.

    tests/bench/cluster/mlperf.py v1.0_summaries.csv [--reprise build/release/reprise] [--write-docs] [--only DDN]

The CSV has a line for each run: path, submitter, workload, accel, num_accelerators, num_hosts, au_mean, throughput_samples_s.
It is made from https://github.com/mlcommons/storage_results_v1.0 (Apache-2.0)."""
import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
PAGE = SOURCE / "docs/scale.md"
BEGIN, END = "<!-- mlperf: begin (tests/bench/cluster/mlperf.py --write-docs) -->", "<!-- mlperf: end -->"
STEPS = {"unet3d": 100, "resnet50": 150, "cosmoflow": 400}
BATCH = {"unet3d": 7, "resnet50": 400, "cosmoflow": 1}
STEP_S = {("unet3d", "h100"): 0.323, ("unet3d", "a100"): 0.636, ("resnet50", "h100"): 0.224, ("resnet50", "a100"): 0.435,
          ("cosmoflow", "h100"): 0.0035, ("cosmoflow", "a100"): 0.00551}
SAMPLE = {"unet3d": 146600628, "resnet50": 114660, "cosmoflow": 2828486}
Point = collections.namedtuple("Point", "workload accel gpus hosts au samples_s runs")


def read_points(path):
    """Storage systems with their points; runs of a point are averaged."""
    runs = collections.defaultdict(list)
    for row in csv.DictReader(open(path, encoding="utf-8")):
        if row["accel"] in ("h100", "a100") and float(row["au_mean"]) > 0:
            workload = {"resnet": "resnet50"}.get(row["workload"], row["workload"])
            system = row["submitter"].split("/")[1] + " " + row["path"].split("/results/")[1].split("/")[0]
            runs[system, workload, row["accel"], int(row["num_accelerators"]), int(row["num_hosts"])].append(
                (float(row["au_mean"]) / 100, float(row["throughput_samples_s"])))
    systems = collections.defaultdict(list)
    for (system, *key), found in sorted(runs.items()):
        systems[system].append(Point(*key, *(statistics.mean(column) for column in zip(*found)), len(found)))
    return {name: points for name, points in systems.items() if len(points) > 1}


def demand(point):
    """Bytes per second and host where accelerators never wait."""
    per_gpu = BATCH[point.workload] * SAMPLE[point.workload] / STEP_S[point.workload, point.accel]
    return per_gpu * point.gpus / point.hosts


class Predictor:
    def __init__(self, reprise, folder):
        self.reprise, self.folder, self.logs = reprise, pathlib.Path(folder), {}

    def log(self, workload, accel):
        key = workload, accel
        if key not in self.logs:
            text = (SOURCE / f"examples/jobs/{workload}.ini").read_text(encoding="utf-8").splitlines()
            job = [line for line in text if not line.startswith(("compute", "accelerator=", "batch.", "epochs=", "samples=", "directory="))]
            samples = STEPS[workload] * BATCH[workload]
            if workload == "resnet50":
                samples = -(-samples // 1251) * 1251
            job += [f"compute={STEP_S[key] * 1e6:.0f}us", "epochs=1", f"samples={samples}", f"steps={STEPS[workload]}", ""]
            (self.folder / "job.ini").write_text("\n".join(job), encoding="utf-8")
            self.logs[key] = self.folder / f"{workload}-{accel}.oplog"
            subprocess.run([self.reprise, "generate", "-q", self.folder / "job.ini", "-o", self.logs[key]], check=True)
        return self.logs[key]

    def au(self, point, host_bytes_per_s):
        # A fast client of a parallel file system; only its limit is fitted.
        model = {"storage_model": 2, "host": "", "directory": "", "file_system": "", "device": "", "measured_unix_s": 0,
                 "open_ns": 200000, "stat_ns": 50000, "make_ns": 200000, "remove_ns": 200000, "call_ns": 300,
                 "fsync_ns": 1000000, "read": [{"bytes": 4096, "ns": 150000}, {"bytes": 1048576, "ns": 300000}],
                 "read_bytes_per_s": 1e14, "parallelism": 1000000, "write_bytes_per_s": 1e12,
                 "cached_bytes_per_s": 1e10, "read_ahead_bytes": 4194304, "request_bytes": 1048576, "cold": True,
                 "shared": {"read_bytes_per_s": 1e15, "client_read_bytes_per_s": host_bytes_per_s}}
        (self.folder / "storage.json").write_text(json.dumps(model), encoding="utf-8")
        # Hosts do alike: more than a few make no other result, so where accelerators do not divide, the fuller host counts.
        per_host = -(-point.gpus // point.hosts)
        hosts = min(point.hosts, 2)
        done = subprocess.run([self.reprise, "predict", self.log(point.workload, point.accel), "--storage",
                               self.folder / "storage.json", "--gpus", str(per_host * hosts), "--hosts", str(hosts), "--json"],
                              check=True, capture_output=True)
        return json.loads(done.stdout)["points"][0]["au_mlperf"]

    def fit(self, point):
        low, high = 0.5 * demand(point), 2 * demand(point)
        if self.au(point, high) <= point.au:
            return None  # even without the limit it is slower
        for _ in range(8):
            middle = (low + high) / 2
            low, high = (middle, high) if self.au(point, middle) < point.au else (low, middle)
        return (low + high) / 2


def samples_per_s(point, au):
    return au * point.gpus * BATCH[point.workload] / STEP_S[point.workload, point.accel]


def predict_all(systems, predictor):
    rows = []
    for system, points in systems.items():
        fitted = max(points, key=demand)
        limit = predictor.fit(fitted)
        print(f"{system}: fitted on {fitted.workload} {fitted.accel}, {fitted.gpus} on {fitted.hosts}: "
              f"{'no limit fits' if limit is None else f'{limit / 1e9:.2f} GB/s a host'}", file=sys.stderr)
        if limit is None:
            rows.append((system, fitted, None, None))
            continue
        for point in points:
            if point != fitted:
                rows.append((system, fitted, point, predictor.au(point, limit)))
    return rows


def show(rows):
    out = ["| storage system | fitted on | predicted | AU published | predicted | error, points | samples/s published | predicted | error |",
           "|---|---|---|---|---|---|---|---|---|"]
    name = lambda p: f"{p.workload} {p.accel.upper()}, {p.gpus} on {p.hosts}"
    for system, fitted, point, au in rows:
        if point is None:
            out.append(f"| {system} | {name(fitted)} | nothing: the job is slower than its reads alone | | | | | | |")
            continue
        rate = samples_per_s(point, au)
        out.append(f"| {system} | {name(fitted)} | {name(point)} | {100 * point.au:.1f} % | {100 * au:.1f} % | "
                   f"{100 * (au - point.au):+.1f} | {point.samples_s:,.0f} | {rate:,.0f} | {100 * (rate / point.samples_s - 1):+.1f} % |")
    return out


def summary(rows):
    kept = [row for row in rows if row[2] is not None]
    out = ["| points predicted | number | AU: mean error, worst (points) | if AU were that of the fitted point | samples/s: mean error, worst |",
           "|---|---|---|---|---|"]
    for title, chosen in (
            ("same workload and accelerator", [r for r in kept if r[1][:2] == r[2][:2]]),
            ("same workload, other accelerator", [r for r in kept if r[1].workload == r[2].workload and r[1].accel != r[2].accel]),
            ("another workload", [r for r in kept if r[1].workload != r[2].workload])):
        if chosen:
            au = [100 * abs(r[3] - r[2].au) for r in chosen]
            same = [100 * abs(r[1].au - r[2].au) for r in chosen]
            rate = [100 * abs(samples_per_s(r[2], r[3]) / r[2].samples_s - 1) for r in chosen]
            out.append(f"| {title} | {len(chosen)} | {statistics.mean(au):.1f}, {max(au):.1f} | {statistics.mean(same):.1f}, "
                       f"{max(same):.1f} | {statistics.mean(rate):.1f}, {max(rate):.1f} % |")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv")
    parser.add_argument("--reprise", default=str(SOURCE / "build/release/reprise"))
    parser.add_argument("--only", default="", help="storage systems whose name has this")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/scale.md")
    asked = parser.parse_args()
    systems = {name: points for name, points in read_points(asked.csv).items() if asked.only in name}
    if not systems:
        sys.exit(f"{asked.csv} has no storage system with several points" + (f" and {asked.only} in its name" if asked.only else ""))
    with tempfile.TemporaryDirectory() as folder:
        rows = predict_all(systems, Predictor(asked.reprise, folder))
    print("\n".join(summary(rows) + [""] + show(rows)))
    if asked.write_docs:
        # The page has those of the same workload; all are printed.
        text = "\n".join(summary(rows) + [""] + show([r for r in rows if r[2] and r[1].workload == r[2].workload]))
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
