#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: steps.py [--rounds N] [--dir DIR] [--reprise FILE] [--json FILE] [--write-docs]

How ranks start and step together: how far apart they leave the start line, what the barrier after each step of 10 ms costs beside a
bare loop of MPI_Barrier (barrier.c), and whether a rank with an accelerator half as fast is found to be the straggler. The log is made
up and replayed by the engine that performs nothing, so that nothing else is measured. Hosts are network namespaces of this machine
(hosts.py). Needs root, Open MPI with mpicc, iproute2; four minutes.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path[:0] = [str(TOP / "tests/bench"), str(TOP / "tests/bench/accuracy")]
import hosts  # noqa: E402
import storage  # noqa: E402
import support  # noqa: E402

HOSTS, RANKS, STEPS = 4, 8, 500
# The barrier is the wait after the accelerator's, of the task that submits to it.
OPS = re.compile(r"^begin=\d+ duration=(\d+) task=(\d+) op=\d+ (\w+)", re.M)
STEP_NS = 10e6
PINNED = ("mpirun", "-n", "2", "--bind-to", "core", "--mca", "btl_vader_single_copy_mechanism", "none")


class Bench:
    def __init__(self, reprise, work, cluster):
        self.reprise, self.work, self.cluster = reprise, work, cluster
        self.log, self.bare = work / "live.oplog", work / "barrier"
        hosts.execute([reprise.parent / "programs/sample_log", "live", self.log])
        hosts.execute(["mpicc", "-O2", "-o", self.bare, HERE / "barrier.c"])

    def started(self, ranks, words):
        return [*PINNED, *words] if ranks == 2 else self.cluster.mpirun(ranks, *words)

    def bare_wait(self, ranks):
        """Median, ns."""
        return int(re.search(r"^(\d+)$", hosts.execute(self.started(ranks, [self.bare, STEPS]))[0], re.M)[1])

    def run(self, command):
        """What the replay found, and the median wait of all ranks at a barrier, ns."""
        out, result = self.work / "run.oplog", self.work / "run.json"
        hosts.execute([*command, "-q", "-f", "--engine", "null", "-o", out, f"--json={result}"], allowed=(0, 1))
        found = json.loads(result.read_text(encoding="utf-8"))
        if found["ended"] != "complete":
            raise RuntimeError(f"the replay ended: {found['ended']}")
        dump = subprocess.run([self.reprise, "dump", out], check=True, stdout=subprocess.PIPE, text=True).stdout
        before, waits = {}, []
        for took, task, kind in OPS.findall(dump):
            if kind == "wait" and before.get(task) == "gpu_wait":
                waits.append(int(took))
            before[task] = kind
        if len(waits) < STEPS:
            raise RuntimeError(f"{len(waits)} waits at barriers were found in the run")
        return found["ranks"], statistics.median(waits)

    def replay(self, ranks):
        return self.run(self.started(ranks, [self.reprise, "replay", self.log]))

    def straggler(self):
        """Rank 1 of three has an accelerator half as fast."""
        words = ["sh", "-c", '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || set -- "$@" --gpu-speed 0.5; exec "$@"', "sh", self.reprise, "replay", self.log]
        return self.run(["mpirun", "-n", "3", "--oversubscribe", *PINNED[5:], *words])[0]


def measured(bench, rounds):
    found = {"skew 8": [], "skew 2": [], "ratio 2": [], "ratio 8": [], "bare 2": [], "bare 8": [], "replay 2": [], "replay 8": [], "straggler": []}
    for number in range(rounds):
        for ranks in (2, RANKS):
            bare = bench.bare_wait(ranks)
            told, wait = bench.replay(ranks)
            found[f"skew {ranks}"].append(told["start_skew_s"] * 1e6)
            found[f"bare {ranks}"].append(bare / 1e3)
            found[f"replay {ranks}"].append(wait / 1e3)
            found[f"ratio {ranks}"].append((STEP_NS + wait) / (STEP_NS + bare))
        told = bench.straggler()
        found["straggler"].append(100 * told["straggler_share"] if told["straggler"] == 1 else 0.0)
        print(f"round {number + 1}: " + ", ".join(f"{name} {of[-1]:.3f}" for name, of in found.items()), file=sys.stderr, flush=True)
    return found


def table(found):
    def row(what, of, unit, digits, goal, met):
        return (f"| {what} | {statistics.median(of):.{digits}f} {unit} | {min(of):.{digits}f} to {max(of):.{digits}f} | {goal}"
                f"{'' if met else ' **missed**'} |")

    def ratio(ranks):
        return f"{statistics.median(found[f'replay {ranks}']):.0f} µs beside {statistics.median(found[f'bare {ranks}']):.0f}"

    return ["| ranks that start and step together | median | range | goal |", "|---|---|---|---|",
            row(f"start, {RANKS} ranks on {HOSTS} hosts, all within", found["skew 8"], "µs", 0, "1000 µs", max(found["skew 8"]) < 1000),
            row("start, 2 pinned ranks on one host, within", found["skew 2"], "µs", 0, "1000 µs", max(found["skew 2"]) < 1000),
            row(f"step of 10 ms and barrier, 2 pinned ranks, of the time of a bare loop (at the barrier {ratio(2)})", found["ratio 2"], "×", 3, "1.1 ×",
                statistics.median(found["ratio 2"]) <= 1.1),
            row(f"… {RANKS} ranks on {HOSTS} hosts that share {os.cpu_count()} processors ({ratio(RANKS)})", found["ratio 8"], "×", 3, "-", True),
            row("share of the waits laid to the rank whose accelerator is half as fast, of 3", found["straggler"], "%", 1, "-", True)]


def main():
    arguments = support.table_parser(__doc__, rounds=5).parse_args()
    storage.own_mounts()
    os.environ.update(hosts.ENVIRONMENT)
    with storage.working_folder(arguments.dir) as work, hosts.Hosts(HOSTS, work) as cluster:
        found = measured(Bench(arguments.reprise.resolve(), work, cluster), arguments.rounds)
    support.publish(arguments, "steps", found, table(found), "tests/bench/cluster/steps.py")


if __name__ == "__main__":
    main()
