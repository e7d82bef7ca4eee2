#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: dlio.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--only NAME...] [--part times|cores]... [--json FILE]
       [--write-docs]

DLIO itself beside `reprise generate` of the same YAML, replayed.

times: each of configs.py on an ext4 of its own, cold (mounted anew) before every run, as fast as the device is and throttled (blkio, control
groups of version 1): time and AU of the epochs of both, medians of interleaved rounds. cores: emulated H100s per core, unet3d with samples
of full size in memory: seconds that the accelerator is busy for each second of a processor that DLIO, and the replay, take; start and end
of the programs are left out (the difference of runs with 1 and 4 epochs). Needs root, and packages that environment.py names."""

import argparse
import json
import pathlib
import statistics
import sys

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
    sides = {"DLIO": run_dlio.Dlio(programs[0], workload, work / "dlio", place.path / "dlio"),
             "reprise": run_dlio.Generated(programs[1], workload, work, place.path)}
    for side in sides.values():
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
    row = {"workload": workload.name, "scaled": workload.scaled, "mb_per_s": limit}
    for name, of in runs.items():
        row[name] = {"epochs_s": middle(of, lambda run: run.epochs_s), "au": middle(of, lambda run: run.au)}
    pairs = list(zip(row["DLIO"]["epochs_s"], row["reprise"]["epochs_s"], strict=True))
    row["time_off_percent"] = [100 * (mine / its - 1) for its, mine in pairs]
    row["au_off_points"] = [mine - its for its, mine in zip(row["DLIO"]["au"], row["reprise"]["au"], strict=True)]
    print(f"times {workload.name}, {f'{limit} MB/s' if limit else 'not throttled'} ({workload.scaled}):", flush=True)
    for name in sides:
        print(f"  {name:8} epochs " + ", ".join(f"{each:.2f}" for each in row[name]["epochs_s"]) + " s, AU " +
              ", ".join(f"{each:.1f}" for each in row[name]["au"]) + " %")
    print("  off " + ", ".join(f"{each:+.1f}" for each in row["time_off_percent"]) + " %, AU " +
          ", ".join(f"{each:+.1f}" for each in row["au_off_points"]) + " points", flush=True)
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
                    run_dlio.command([reprise, "generate", "-q", "-f", side.yaml, "--gpus", 1, "-o", side.log])
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
    print(f"cores: {found['ratio']:.1f} times as many", flush=True)
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
        time, au = worst(row["time_off_percent"]), worst(row["au_off_points"])
        where = f"{row['mb_per_s']} MB/s" if row["mb_per_s"] else "not throttled"
        lines.append(f"| {row['workload']}, {where} ({rounds} rounds) | {side(row['DLIO'])} | {side(row['reprise'])} | "
                     f"{marked(f'{time:+.1f} %', abs(time) <= TIME_GOAL)}, {marked(f'{au:+.1f} points', abs(au) <= AU_GOAL)} | "
                     f"{TIME_GOAL} %, {AU_GOAL} points |")
    if "cores" in result:
        found = result["cores"]
        lines.append(f"| emulated H100s per core, data in memory | {found['DLIO']['per_core']:.2f} | {found['reprise']['per_core']:.2f} | "
                     f"{marked('%.1f times' % found['ratio'], found['ratio'] >= CORES_GOAL)} | {CORES_GOAL} times |")
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
