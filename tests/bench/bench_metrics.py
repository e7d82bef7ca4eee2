#!/usr/bin/env python3
# usage: bench_metrics.py --bin REPRISE [--rounds 9] [--ops 1900000] [--dir DIR]
# What --metrics costs a replay: time per op without it and with it, scraped every 100 ms, in turn. The null engine is the
# replayer alone; cached reads are 4 KiB preads of one file in memory, by one task as fast as possible and by two tasks.
# SPDX-License-Identifier: MIT
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

BLOCKS = 16384  # of 4 KiB


def make_log(folder, reprise, name, ops, tasks):
    """By way of strace's form, which has tasks."""
    lines = []
    for task in range(tasks):
        pid = 100 + task
        lines.append(f'{pid} 1700000000.000000 openat(AT_FDCWD, "/data/one", O_RDONLY) = 3</data/one> <0.000001>')
        at = 7 + task
        for op in range(ops // tasks):
            at = (at * 1103515245 + 12345) % (1 << 31)
            offset = at % BLOCKS * 4096
            lines.append(f'{pid} {1700000001 + op // 1_000_000}.{op % 1_000_000:06d} pread64(3</data/one>, ""..., 4096, {offset}) = 4096 <0.000001>')
    lines.sort(key=lambda line: line.split(" ", 2)[1])
    (folder / f"{name}.strace").write_text("\n".join(lines) + "\n")
    subprocess.run([reprise, "import", "-q", folder / f"{name}.strace", "-o", folder / f"{name}.oplog"], check=True,
                   stderr=subprocess.DEVNULL)
    (folder / f"{name}.strace").unlink()
    return folder / f"{name}.oplog"


def scrape(errors, ended, seen):
    url = None
    while not ended.is_set():
        found = url or re.search(r"^metrics: (\S+)$", errors.read_text(), re.M)
        try:
            if found:
                url = url or found[1]
                seen.append(len(urllib.request.urlopen(url, timeout=5).read()))
        except OSError:
            pass
        time.sleep(0.1)


def run(folder, command, watched):
    """ns per op, and how often it was scraped."""
    errors, seen, ended = folder / "errors", [], threading.Event()
    errors.write_text("")
    with open(errors, "wb") as err:
        watcher = threading.Thread(target=scrape, args=(errors, ended, seen))
        watcher.start() if watched else None
        subprocess.run([*command, *(["--metrics", ":0"] if watched else []), "--json"], stdout=open(folder / "run", "wb"),
                       stderr=err, check=False)
        ended.set()
        watcher.join() if watched else None
    result = json.loads((folder / "run").read_text())
    return result["elapsed_s"] * 1e9 / result["ops"], len(seen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ops", type=int, default=1_900_000)
    parser.add_argument("--dir")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = pathlib.Path(name)
        cases = []
        for tasks in (1, 2):
            log = make_log(folder, given.bin, f"tasks{tasks}", given.ops, tasks)
            root = folder / f"root{tasks}"
            subprocess.run([given.bin, "prepare", "-q", log, "--root", root], check=True)
            (root / "data/one").read_bytes()
            read = ["replay", log, "--root", root, "--cache", "warm"]
            cases.append((f"null engine, {tasks} task(s)", ["replay", log, "--engine", "null", "--pace", "afap"]))
            cases.append((f"cached reads, afap, {tasks} task(s)", [*read, "--pace", "afap"]))
            cases.append((f"cached reads, causal, {tasks} task(s)", [*read, "--pace", "causal"]))
        print(f"{os.cpu_count()} processors, {given.rounds} rounds in turn, {given.ops} ops; ns per op and task's share")
        for label, command in cases:
            times = {False: [], True: []}
            scrapes = 0
            for turn in range(given.rounds):
                for watched in (False, True) if turn % 2 == 0 else (True, False):
                    ns, seen = run(folder, [given.bin, *command], watched)
                    times[watched].append(ns)
                    scrapes += seen
            text = []
            for watched, what in ((False, "without"), (True, "with")):
                t = sorted(times[watched])
                text.append(f"{what} {statistics.median(t):.1f} (best {t[0]:.1f})")
            change = statistics.median(times[True]) / statistics.median(times[False]) - 1
            best = min(times[True]) / min(times[False]) - 1
            pairs = statistics.median(b / a for a, b in zip(times[False], times[True])) - 1
            print(f"{label:32} {text[0]}, {text[1]}: {change:+.1%} (best {best:+.1%}, of pairs {pairs:+.1%}); {scrapes / given.rounds:.0f} scrapes a run", flush=True)


main()
