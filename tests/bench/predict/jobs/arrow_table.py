#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads an Arrow IPC file by pyarrow's memory_map.

    arrow_table.py make FILE MIB        a table of eight columns
    arrow_table.py scan FILE            sums of three of the columns, batch after batch
    arrow_table.py rows FILE COUNT      COUNT rows anywhere, all columns of each

Prints "span SECONDS busy 0"; marks it "span"."""

import random
import sys
import time

import pyarrow
import pyarrow.compute

ROWS = 65_536  # of a batch


def make(path, mib):
    import numpy  # only here: reading shall not load it

    source = numpy.random.default_rng(1)
    schema = pyarrow.schema([(f"c{i}", pyarrow.float64()) for i in range(8)])
    with pyarrow.OSFile(path, "wb") as out, pyarrow.ipc.new_file(out, schema) as writer:
        for _ in range(mib * (1 << 20) // (ROWS * 8 * 8)):
            writer.write_batch(pyarrow.record_batch([source.random(ROWS) for _ in range(8)], schema=schema))


def scan(table):
    return [pyarrow.compute.sum(table.column(name)).as_py() for name in ("c1", "c4", "c6")]


def rows(table, count):
    source, total = random.Random(7), 0.0
    for _ in range(count):
        at = source.randrange(table.num_rows)
        total += sum(column[at].as_py() for column in table.columns)
    return total


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
        return
    import reprise

    pyarrow.set_cpu_count(1)
    reprise.begin("span")
    begin = time.monotonic()
    with pyarrow.memory_map(sys.argv[2]) as source:
        table = pyarrow.ipc.open_file(source).read_all()
        done = scan(table) if sys.argv[1] == "scan" else rows(table, int(sys.argv[3]))
    reprise.end("span")
    print("span %.6f busy 0 result %s" % (time.monotonic() - begin, done))


main()
