#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: faults.py [--points 20] [--seed 1] [--dir DIR] [--build build/release] [--json FILE] [--write-docs]

Eight ranks replay on four hosts; at a random moment one thing goes wrong: a worker is killed, a rank is killed, a host is cut
off, or a host starts without the root. Prints how long it took until every process of the run had ended, everywhere (goal: 5 s),
whether the cause was named, and what was left. Exits 1 if a cause was not named or anything was left but parts of logs that can be
read (info --recover).

The hosts are network namespaces of one machine (hosts.py). Needs root, Open MPI, iproute2.
"""

import argparse
import fcntl
import json
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
TOP = HERE.parents[2]
sys.path[:0] = [str(TOP / "tests/bench/accuracy"), str(TOP / "scripts")]
import docs_tables  # noqa: E402
import hosts  # noqa: E402
import storage  # noqa: E402

HOSTS, RANKS = 4, 8
GOAL_S = 5.0
CAUSES = {"worker killed": r"worker \d+ \(pid \d+\) died of signal 9", "rank killed": r"signal 9|[Kk]illed", "host cut off": r"node(\d) ?: ?cut off: no sign of life",
          "root missing": r"root.*(missing|not prepared|does not exist|no such|No such)|not a prepared root|was not prepared"}


def processes(reprise):
    """(process, parent) of every running replay by this program."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "exe") == str(reprise) and b"replay" in (entry / "cmdline").read_bytes():
                    found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass
    return found


def rank_of(process):
    """Of its environment, as Open MPI sets it; None where it tells nothing."""
    try:
        found = re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)\0", pathlib.Path(f"/proc/{process}/environ").read_bytes())
    except OSError:
        return None
    return int(found[1]) if found else None


def until(condition, seconds):
    """Seconds until it held, or None."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(0.02)
    return time.monotonic() - begin


class Point:
    def __init__(self, bench, kind, seed):
        self.reprise, self.log, self.work, self.cluster = bench
        self.kind, self.random = kind, random.Random(seed)

    def run(self):
        root = self.work / "root"
        shutil.rmtree(root, ignore_errors=True)
        hosts.execute(self.cluster.mpirun(RANKS, self.reprise, "prepare", "-q", self.log, "--root", root))
        mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8")
        words = [self.reprise, "replay", self.log, "--root", root, "--delay", "sleep", "-o", self.work / "run.oplog", "-f"]
        host = self.random.randrange(2, HOSTS + 1)
        if self.kind == "root missing":
            # Each rank has mounts of its own, below those of its host.
            words = ["sh", "-c", f'[ $(hostname) != node{host} ] || mount -t tmpfs none {root}; exec "$@"', "sh", *words]
        child = hosts.start(self.cluster.mpirun(RANKS, *words))
        try:
            after, where = self.strike(host)
            began = time.monotonic()
            until(lambda: not processes(self.reprise), 60)
            gone = time.monotonic() - began
            text = self.output_of(child, host)
            whole = time.monotonic() - began
        finally:
            self.cluster.cut(host, off=False)
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        parts = []
        left = [f"process {process}" for process in processes(self.reprise)]
        if pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8") != mounts:
            left.append("a mount")
        try:
            with open(root / ".reprise-prepared", "rb") as marker:
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left.append("the lock of the root")
        # Who is killed while it writes leaves a part, from which readers take what is whole.
        for path in self.work.glob("run*.partial"):
            if subprocess.run([self.reprise, "info", "-q", "--recover", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
                left.append(f"{path.name}, which cannot be read")
            else:
                parts.append(path.name)
        for path in self.work.glob("run*"):
            path.unlink()
        named = child.returncode != 0 and bool(re.search(CAUSES[self.kind], text))
        return {"kind": self.kind, "after_s": after, "where": where, "gone_s": gone, "launcher_s": whole, "named": named, "left": left, "parts": parts,
                "text": "" if named and not left else text[-3000:]}

    def output_of(self, child, host):
        """Where mpirun itself goes on while a host is cut off, the host comes back first."""
        try:
            return child.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            self.cluster.cut(host, off=False)
            return child.communicate(timeout=60)[0]

    def strike(self, host):
        """(seconds after the ranks were there, what was hit). Returns when it is hit."""
        if self.kind == "root missing":
            if until(lambda: processes(self.reprise), 30) is None:
                raise RuntimeError("no rank started")
            return 0.0, f"node{host}"
        if until(lambda: len(processes(self.reprise)) >= 2 * RANKS, 60) is None:
            raise RuntimeError("the ranks have no workers")
        after = self.random.uniform(0, 4)
        time.sleep(after)
        if self.kind == "host cut off":
            self.cluster.cut(host)
            return after, f"node{host}"
        found = processes(self.reprise)
        workers = sorted(process for process, parent in found.items() if parent in found)
        ranks = sorted(process for process, parent in found.items() if parent not in found)
        process = self.random.choice(workers if self.kind == "worker killed" else ranks)
        rank = rank_of(process)
        os.kill(process, signal.SIGKILL)
        return after, f"rank {rank}"


def table(rows, kinds):
    lines = ["| what went wrong, at a random moment | points | every process ended after, median | longest | goal | cause named, nothing left |",
             "|---|---|---|---|---|---|"]
    for kind in kinds:
        of = [row for row in rows if row["kind"] == kind]
        times = [row["gone_s"] for row in of]
        if times:
            good = sum(row["named"] and not row["left"] for row in of)
            lines.append(f"| {kind} | {len(times)} | {statistics.median(times):.1f} s | {max(times):.1f} s | {GOAL_S:g} s"
                         f"{' **missed**' if max(times) > GOAL_S else ''} | {good} of {len(of)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=list(CAUSES), action="append")
    parser.add_argument("--dir", default=tempfile.gettempdir())
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--json")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    storage.own_mounts()
    rows, kinds = [], arguments.kind or list(CAUSES)
    with storage.working_folder(arguments.dir) as work, hosts.Hosts(HOSTS, work) as cluster:
        log = work / "long.oplog"
        hosts.execute([arguments.build / "programs/sample_log", "live-long", log])
        for number in range(arguments.points):
            row = Point(((arguments.build / "reprise").resolve(), log, work, cluster), kinds[number % len(kinds)], arguments.seed + number).run()
            rows.append(row)
            print(f"{number + 1:2} {row['kind']:14} {row['where']:15} after {row['after_s']:.1f} s: all gone {row['gone_s']:.1f} s, launcher {row['launcher_s']:.1f} s"
                  f"{''.join('  part of a log: ' + name for name in row['parts'])}{'' if row['named'] else '  CAUSE NOT NAMED'}{''.join('  LEFT: ' + name for name in row['left'])}", flush=True)
            if row["text"]:
                print(row["text"], file=sys.stderr)
    lines = table(rows, kinds)
    print("\n".join(lines))
    if arguments.write_docs:
        docs_tables.keep_table("faults", lines, "tests/bench/cluster/faults.py")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["named"] and not row["left"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
