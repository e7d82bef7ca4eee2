#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: fit_jobs.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--lock FILE] [--quick] [--keep DIR] [--write-docs] [JOB...]

A job is recorded on fast storage and fitted (`reprise fit`), the job file is generated, and its log is replayed on slow storage,
beside the real job there, which it has never seen. Prints the epoch of the real job and of the replay there, medians over the rounds;
goal: within 8 %. JOBS: those of jobs.py, by default resnet and bert, computing and with a stand-in for an accelerator. Needs what
run.sh needs. Exit code 77: not on this machine."""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile

import experiments
import jobs
import measure
import storage
from accuracy import alone

sys.path.insert(0, str(jobs.TOP / "scripts"))
import docs_tables  # noqa: E402

arguments = argparse.ArgumentParser(usage=__doc__.split("\n", 1)[0].removeprefix("usage: "))
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
arguments.add_argument("--rounds", type=int, default=3)
arguments.add_argument("--lock", type=pathlib.Path)
arguments.add_argument("--quick", action="store_true")
arguments.add_argument("--keep", type=pathlib.Path, help="keep recordings and job files there")
arguments.add_argument("--write-docs", action="store_true", help="put what was measured into docs/fit.md; other rows of its table stay")
arguments.add_argument("--place", action="append", help="storage of experiments.py (default: xfs-25)")
arguments.add_argument("jobs", nargs="*", default=["resnet", "bert", "resnet-sleep", "bert-sleep"])
GOAL = 0.08


class FitBench(measure.Bench):
    def record(self, job, place, regime, log):
        """With the marks of PyTorch's batches."""
        folder = self._place(place, job)
        self._state(place, regime, folder)
        measure.execute([self.reprise, "capture", "--torch", "-q", "-f", "-o", log, "--", *job.command(folder, self.work)])
        return self.read_log(job, log)

    def generated(self, job, log, place):
        """Seconds that the generated job takes there, cold: from its first op to its last."""
        root, out = place.path / "replay", self.work / "run.oplog"
        measure.clear(root)
        root.mkdir()
        measure.execute([self.reprise, "prepare", "-q", log, "--root", root])
        self._state(place, "cold", root)
        with measure.limited(place):
            text = measure.execute([self.reprise, "replay", "-q", "-f", log, "--root", root, "--cache", "as-is", "-o", out, "--json"], allowed=(0, 1))
        measure.clear(root)
        found = json.loads(text[text.index("{"):])
        if found["ended"] != "complete":
            raise RuntimeError(f"the replay of the fitted {job.name} ended: {found['ended']}")
        return found["elapsed_s"]


def fitted(bench, job, log, folder):
    ini, made = folder / f"{job.name}.ini", folder / f"{job.name}.generated.oplog"
    measure.execute([bench.reprise, "fit", log, "-q", "-f", "-o", ini])
    measure.execute([bench.reprise, "generate", ini, "-q", "-f", "-o", made])
    return made


def one(bench, job, fast, slow, options, folder):
    """Each round records and fits anew: how busy the machine is for both is much the same."""
    recorded, real, replayed = [], {place.name: [] for place in slow}, {place.name: [] for place in slow}
    for _ in range(options.rounds):
        log = (options.keep or folder) / f"{job.name}.oplog"
        with alone(options.lock):
            recorded.append(bench.record(job, fast, "cold", log).seconds)
            made = fitted(bench, job, log, options.keep or folder)
            for place in slow:
                real[place.name].append(bench.real(job, place, "cold").seconds)
                replayed[place.name].append(bench.generated(job, made, place))
    rows = []
    for name, there in real.items():
        mine, theirs = statistics.median(replayed[name]), statistics.median(there)
        error = mine / theirs - 1
        print(f"fit {job.name} {name}: recorded {statistics.median(recorded):.3f} s, real {theirs:.3f} s, fitted and replayed {mine:.3f} s, "
              f"{100 * error:+.1f} % (median of {options.rounds}; real {min(there):.3f} to {max(there):.3f})"
              f"{'' if abs(error) <= GOAL else '  BEYOND 8 %'}", flush=True)
        off = f"{100 * error:+.1f} %"
        rows.append(f"| {job.name} on {name} ({options.rounds} rounds) | {statistics.median(recorded):.2f} | {theirs:.2f} ({min(there):.2f}–{max(there):.2f}) | "
                    f"{mine:.2f} | {off if abs(error) <= GOAL else f'**{off}**'} | {100 * GOAL:g} % |")
    return rows


def main():
    options = arguments.parse_args()
    if missing := measure.has_tools({"mkfs.xfs", "losetup", jobs.PYTHON}):
        print(f"fit_jobs: missing {', '.join(missing)}", file=sys.stderr)
        sys.exit(77)
    all_jobs = jobs.jobs(options.quick)
    wanted = [all_jobs[name] for name in options.jobs]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    storage.own_mounts()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(storage.working_folder(options.dir))
        jobs.make_data(folder / "data", {job.data for job in wanted}, options.quick)
        jobs.build(folder)
        bench = FitBench((options.bin / "reprise").resolve(), folder, folder / "data")
        places = [stack.enter_context(storage.Storage(name, experiments.STORAGES[name], folder, False, folder / "bin" / "slow_fuse"))
                  for name in ("ext4", *(options.place or ("xfs-25",)))]
        rows = [row for job in wanted for row in one(bench, dataclasses.replace(job), places[0], places[1:], options, folder)]
    if options.write_docs:
        head = ["| job | recorded on ext4, s | real job there | fitted, generated, replayed there | error | goal |", "|---|---|---|---|---|---|"]
        docs_tables.keep_table("fitted", head + rows, "tests/bench/accuracy/fit_jobs.py", add=True)


if __name__ == "__main__":
    main()
