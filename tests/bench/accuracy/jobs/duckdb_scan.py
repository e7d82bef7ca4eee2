#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""DuckDB, an analytical database in C++, answers questions about Parquet files with two threads.

    duckdb_scan.py DIR ROUNDS     ROUNDS queries of other columns of DIR/*.parquet

Prints "span SECONDS busy 0"; marks it "span"."""

import sys
import time

import duckdb

import reprise


def main():
    base = duckdb.connect(config={"threads": 2})
    reprise.begin("span")
    begin, total = time.monotonic(), 0.0
    for number in range(int(sys.argv[2])):
        rows = base.execute(f"select key % 1000 as k, avg(c{number % 3}), quantile_cont(c{(number + 1) % 3}, 0.9) "
                            f"from read_parquet('{sys.argv[1]}/*.parquet') group by k order by k").fetchall()
        total += sum(row[1] for row in rows)
    reprise.end("span")
    print("span %.6f busy 0 total %.3f" % (time.monotonic() - begin, total))


main()
