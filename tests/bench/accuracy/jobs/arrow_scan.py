#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrow's thread pools in C++ scan a folder of Parquet files: eight threads for input, two to decode and to filter.

    arrow_scan.py DIR ROUNDS     ROUNDS scans of other columns of DIR/*.parquet; the later find some of it in memory

Prints "span SECONDS busy 0"; marks it "span"."""

import sys
import time

import pyarrow
import pyarrow.compute as compute
import pyarrow.dataset

import reprise


def main():
    pyarrow.set_cpu_count(2)
    data = pyarrow.dataset.dataset(sys.argv[1], format="parquet")
    reprise.begin("span")
    begin, total = time.monotonic(), 0.0
    for number in range(int(sys.argv[2])):
        columns = ["key", f"c{number % 3}", f"c{(number + 1) % 3}"]
        found = data.to_table(columns=columns, filter=compute.field("key") < 9000, use_threads=True)
        grouped = found.group_by("key").aggregate([(columns[1], "mean"), (columns[2], "max")])
        total += compute.sum(grouped[f"{columns[1]}_mean"]).as_py()
    reprise.end("span")
    print("span %.6f busy 0 total %.3f" % (time.monotonic() - begin, total))


main()
