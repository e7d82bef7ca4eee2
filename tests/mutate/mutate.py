#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants faults in the files of tests/mutate/files.txt, one at a time, and tells which of them no test finds."""
import argparse
import fcntl
import json
import queue
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import plan  # noqa: E402
import report  # noqa: E402
import rules  # noqa: E402
from build import ROOT, Build, Runner, Stopped  # noqa: E402
from testing import Tests  # noqa: E402

FOLDER = ROOT / "build/mutate"
LEAST_SHARE = 0.85


class Results:
    """One line of JSON for each fault, appended as it is known."""

    def __init__(self, path, options):
        self.path, self.lock = path, threading.Lock()
        self.seed, self.count, self.rows = options.seed, options.count, []
        again = options.resume or options.survivors or options.report
        if again and not path.exists():
            raise SystemExit(f"mutate: {path} does not exist: nothing to go on with")
        if again:
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            self.seed, self.count, self.rows = lines[0]["seed"], lines[0]["count"], lines[1:]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"seed": self.seed, "count": self.count}) + "\n")

    def add(self, row):
        with self.lock:
            self.rows.append(row)
            with self.path.open("a") as out:
                out.write(json.dumps(row) + "\n")

    def latest(self):
        """A fault that was tried again counts as it did last."""
        return list({(r["file"].rsplit("/", 1)[-1], *report.key_of(r), r.get("slot")): r for r in self.rows}.values())


def describe(name, fault):
    return {"file": name, "line": fault.line, "column": fault.column, "rule": fault.rule, "before": fault.before,
            "after": fault.after}


class Run:
    def __init__(self, tests, rooms, results, runner):
        self.tests, self.rooms, self.results, self.runner = tests, rooms, results, runner
        self.todo = queue.Queue()
        self.total = self.done = self.found = 0
        self.began = time.monotonic()
        self.error = None

    def slot(self, number, name, faults, work):
        """Tries the faults of one place in the sample until one can be built."""
        for fault in faults[:8]:
            began = time.monotonic()
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            text = fault.apply((self.tests.build.tree / name).read_text())
            room = self.rooms[name]
            targets = [*room.targets, *(["reprise"] if room.programs else [])]
            twins = self.tests.build.compile_faulty(name, text, targets, work)
            outcome, by = ("not built", "") if twins is None else self.tests.find(room, twins, work)
            row = dict(describe(name, fault), slot=number, outcome=outcome, by=by,
                       seconds=round(time.monotonic() - began, 1))
            self.results.add(row)
            if outcome != "not built":
                return row
        return None

    def work(self, worker):
        folder = self.tests.build.folder / f"work-{worker}"
        try:
            while not self.runner.stopped:
                number, name, faults = self.todo.get_nowait()
                row = self.slot(number, name, faults, folder)
                self.done += 1
                if row:
                    self.found += row["outcome"] == "found"
                    self.progress(row)
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:  # shown by the main thread
            self.error = error
            self.runner.stop("an error")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def progress(self, row):
        spent = time.monotonic() - self.began
        left = spent / self.done * (self.total - self.done) / 60
        end = "\r" if sys.stderr.isatty() else "\n"
        line = (f"{self.done}/{self.total}  {self.found} found  {left:.0f} min left  {row['outcome']}: "
                f"{row['file']}:{row['line']} {row['rule']} ({row['seconds']:.0f} s)")
        print(f"{line:<110.110}" if end == "\r" else line, end=end, file=sys.stderr, flush=True)

    def go(self, slots, jobs):
        for slot in slots:
            self.todo.put(slot)
        self.total = len(slots)
        threads = [threading.Thread(target=self.work, args=(k,)) for k in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
        if self.error:
            raise self.error


def slots_again(results, rooms):
    """The survivors of the last run, found again in the sources of today."""
    out, files = [], {Path(name).name: name for name in rooms}
    equivalent = plan.read_equivalent()
    for row in results.latest():
        name = files.get(Path(row["file"]).name)
        if row["outcome"] != "survived" or report.key_of(row) in equivalent or name is None:
            continue
        same = [f for f in rules.faults((ROOT / name).read_text())
                if plan.key(name, f.rule, f.before, f.after) == report.key_of(row)]
        if same:
            nearest = min(same, key=lambda f: (abs(f.line - row["line"]), f.column != row["column"]))
            out.append((row.get("slot"), name, [nearest]))
        else:
            print(f"mutate: the line has changed: {row['file']}:{row['line']} {row['rule']}", file=sys.stderr)
    return out


def arguments():
    parser = argparse.ArgumentParser(prog="tests/mutate.sh", description=__doc__, epilog="Exit status: 0, 1 where less "
                                     f"than {LEAST_SHARE:.0%} of the faults are found, 2 after wrong usage.")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="how many faults (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which faults (%(default)s)")
    parser.add_argument("--files", metavar="GLOB", help="only in files whose path fits GLOB")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults tried at once (%(default)s)")
    parser.add_argument("--timeout", type=float, default=60, metavar="S", help="a test that takes longer has failed "
                        "(%(default)s s)")
    parser.add_argument("--resume", action="store_true", help="go on with the run that was stopped")
    parser.add_argument("--survivors", action="store_true", help="try the survivors of the last run again, with the "
                        "tests of today")
    parser.add_argument("--report", action="store_true", help="only show what the last run has found")
    parser.add_argument("--list", action="store_true", help="only show the faults that would be planted")
    parser.add_argument("--table", action="store_true", help="write the result, by file, to docs/testing.md")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the result as JSON")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help="where it builds and keeps its "
                        "results, one line each in results.jsonl; one run at a time (%(default)s)")
    return parser.parse_args()


def only_one(folder):
    """Held until the process ends: two runs must not change one copy of the sources."""
    folder.mkdir(parents=True, exist_ok=True)
    held = (folder / "lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"mutate: another run works in {folder}; take another --folder") from None
    return held


def plant(options, rooms, results, runner):
    if options.survivors:
        slots = slots_again(results, rooms)
    else:
        known = {row.get("slot") for row in results.rows if row["outcome"] != "not built"}
        chosen = enumerate(plan.sample(rooms, results.count, results.seed))
        slots = [(number, name, faults) for number, (name, faults) in chosen if number not in known]
    if not slots:
        return
    build = Build(options.folder.resolve(), runner)
    tests = Tests(build, {name: rooms[name] for _, name, _ in slots}, runner, options.timeout)
    print("mutate: building without faults", file=sys.stderr)
    build.make(tests.all_targets())
    tests.measure(build.folder / "work-0")
    Run(tests, rooms, results, runner).go(slots, options.jobs)


def main():
    options = arguments()
    rooms = plan.read_files(options.files)
    if not rooms:
        print(f"mutate: no file of {plan.FILES} fits {options.files}", file=sys.stderr)
        return 2
    if options.list:
        for name, faults in plan.sample(rooms, options.count, options.seed):
            print(f"{name}:{faults[0].line}: {faults[0].rule}\n    - {faults[0].before}\n    + {faults[0].after}")
        return 0
    runner = Runner()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, _: runner.stop(f"signal {which}"))
    lock = None if options.report else only_one(options.folder)  # noqa: F841
    results = Results(options.folder / "results.jsonl", options)
    try:
        if not options.report:
            plant(options, rooms, results, runner)
    except Stopped:
        pass
    totals = report.Totals(results.latest())
    print(report.text(totals))
    if options.json:
        out = json.dumps(report.as_json(totals, results.seed), indent=1) + "\n"
        sys.stdout.write(out) if options.json == "-" else Path(options.json).write_text(out)
    if options.table and not runner.stopped:
        print(f"mutate: wrote {report.write_table(totals, results.seed)}", file=sys.stderr)
    if runner.stopped:
        print(f"mutate: stopped by {runner.stopped}; go on with --resume", file=sys.stderr)
        return 130
    return 0 if totals.files and totals.share >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
