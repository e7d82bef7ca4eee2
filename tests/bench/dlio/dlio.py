#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: dlio.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--only NAME...] [--part times|cores]... [--json FILE]
       [--write-docs]

DLIO itself beside `reprise generate` of the same YAML, replayed.

times: each of configs.py on an ext4 of its own, cold (mounted anew) before every run, as fast as the device is and throttled (blkio, control
groups of version 1): time and AU of the epochs of both, medians of interleaved rounds; once more with overhead=, the time that DLIO itself takes of
each step, by a run with its data in memory before. cores: emulated H100s per core, unet3d with samples
of full size in memory: seconds that the accelerator is busy for each second of a processor that DLIO, and the replay, take; start and end
of the programs are left out (the difference of runs with 1 and 4 epochs). bound: what of that a bare loop takes which copies the same files out of the
page cache, with the best of several buffers. Needs root, and packages that environment.py names."""

import argparse
import json
import mmap
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "accuracy"))
sys.path.insert(0, str(HERE.parent.parent.parent / "scripts"))
import configs  # noqa: E402
import docs_tables  # noqa: E402
import environment  # noqa: E402
import run_dlio  # noqa: E402
import storage  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("/tmp"))
arguments.add_argument("--environment", type=pathlib.Path, help="where DLIO is installed, or will be [default: below --dir, for this run]")
arguments.add_argument("--rounds", type=int, default=3)
arguments.add_argument("--only", nargs="*", default=[each.name for each in configs.WORKLOADS])
arguments.add_argument("--part", action="append", choices=("times", "cores"))
arguments.add_argument("--json", type=pathlib.Path)
arguments.add_argument("--write-docs", action="store_true", help="put what was measured into docs/jobs-dlio.md; other rows of its table stay")
TIME_GOAL, AU_GOAL, CORES_GOAL = 5, 3, 10  # percent, points, times as many
OVERHEAD = "with overhead"


def middle(runs, values):
    """Of each epoch the median over the runs."""
    return [statistics.median(of) for of in zip(*(values(run) for run in runs), strict=True)]


def times(options, folder, python, reprise):
    rows = []
    for workload in configs.WORKLOADS:
        if workload.name not in options.only:
            continue
        for limit in (None, workload.mb_per_s):
            with storage.Storage(workload.name, storage.Kind("ext4", mb_per_s=limit), folder, size_mib=4096) as place:
                rows.append(compare(workload, limit, place, (python, reprise), (folder / "work", options.rounds)))
    return rows


def compare(workload, limit, place, programs, how):
    work, rounds = how
    dlio = run_dlio.Dlio(programs[0], workload, work / "dlio", place.path / "dlio")
    dlio.make_data()
    # Its data are in memory now: what an accelerator is idle is what DLIO itself takes of each step. The best of four epochs, or two.
    os.sync()
    overhead_s = workload.step_s * (100 / max(au for _ in range(2) for au in dlio.run().au) - 1)
    sides = {"DLIO": dlio, "reprise": run_dlio.Generated(programs[1], workload, work / "plain", place.path / "plain"),
             OVERHEAD: run_dlio.Generated(programs[1], workload, work / "overhead", place.path / "overhead",
                                          (f"overhead={overhead_s * 1e6:.0f}us",))}
    for side in list(sides.values())[1:]:
        side.make_data()
    runs = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            place.cool()
            if place.limit:
                place.limit.set(True)
            try:
                runs[name].append(side.run())
            finally:
                if place.limit:
                    place.limit.set(False)
    row = {"workload": workload.name, "scaled": workload.scaled, "mb_per_s": limit, "overhead_ms": overhead_s * 1e3}
    for name, of in runs.items():
        row[name] = {"epochs_s": middle(of, lambda run: run.epochs_s), "au": middle(of, lambda run: run.au)}
    print(f"times {workload.name}, {f'{limit} MB/s' if limit else 'not throttled'} ({workload.scaled}), {overhead_s * 1e3:.2f} ms of each step are DLIO's:",
          flush=True)
    for name in sides:
        of = row[name]
        of["time_off_percent"] = [100 * (mine / its - 1) for its, mine in zip(row["DLIO"]["epochs_s"], of["epochs_s"], strict=True)]
        of["au_off_points"] = [mine - its for its, mine in zip(row["DLIO"]["au"], of["au"], strict=True)]
        print(f"  {name:13} epochs " + ", ".join(f"{each:.2f}" for each in of["epochs_s"]) + " s, AU " + ", ".join(f"{each:.1f}" for each in of["au"]) +
              " %; off " + ", ".join(f"{each:+.1f}" for each in of["time_off_percent"]) + " %, AU " +
              ", ".join(f"{each:+.1f}" for each in of["au_off_points"]) + " points", flush=True)
    return row


FILES, EPOCHS = 28, (1, 4)


def cores(options, folder, python, reprise):
    """Both in one run, after one that brings their data into memory."""
    found = {}
    few, many = EPOCHS
    for name in ("DLIO", "reprise"):
        spent = {few: [], many: []}
        for turn in range(options.rounds + 1):
            for epochs in EPOCHS:
                workload = configs.full_size(FILES, epochs)
                place = folder / "cores" / name
                side = run_dlio.Dlio(python, workload, folder / "work" / "dlio", place) if name == "DLIO" else \
                    run_dlio.Generated(reprise, workload, folder / "work", place)
                if turn == 0 and (name != "DLIO" or epochs == few):
                    side.make_data()
                elif name != "DLIO":
                    side.generate()
                    run_dlio.command([reprise, "prepare", "-q", side.log, "--root", side.root])
                done = side.run(*(() if name == "DLIO" else ("warm",)))
                if turn > 0:
                    spent[epochs].append(done)
        busy = (many - few) * (FILES // 7) * configs.STEP_S
        processor = statistics.median(run.processor_s for run in spent[many]) - statistics.median(run.processor_s for run in spent[few])
        found[name] = {"busy_s": busy, "processor_s": processor, "per_core": busy / processor,
                       "au": statistics.median(run.au[-1] for run in spent[many])}
        print(f"cores {name}: {busy:.2f} s of an H100 busy for {processor:.2f} s of a processor: {busy / processor:.2f} per core, "
              f"AU of the last epoch {found[name]['au']:.1f} %", flush=True)
    found["ratio"] = found["reprise"]["per_core"] / found["DLIO"]["per_core"]
    copies = bare_copies(sorted((folder / "cores" / "reprise" / "root").rglob("*.npz")), options.rounds)
    whole, best = copies[None], min(copies.values())
    found["bound"] = configs.STEP_S / (best * 7)
    found["bound_ratio"] = found["bound"] / found["DLIO"]["per_core"]
    for size, took in copies.items():
        print(f"bare copy of a sample into {f'{size >> 10} KiB again and again' if size else 'memory for all of it'}: {took * 1e3:.1f} ms of a processor, "
              f"{configs.SAMPLE / took / 1e9:.1f} GB/s, {configs.STEP_S / (took * 7):.2f} H100s per core", flush=True)
    print(f"cores: {found['ratio']:.1f} times as many; the bare copy alone would be {found['bound_ratio']:.1f} times, and with memory for each sample "
          f"{configs.STEP_S / (whole * 7) / found['DLIO']['per_core']:.1f}; the replay is at {100 * found['reprise']['per_core'] / found['bound']:.0f} % of it", flush=True)
    return found


BUFFERS = (1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 21)


def bare_copies(files, rounds):
    """Seconds of a processor that one sample takes to be copied out of the page cache, by size of the buffer, which one call of preadv
    fills again and again; None: a buffer for all of it, whose pages are there."""
    whole = mmap.mmap(-1, configs.SAMPLE)
    whole.write(bytes(1 << 20) * (configs.SAMPLE >> 20))
    found = {}
    for size in (None, *BUFFERS):
        parts = [whole] if size is None else [memoryview(bytearray(size))] * (-(-configs.SAMPLE // size))
        took = []
        for turn in range(rounds + 1):
            before = time.process_time()
            for file in files:
                fd = os.open(file, os.O_RDONLY)
                done = 0
                while done < configs.SAMPLE:
                    most = parts if size is None else parts[:min(1024, -(-(configs.SAMPLE - done) // size))]
                    done += os.preadv(fd, most, done) or configs.SAMPLE
                os.close(fd)
            if turn > 0:
                took.append((time.process_time() - before) / len(files))
        found[size] = statistics.median(took)
    return found


def table(result, rounds):
    """The lines for the documentation."""
    lines = ["| workload | DLIO: epochs, AU | generated: epochs, AU | off, at most | goal |", "|---|---|---|---|---|"]

    def worst(values):
        return max(values, key=abs)

    def side(of):
        return ", ".join(f"{each:.2f}" for each in of["epochs_s"]) + " s; " + ", ".join(f"{each:.1f}" for each in of["au"]) + " %"

    def marked(text, met):
        return text if met else f"**{text}**"

    for row in result.get("times", ()):
        where = f"{row['mb_per_s']} MB/s" if row["mb_per_s"] else "not throttled"
        for name, more in (("reprise", ""), (OVERHEAD, ", with overhead=")):
            elapsed, au = worst(row[name]["time_off_percent"]), worst(row[name]["au_off_points"])
            lines.append(f"| {row['workload']}, {where}{more} ({rounds} rounds) | {side(row['DLIO'])} | {side(row[name])} | "
                         f"{marked(f'{elapsed:+.1f} %', abs(elapsed) <= TIME_GOAL)}, {marked(f'{au:+.1f} points', abs(au) <= AU_GOAL)} | "
                         f"{TIME_GOAL} %, {AU_GOAL} points |")
    if "cores" in result:
        found = result["cores"]
        lines.append(f"| emulated H100s per core, data in memory | {found['DLIO']['per_core']:.2f} | {found['reprise']['per_core']:.2f} | "
                     f"{marked('%.1f times' % found['ratio'], found['ratio'] >= CORES_GOAL)} | {CORES_GOAL} times |")
        lines.append(f"| … that a bare copy out of the page cache allows | | {found['bound']:.2f} | {found['bound_ratio']:.1f} times | |")
    return lines


def main():
    options = arguments.parse_args()
    parts = options.part or ["times", "cores"]
    storage.own_mounts()
    result = {}
    with storage.working_folder(options.dir) as folder:
        (folder / "work").mkdir()
        python = environment.make(options.environment or folder / "environment")
        reprise = (options.bin / "reprise").resolve()
        if "times" in parts:
            result["times"] = times(options, folder, python, reprise)
        if "cores" in parts:
            result["cores"] = cores(options, folder, python, reprise)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="ascii")
    if options.write_docs:
        docs_tables.keep_table("dlio", table(result, options.rounds), "tests/bench/dlio/dlio.py", add=True)


if __name__ == "__main__":
    main()
