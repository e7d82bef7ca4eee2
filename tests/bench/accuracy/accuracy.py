#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares replays with the real program run on the same storage, and prints tables in Markdown.

Each round of a cell records the job on its first storage, then runs it on the second one, then replays the recording there;
medians over the rounds are compared. Recordings and most real runs are shared by cells that need the same ones. See README.md
beside this file. Exit code 77: not on this machine.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import experiments
import inflight
import jobs
import measure
import packages
import rounds as results
import storage
import summary

sys.path.insert(0, str(jobs.TOP / "scripts"))
import docs_tables  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", metavar="CELL", help="groups or names of cells, with * and ?; all if none is given")
    parser.add_argument("--bin", type=pathlib.Path, default=jobs.TOP / "build" / "release", help="build folder")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="for images; needs 12 GB")
    parser.add_argument("--memory", action="store_true", help="devices in memory (zram) instead of images: little disturbs them")
    parser.add_argument("--out", type=pathlib.Path, help="folder of the results; what is there already is not measured again "
                        "[default build/accuracy, with --quick build/accuracy/quick]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recordings", type=int, metavar="N", help="record in the first N rounds only; later ones replay the Nth recording "
                        "again, which spares slow storage the time [default: in each round]")
    parser.add_argument("--fresh", action="store_true", help="forget the results in --out and begin anew")
    parser.add_argument("--force", action="store_true", help="go on though commit, machine or data differ from those of the results in --out")
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="run everything at this priority, e.g. -15 on a machine in use")
    parser.add_argument("--calm", type=float, default=3, metavar="PERCENT",
                        help="repeat a run, at most twice, while a virtual machine's host takes more of the processors; 0: never [default 3]")
    parser.add_argument("--backed", type=int, default=768, metavar="MIB",
                        help="use so much memory just before each run, so that a virtual machine's host has it in place; 0: none [default 768]")
    parser.add_argument("--quick", action="store_true", help="one round, smaller data, a part of the cells")
    parser.add_argument("--lock", type=pathlib.Path, metavar="FILE", help="hold a lock on it (flock) during each measurement: other work on this "
                        "machine that takes it as well (`flock FILE make`) waits meanwhile, and has its turn between two")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the logs of every cell's first round here")
    parser.add_argument("--write-docs", action="store_true", help="also write docs/data/accuracy.json, docs/accuracy.md and the chart")
    parser.add_argument("--list", action="store_true", help="name the cells and stop")
    arguments = parser.parse_args()
    if arguments.write_docs and arguments.quick:
        parser.error("--write-docs requires full rounds, without --quick")
    if arguments.quick:
        arguments.rounds = 1
    if arguments.recordings is None:
        arguments.recordings = arguments.rounds
    if min(arguments.rounds, arguments.recordings) < 1:
        parser.error("--rounds and --recordings take numbers from 1 on")
    if arguments.out is None:
        arguments.out = jobs.TOP / "build" / "accuracy" / ("quick" if arguments.quick else "")
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
        if quick and not patterns and cell.group == "requests-fio" and "-d16" not in cell.name:
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
    wanted = ["losetup", "mkfs.xfs", "mkfs.ext4", "mkfs.btrfs", "sqlite3", "rsync", "tar", "zstd", "cc", "c++", "pkg-config", "fusermount3"]
    if missing := measure.has_tools(wanted):
        skip(f"missing: {', '.join(missing)}")


def possible(cells):
    """Without those whose packages or programs cannot be had here; says which, and why."""
    refused = packages.refused({name for cell in cells for name in cell.recorded.needs})
    refused |= {tool: f"{tool} is not installed" for tool in measure.has_tools({tool for cell in cells for tool in cell.recorded.tools})}
    for name, why in refused.items():
        mine = [f"{cell.group}/{cell.name}" for cell in cells if name in wants(cell)]
        print(f"SKIPPED {len(mine)} cells ({', '.join(mine)}): {why}", file=sys.stderr)
    return [cell for cell in cells if not refused.keys() & wants(cell)]


def wants(cell):
    return {*cell.recorded.needs, *cell.recorded.tools}


TURN_S = 0.2  # between two measurements; whoever waits for the lock has it by then


@contextlib.contextmanager
def alone(path):
    """Holds the lock inside; gives others their turn before."""
    if path is None:
        yield
        return
    time.sleep(TURN_S)
    with open(path, "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Session:
    """One storage after the other, opened when first needed; recordings and real runs made once per round."""

    def __init__(self, stack, bench, folder, arguments):
        self.stack, self.bench, self.folder, self.arguments = stack, bench, folder, arguments
        self.calm = measure.Calm(arguments.calm / 100)
        self.storages, self.recorded, self.ran, self.logs = {}, {}, {}, 0

    def storage(self, name):
        if name not in self.storages:
            made = storage.Storage(name, experiments.STORAGES[name], self.folder, self.arguments.memory, self.folder / "bin" / "slow_fuse")
            self.storages[name] = self.stack.enter_context(made)
            self.bench.model(made, self.model(name))  # while it is empty
        return self.storages[name]

    def model(self, name):
        return self.arguments.out / f"model-{name}.json"

    def forget(self, number):
        """What belongs to the rounds before round `number`."""
        self.ran = {}
        if number < self.arguments.recordings:
            for log, _ in self.recorded.values():
                log.unlink(missing_ok=True)
            self.recorded = {}

    def recording(self, job, place):
        key = (job, place)
        if key not in self.recorded:
            self.logs += 1

            def record(attempt):
                log = self.folder / f"log{self.logs}-{attempt}.oplog"
                run = self.bench.record(job, self.storage(place[0]), place[1], log)
                run.more["log"] = log
                return run

            run = self.calm(record)
            self.recorded[key] = (run.more["log"], run)
            for other in self.folder.glob(f"log{self.logs}-*.oplog"):  # of the tries that were not calm
                if other != run.more["log"]:
                    other.unlink()
        return self.recorded[key]

    def real(self, cell):
        key = (cell.real, cell.target, None if cell.shared else cell.name)
        if key not in self.ran:
            self.ran[key] = self.calm(lambda _: self.bench.real(cell.real, self.storage(cell.target[0]), cell.target[1]))
            self.ran[key].more["id"] = f"{time.time():.3f}"  # it may serve several cells, and counts once
        return self.ran[key]

    def predicted(self, cell, log):
        self.storage(cell.target[0])
        try:
            return self.bench.predict(cell.recorded, log, self.model(cell.target[0]), cell.target[1], cell.options)
        except RuntimeError as error:  # a replay is judged without it
            return measure.Run(0, more={"failed": str(error)[-300:]})

    def round(self, cell, number):
        log, recorded = self.recording(cell.recorded, cell.source)
        keep = re.sub(r"\W+", "-", f"{cell.group}-{cell.name}") if number == 0 else None

        def replay():
            return self.calm(lambda _: self.bench.replay(cell.recorded, log, self.storage(cell.target[0]), cell.target[1], cell.options, keep))

        if number % 2 == 0:  # neither always follows what the other left behind
            real, replayed = self.real(cell), replay()
        else:
            replayed, real = replay(), self.real(cell)
        there = self.recording(cell.real, cell.target)[1] if cell.real.in_flight else None  # its requests can be seen only there
        predicted = self.predicted(cell, log)
        row = {"recorded_s": recorded.seconds, "real_s": real.seconds, "real_id": real.more["id"], "real_whole_s": real.more["whole_s"],
               "replayed_s": replayed.seconds, "recorded_au": recorded.au(), "real_au": real.au(), "replayed_au": replayed.au(),
               "predicted_s": predicted.seconds or None, "predicted_au": predicted.au() if predicted.seconds else None,
               "stolen": [recorded.stolen, real.stolen, replayed.stolen],
               "reported_mib": [recorded.reported, real.reported, replayed.reported],
               "work_s": [recorded.work, real.work, replayed.work]}
        if there:
            row |= compared(*(run.more.pop("in_flight", None) for run in (replayed, predicted)), there.more["in_flight"])
        row |= {"replay": replayed.more, "predict": predicted.more}
        if interval := measure.interval_of(replayed):
            row["interval_s"] = interval
        if interval := replayed.more.get("au_interval"):
            row["interval_au"] = interval
        return row


def compared(replayed, predicted, there):
    """Of a row: how many requests the job had in flight there, while it was recorded, and how many the replay and the prediction had."""
    if there is None:
        return {}
    found = {"requests_there": there.requests, "in_flight_there": there.mean, "depth_there": there.most, "recorded_there_s": there.seconds}
    for name, run in (("replayed", replayed), ("predicted", predicted)):
        if run is not None:
            found |= {f"requests_{name}": run.requests, f"in_flight_{name}": run.mean, f"in_flight_{name}_off": inflight.apart(there, run)}
    return found


def said(row):
    if row.get("failed"):
        return f"FAILED: {row['failed']}"

    def percent(key):
        return "?" if row[key] is None else f"{100 * (row[key] / row['real_s'] - 1):+.1f} %"

    return (f"recorded {row['recorded_s']:.3f}, real {row['real_s']:.3f}, replayed {row['replayed_s']:.3f} s, {percent('replayed_s')}; "
            f"predicted {percent('predicted_s')}"
            + (f"; in flight {row['in_flight_there']:.1f}, replayed {row['in_flight_replayed']:.1f}" if "in_flight_replayed" in row else ""))


def measure_rounds(stack, arguments, cells, reprise, rounds):
    missing = rounds.missing(cells, arguments.rounds)
    left = results.Left(rounds, missing)
    folder = stack.enter_context(storage.working_folder(arguments.dir))
    print(f"{len(missing)} of {arguments.rounds * len(cells)} measurements to do; making data ...", file=sys.stderr)
    jobs.make_data(folder / "data", {cell.recorded.data for cell, _ in missing}, arguments.quick)
    jobs.build(folder)
    session = Session(stack, measure.Bench(reprise, folder, folder / "data", arguments.keep), folder, arguments)
    # Cells with the same data follow each other: only that data is on a storage.
    order = {cell: at for at, cell in enumerate(sorted(cells, key=lambda cell: (cell.recorded.data, cell.recorded.name)))}
    last = None
    for cell, number in sorted(missing, key=lambda one: (one[1], order[one[0]])):
        if number != last:
            session.forget(number)
            measure.back_fragments()
            last = number
        with alone(arguments.lock):
            begin = time.monotonic()
            try:
                row = session.round(cell, number)
            except RuntimeError as error:
                row = {"failed": str(error)[-1000:]}
            took = time.monotonic() - begin
        rounds.add(cell, number, row | {"took_s": took})
        left.done(cell, number, took)
        print(f"{number + 1}/{arguments.rounds} {cell.group}/{cell.name}: {said(row)} [{took:.0f} s; {len(left.missing)} left, {left.text()}]",
              file=sys.stderr, flush=True)


def run(arguments, cells, reprise):
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    facts = measure.machine()
    try:
        rounds = results.Rounds(arguments.out, results.conditions(facts, arguments, reprise), arguments.fresh, arguments.force)
    except results.Changed as error:
        sys.exit(f"accuracy: {arguments.out / 'runs.jsonl'} was measured under other conditions ({error}); "
                 "--fresh begins anew, --force goes on, --out keeps them apart")
    try:
        if rounds.missing(cells, arguments.rounds):
            with contextlib.ExitStack() as stack:
                measure_rounds(stack, arguments, cells, reprise, rounds)
    finally:  # interrupted, too
        report(arguments, facts, cells, rounds)
    if rounds.failed:
        sys.exit(1)


def report(arguments, facts, cells, rounds):
    found, rows = summary.summaries(cells, rounds, arguments.rounds)
    missing = rounds.missing(cells, arguments.rounds)
    if found:
        (arguments.out / "cells.json").write_text(json.dumps({"machine": facts, "cells": found}, indent=1))
        run = summary.documented(found, facts, [row for mine in rows.values() for row in mine], arguments)
        text = "\n".join(docs_tables.run_lines(run))
        (arguments.out / "table.md").write_text(text)
        print(text)
        if arguments.write_docs and not missing:
            docs_tables.save("accuracy", docs_tables.merge_run(docs_tables.load("accuracy"), run))
            docs_tables.write()
    for (group, name), why in rounds.failed.items():
        print(f"FAILED {group}/{name}: {why}", file=sys.stderr)
    if missing:
        print(f"accuracy: {len(missing)} of {arguments.rounds * len(cells)} measurements are missing; the same command goes on with them"
              + ("; docs are not written" if arguments.write_docs else ""), file=sys.stderr)


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
    cells = possible(cells)
    if not cells:
        skip("no cell is left")
    storage.own_mounts()
    measure.priority, measure.backed = arguments.nice, arguments.backed
    run(arguments, cells, reprise)


if __name__ == "__main__":
    # Whatever ends it, what it made is put away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
