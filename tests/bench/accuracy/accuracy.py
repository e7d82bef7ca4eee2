#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares replays with the real program run on the same storage, and prints tables in Markdown.

Each round of a cell records the job on its first storage, then runs it on the second one, then replays the recording there;
medians over the rounds are compared. Recordings and most real runs are shared by cells that need the same ones. See README.md
beside this file. Exit code 77: not on this machine.
"""

import argparse
import contextlib
import datetime
import fnmatch
import json
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import experiments
import jobs
import measure
import storage

sys.path.insert(0, str(jobs.TOP / "scripts"))
import docs_tables  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", metavar="CELL", help="groups or names of cells, with * and ?; all if none is given")
    parser.add_argument("--bin", type=pathlib.Path, default=jobs.TOP / "build" / "release", help="build folder")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="for images; needs 8 GB")
    parser.add_argument("--memory", action="store_true", help="devices in memory (zram) instead of images: little disturbs them")
    parser.add_argument("--out", type=pathlib.Path, default=jobs.TOP / "build" / "accuracy", help="folder of the results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="continue the interrupted rounds in --out; same cells and data")
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="run everything at this priority, e.g. -15 on a machine in use")
    parser.add_argument("--calm", type=float, default=3, metavar="PERCENT",
                        help="repeat a run, at most twice, while a virtual machine's host takes more of the processors; 0: never [default 3]")
    parser.add_argument("--backed", type=int, default=768, metavar="MIB",
                        help="use so much memory just before each run, so that a virtual machine's host has it in place; 0: none [default 768]")
    parser.add_argument("--quick", action="store_true", help="one round, smaller data, a part of the cells")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the logs of every cell's first round here")
    parser.add_argument("--write-docs", action="store_true", help="also write docs/data/accuracy.json, docs/accuracy.md and the chart")
    parser.add_argument("--list", action="store_true", help="name the cells and stop")
    arguments = parser.parse_args()
    if arguments.write_docs and arguments.quick:
        parser.error("--write-docs requires full rounds, without --quick")
    return arguments


def chosen(all_cells, patterns, quick):
    found = []
    for cell in all_cells:
        names = (cell.group, cell.name, f"{cell.group}/{cell.name}")
        if patterns and not any(fnmatch.fnmatch(name, pattern) for name in names for pattern in patterns):
            continue
        # A quick look at the large table: what was recorded on XFS, and everything that was for XFS.
        if quick and not patterns and cell.group == "programs" and "xfs" not in (cell.source[0], cell.target[0]):
            continue
        found.append(cell)
    return found


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def check(reprise):
    if os.geteuid() != 0:
        skip("recording and mounting need root")
    if not json.loads(subprocess.run([reprise, "capture", "--check", "--json"], stdout=subprocess.PIPE).stdout)["can_record"]:
        skip("this machine cannot record")
    if subprocess.run([jobs.PYTHON, "-c", "import torch, PIL"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("python3-torch or python3-pil is not installed")
    wanted = ["losetup", "mkfs.xfs", "mkfs.ext4", "mkfs.btrfs", "sqlite3", "rsync", "tar", "cc"]
    if missing := measure.has_tools(wanted):
        skip(f"missing: {', '.join(missing)}")


class Session:
    """One storage after the other, opened when first needed; recordings and real runs made once per round."""

    def __init__(self, stack, bench, folder, memory, calm):
        self.stack, self.bench, self.folder, self.memory, self.calm = stack, bench, folder, memory, calm
        self.storages, self.recorded, self.ran = {}, {}, {}

    def storage(self, name):
        if name not in self.storages:
            kind, rate = experiments.STORAGES[name]
            self.storages[name] = self.stack.enter_context(storage.Storage(name, kind, rate, self.folder, self.memory))
        return self.storages[name]

    def recording(self, cell, number):
        key = (cell.recorded, cell.source, number)
        if key not in self.recorded:
            def record(number):
                log = self.folder / f"log{len(self.recorded)}-{number}.oplog"
                run = self.bench.record(cell.recorded, self.storage(cell.source[0]), cell.source[1], log)
                run.more["log"] = log
                return run

            run = self.calm(record)
            self.recorded[key] = (run.more["log"], run)
        return self.recorded[key]

    def real(self, cell, number):
        key = (cell.real, cell.target, number, None if cell.shared else cell.name)
        if key not in self.ran:
            self.ran[key] = self.calm(lambda _: self.bench.real(cell.real, self.storage(cell.target[0]), cell.target[1]))
        return self.ran[key]

    def round(self, cell, number):
        log, recorded = self.recording(cell, number)
        keep = re.sub(r"\W+", "-", f"{cell.group}-{cell.name}") if number == 0 else None

        def replay():
            return self.calm(lambda _: self.bench.replay(cell.recorded, log, self.storage(cell.target[0]), cell.target[1], cell.options, keep))

        if number % 2 == 0:  # neither always follows what the other left behind
            real, replayed = self.real(cell, number), replay()
        else:
            replayed, real = replay(), self.real(cell, number)
        return {"group": cell.group, "cell": cell.name, "round": number, "recorded_s": recorded.seconds, "real_s": real.seconds,
                "replayed_s": replayed.seconds, "recorded_au": recorded.au(), "real_au": real.au(), "replayed_au": replayed.au(),
                "stolen": [recorded.stolen, real.stolen, replayed.stolen],
                "reported_mib": [recorded.reported, real.reported, replayed.reported],
                "work_s": [recorded.work, real.work, replayed.work], "replay": replayed.more}


def median(rows, key):
    values = [row[key] for row in rows]
    return None if None in values else statistics.median(values)


def summarise(cell, rows, reals):
    """`reals`: the seconds of all real runs of that job at that place. `itself_percent`: the real runs beside this cell
    against all of them, the error that a replay would show which is the job itself; None where they served other cells."""
    found = {"group": cell.group, "cell": cell.name, "judge": cell.judge, "bar": cell.bar, "rounds": len(rows)}
    for key in ("recorded", "real", "replayed"):
        for unit in ("s", "au"):
            found[f"{key}_{unit}"] = median(rows, f"{key}_{unit}")
        found[f"{key}_spread"] = [min(row[f"{key}_s"] for row in rows), max(row[f"{key}_s"] for row in rows)]
    found["itself_percent"] = None if cell.shared else 100 * (found["real_s"] / statistics.median(reals) - 1)
    found["real_s"], found["real_spread"] = statistics.median(reals), [min(reals), max(reals)]
    found["error_percent"] = 100 * (found["replayed_s"] / found["real_s"] - 1)
    found["error_au_points"] = None
    if found["real_au"] is not None and found["replayed_au"] is not None:
        found["error_au_points"] = 100 * (found["replayed_au"] - found["real_au"])
    error = found["error_percent"] if cell.judge == "span" else found["error_au_points"]
    found["met"] = error is not None and abs(error) <= cell.bar
    return found


def figure(cell, key):
    """What docs/data/accuracy.json keeps of one side: percent of AU, or seconds."""
    if cell["judge"] == "au":
        return None if cell[f"{key}_au"] is None else {"median": round(100 * cell[f"{key}_au"], 1)}
    least, most = cell[f"{key}_spread"]
    return {"median": round(cell[f"{key}_s"], 3), "least": round(least, 3), "most": round(most, 3)}


def documented(found, facts, rows, rounds, arguments):
    """A run as docs/data/accuracy.json keeps it; scripts/docs_tables.py renders it."""
    shares = [share for row in rows for share in row["stolen"]]
    words = [word for word in sys.argv[1:] if word not in ("--write-docs", "--resume")]
    run = {"date": datetime.date.today().isoformat(),
           "machine": f"{facts['cpus']} x {facts['cpu']}, {facts['memory_gib']} GiB, Linux {facts['kernel']}",
           "command": shlex.join(["tests/bench/accuracy/run.sh", *words]),
           "steal_percent": {"median": round(100 * statistics.median(shares), 1), "most": round(100 * max(shares), 1), "repeat_above": arguments.calm}}
    if own := sorted(abs(cell["itself_percent"]) for cell in found if cell["itself_percent"] is not None):
        theirs = [abs(cell["error_percent"]) for cell in found if cell["itself_percent"] is not None]
        run["itself"] = {"cells": len(own), "bar": 5.0, "mean": round(statistics.mean(own), 1), "greatest": round(own[-1], 1),
                         "within": sum(error <= 5 for error in own), "replays_mean": round(statistics.mean(theirs), 1)}
    if works := sorted(work for row in rows for work in row.get("work_s", ())):  # rows of before have none
        middle = statistics.median(works)
        run["notes"] = [f"A fixed piece of work beside each run took {works[0] / middle:.2f} to {works[-1] / middle:.2f} of its median, in nine of ten runs "
                        f"up to {works[len(works) * 9 // 10] / middle:.2f}: how much the machine's own speed varied."]
    run["cells"] = []
    for cell in found:
        error = cell["error_percent" if cell["judge"] == "span" else "error_au_points"]
        run["cells"].append({"group": cell["group"], "cell": cell["cell"], "judge": cell["judge"], "bar": cell["bar"], "rounds": rounds,
                             **{key: figure(cell, key) for key in ("recorded", "real", "replayed")},
                             "error": None if error is None else round(error, 1), "met": cell["met"]})
    return run


def earlier(path, cells):
    """What an interrupted run left: a list of rows for each cell."""
    found = {cell: [] for cell in cells}
    by_name = {(cell.group, cell.name): cell for cell in cells}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(text)
        if (row["group"], row["cell"]) in by_name:
            found[by_name[row["group"], row["cell"]]].append(row)
    return found


def measure_rounds(stack, arguments, cells, reprise, rows, out, commit):
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-accuracy-", dir=arguments.dir)))
    print("making data ...", file=sys.stderr)
    jobs.make_data(folder / "data", {cell.recorded.data for cell in cells}, arguments.quick)
    jobs.build(folder)
    calm = measure.Calm(arguments.calm / 100)
    session = Session(stack, measure.Bench(reprise, folder, folder / "data", arguments.keep), folder, arguments.memory, calm)
    for number in range(min(map(len, rows.values())), arguments.rounds):
        measure.back_fragments()
        for cell in cells:
            if len(rows[cell]) > number:
                continue
            begin = time.monotonic()
            row = session.round(cell, number) | {"commit": commit}
            rows[cell].append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{number + 1}/{arguments.rounds} {cell.group}/{cell.name}: recorded {row['recorded_s']:.3f}, real {row['real_s']:.3f}, "
                  f"replayed {row['replayed_s']:.3f} s, {100 * (row['replayed_s'] / row['real_s'] - 1):+.1f} % "
                  f"[{time.monotonic() - begin:.0f} s]", file=sys.stderr, flush=True)


def run(arguments, cells, reprise):
    if arguments.quick:
        arguments.rounds = 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "runs.jsonl"
    rows = earlier(path, cells) if arguments.resume else {cell: [] for cell in cells}
    facts = measure.machine()
    try:
        if any(len(mine) < arguments.rounds for mine in rows.values()):
            with contextlib.ExitStack() as stack, open(path, "a" if arguments.resume else "w", encoding="utf-8") as out:
                measure_rounds(stack, arguments, cells, reprise, rows, out, facts["commit"])
    finally:  # interrupted, too: the rounds that all cells have
        full = min(map(len, rows.values()))
        if full:
            report(arguments, facts, {cell: rows[cell][:full] for cell in cells}, full)


def report(arguments, facts, rows, rounds):
    reals = {}
    for cell, mine in rows.items():
        reals.setdefault((cell.real, cell.target), []).extend(row["real_s"] for row in mine)
    found = [summarise(cell, mine, reals[cell.real, cell.target]) for cell, mine in rows.items()]
    (arguments.out / "cells.json").write_text(json.dumps({"machine": facts, "cells": found}, indent=1))
    run = documented(found, facts, [row for mine in rows.values() for row in mine], rounds, arguments)
    text = "\n".join(docs_tables.run_lines(run))
    (arguments.out / "table.md").write_text(text)
    print(text)
    if arguments.write_docs:
        docs_tables.save("accuracy", docs_tables.merge_run(docs_tables.load("accuracy"), run))
        docs_tables.write()


def main():
    arguments = options()
    cells = chosen(experiments.cells(jobs.jobs(arguments.quick)), arguments.cells, arguments.quick)
    if arguments.list:
        print("\n".join(f"{cell.group}/{cell.name}" for cell in cells))
        return
    if not cells:
        sys.exit("accuracy: no cell has such a name; --list names them")
    reprise = (arguments.bin / "reprise").resolve()
    check(reprise)
    measure.priority, measure.backed = arguments.nice, arguments.backed
    run(arguments, cells, reprise)


if __name__ == "__main__":
    # Whatever ends it, what it made is put away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
