#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A scaled log beside a recording of the same job on the larger data set: ops by kind, files, bytes, order.

    compare.py SCALED.oplog REAL.oplog [--reprise PATH] [--only dataset] [--json]

Prints each figure of both and how far they are apart. Re-use distance: how many other reads of samples lie between two
reads of the same 64 KiB of a file. Sequential share: reads that begin where the one before on the same instance
or mapping ended.
"""

import argparse
import collections
import json
import subprocess
import sys


def ops(reprise, log, only):
    command = [reprise, "dump", "--json", log] + (["--only", only] if only else [])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            yield json.loads(line)


def figures(reprise, log, only):
    kinds, files, size = collections.Counter(), set(), 0
    reads = sequential = 0
    ends, seen, accesses, distances = {}, {}, 0, []
    mapped, last = {}, None
    for op in ops(reprise, log, only):
        kind = op["kind"]
        kinds[kind] += 1
        path = op.get("path")
        if kind == "mmap":
            mapped[op["map"]] = path
        path = path or mapped.get(op.get("map"))
        moved = op.get("result", 0) if kind in ("read", "pread", "readv", "preadv") else \
            (sum(op["list"][1::2]) if op.get("list") else op.get("size", 0)) if kind == "touch" else 0
        if moved <= 0 or not path:
            continue
        files.add(path)
        size += moved
        reads += 1
        stream = ("map", op["map"]) if kind == "touch" else op["handle"]
        sequential += ends.get(stream) == op["offset"]
        ends[stream] = op["offset"] + moved
        key = (path, op["offset"] >> 16)
        if key != last:
            if key in seen:
                distances.append(accesses - seen[key])
            seen[key] = accesses
            accesses += 1
        last = key
    distances.sort()
    of = lambda share: distances[int(len(distances) * share)] if distances else 0
    out = {"files read": len(files), "bytes read": size, "reads": reads,
           "sequential share": sequential / max(reads, 1),
           "re-use mean": sum(distances) / max(len(distances), 1), "re-use p10": of(0.1), "re-use p50": of(0.5),
           "re-use p90": of(0.9)}
    out.update({"ops " + kind: count for kind, count in sorted(kinds.items())})
    return out


def off(name, a, b):
    """Percent; points of a share."""
    return (a - b) * 100 if name.endswith("share") else (a - b) / b * 100 if b else (0.0 if a == b else float("inf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scaled")
    parser.add_argument("real")
    parser.add_argument("--reprise", default="build/release/reprise")
    parser.add_argument("--only", default="dataset", help="files with this role or path; empty: all")
    parser.add_argument("--tolerance", type=float, default=2.0, help="percent")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    scaled = figures(arguments.reprise, arguments.scaled, arguments.only)
    real = figures(arguments.reprise, arguments.real, arguments.only)
    rows, worst = [], 0.0
    for name in list(real) + [name for name in scaled if name not in real]:
        a, b = scaled.get(name, 0), real.get(name, 0)
        rows.append((name, a, b, off(name, a, b)))
        worst = max(worst, abs(rows[-1][3]))
    if arguments.json:
        print(json.dumps({name: {"scaled": a, "real": b, "off_percent": apart} for name, a, b, apart in rows}))
    else:
        print("%-18s %14s %14s %9s" % ("", "scaled", "real", "off"))
        for name, a, b, apart in rows:
            mark = "  <" if abs(apart) > arguments.tolerance else ""
            print("%-18s %14s %14s %8.2f%%%s" % (name, "%.4g" % a if isinstance(a, float) else a,
                                               "%.4g" % b if isinstance(b, float) else b, apart, mark))
    return 0 if worst <= arguments.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
