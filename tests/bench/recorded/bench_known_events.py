#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_known_events.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [MODE...]

Programs that make one kind of event, again and again (jobs/known_events.cpp), alone and recorded in turn. Per event: the processor
time that it takes alone, how much more recorded, and by how much what the log accounts for (compute, calls and touches; of programs
with one thread) differs from the time alone: 0 where exactly what the recorder took was taken off, and new memory cost
the usual. Medians of the rounds, with the 95 % bounds. Memory is backed before each run. Needs root; exit code 77: this machine cannot record."""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "accuracy")]
import measure  # noqa: E402
from bench_recorded import BACKED_MIB, TOP, median_bounds  # noqa: E402

# Events of a run; some tenths of a second.
MODES = {"pages": 300_000, "faults": 200_000, "shm": 150_000, "preads": 200_000, "pingpong": 50_000, "futexes": 50_000}
EVENTS_OF_TURN = {"pingpong": 2, "futexes": 2}  # a switch each way


def accounted(reprise, log):
    """Seconds of compute, calls and touches between the marks of the span."""
    text = subprocess.run([reprise, "dump", log], stdout=subprocess.PIPE, text=True, check=True).stdout
    ops = [(int(m[1]), int(m[2]), m[3], m[4]) for m in re.finditer(r"^begin=(\d+) duration=(\d+) task=\d+ op=\d+ (\w+)(.*)$", text, re.M)]
    marks = [op[0] for op in ops if op[2] == "marker" and 'text="span"' in op[3]]
    if len(marks) != 2:
        raise RuntimeError(f"{log}: {len(marks)} marks")
    begin, end = marks
    counted = 0
    for at, duration, kind, _ in ops:
        if not begin <= at < end or kind in ("idle", "marker", "join", "spawn"):
            continue
        counted += duration
    return counted * 1e-9


def main(options, folder):
    program, log, data = folder / "known_events", folder / "job.oplog", folder / "data"
    subprocess.run(["c++", "-std=c++20", "-O2", "-Wall", "-pthread", "-I", TOP / "markers", "-o", program, HERE / "jobs" / "known_events.cpp"],
                   check=True)
    data.write_bytes(random.Random(1).randbytes(8 << 20))
    reprise = str(options.bin / "reprise")

    def run(mode, recorded):
        measure.back_memory(BACKED_MIB)
        words = [program, mode, MODES[mode], data]
        if recorded:
            words = [reprise, "capture", "-q", "-f", "-o", log, "--", *words]
        return float(re.search(r"^span .* cpu ([\d.]+)", measure.execute(words), re.M)[1])

    print(f"{'events':10} {'alone':>10} {'recorded':>28} {'accounted for in the log':>30}   costs measured")
    for mode in options.modes or MODES:
        events = MODES[mode] * EVENTS_OF_TURN.get(mode, 1)
        alone, longer, off = [], [], []
        for _ in range(options.rounds):
            order = [False, True]
            random.shuffle(order)
            took = {recorded: run(mode, recorded) for recorded in order}
            alone.append(took[False] / events * 1e9)
            longer.append((took[True] - took[False]) / events * 1e9)
            if mode not in EVENTS_OF_TURN:
                off.append((accounted(reprise, log) - took[False]) / events * 1e9)
        info = json.loads(subprocess.run([reprise, "info", "--json", log], stdout=subprocess.PIPE, text=True, check=True).stdout)
        extra = info["header"].get("extra", info["header"])
        show = [f"{x[1]:+6.0f} ns [{x[0]:+6.0f}, {x[2]:+6.0f}]" if x else "-" for x in
                (median_bounds(longer), median_bounds(off) if off else None)]
        print(f"{mode:10} {statistics.median(alone):7.0f} ns {show[0]:>28} {show[1]:>30}   {extra.get('capture.costs', '-')}", flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", required=True, type=pathlib.Path)
    arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("modes", nargs="*", metavar="MODE")
    options = arguments.parse_args()
    options.bin = options.bin.resolve()
    if unknown := set(options.modes) - set(MODES):
        sys.exit(f"no such mode: {', '.join(sorted(unknown))}")
    if os.geteuid() != 0 or not json.loads(subprocess.run([options.bin / "reprise", "capture", "--check", "--json"],
                                                          capture_output=True).stdout)["can_record"]:
        print("SKIPPED: this machine cannot record here: root and BPF are needed")
        sys.exit(77)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="reprise-known-") as name:
        main(options, pathlib.Path(name))
