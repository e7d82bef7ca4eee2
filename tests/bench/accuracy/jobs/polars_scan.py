#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Polars, data frames in Rust, scans Parquet files with a pool of two threads.

    polars_scan.py DIR ROUNDS     ROUNDS lazy queries of other columns of DIR/*.parquet

Prints "span SECONDS busy 0"; marks it "span"."""

import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "2"
import polars  # noqa: E402

import reprise  # noqa: E402


def main():
    reprise.begin("span")
    begin, total = time.monotonic(), 0.0
    for number in range(int(sys.argv[2])):
        one, other = f"c{number % 3}", f"c{(number + 1) % 3}"
        found = (polars.scan_parquet(f"{sys.argv[1]}/*.parquet").filter(polars.col("key") < 9000)
                 .group_by("key").agg(polars.col(one).mean(), polars.col(other).quantile(0.9)).collect())
        total += found[one].sum()
    reprise.end("span")
    print("span %.6f busy 0 total %.3f" % (time.monotonic() - begin, total))


main()
