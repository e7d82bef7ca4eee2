#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what rank 0 does at the end of a run of many ranks (bench_ranks): joining their logs and merging their results.

usage: tests/bench/ranks.py [--bin DIR] [--dir DIR] [--ranks N] [--ops M] [--rounds N] [--write-docs]

DIR of --dir ($TMPDIR, or /tmp) holds twice the logs of N ranks (64) of M ops (10,000,000), about 2 x 4 GB, removed at the end. They should fit
into the page cache. --write-docs: also write docs/data/ranks.json and docs/scale.md."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))
import docs_tables  # noqa: E402


def rows_of(found):
    rows = []

    def row(what, asked, value, unit, met=None):
        rows.append({"what": what, "asked": asked, "value": round(value, 4), "unit": unit, "met": met})

    gigabytes = found["log_bytes"] / 1e9
    rate = gigabytes / found["join_s"]
    each = f"{found['ranks']} ranks of {found['ops']:,} ops"
    row(f"logs of {each}, {gigabytes:.2f} GB, joined", "≥ 1 GB/s", rate, "GB/s", rate >= 1)
    row("… the same bytes into one file by `read` and `write`, as `cat` does", "", gigabytes / found["copy_s"], "GB/s")
    row("… by `copy_file_range`", "", gigabytes / found["copy_in_kernel_s"], "GB/s")
    row("… of the speed of `cat`", "", 100 * found["copy_s"] / found["join_s"], "%")
    row("… processor time: of that of `cat`", "", 100 * found["join_cpu_s"] / found["copy_cpu_s"], "%")
    row("… ops a second that are joined, none of them decoded", "", found["ranks"] * found["ops"] / found["join_s"] / 1e6, "M ops/s")
    # What formats/oplog/join.h says: the largest section and 56 bytes for each block; and the program.
    most = 64
    row("… largest process", f"≤ {most} MiB", found["join_peak_mib"], "MiB", found["join_peak_mib"] <= most)
    row(f"results and histograms of {each}, {found['result_bytes'] / 1e6:.1f} MB, merged in", "", found["reduce_s"], "s")
    row("… memory beside them", "", found["reduce_mib"], "MiB")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(TOP / "build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--ops", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "ranks.json"
        subprocess.run([f"{options.bin}/tests/bench_ranks", "--dir", options.dir, "--ranks", str(options.ranks), "--ops", str(options.ops),
                        "--rounds", str(options.rounds), "--json", str(out)], check=True, stdout=sys.stderr)
        found = json.loads(out.read_text(encoding="utf-8"))
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    where = subprocess.run(["stat", "-f", "-c", "%T", options.dir], check=True, capture_output=True, text=True).stdout.strip()
    data = {"machine": f"{os.cpu_count()} x {cpu}, Linux {platform.release()}, {where}", "date": datetime.date.today().isoformat(),
            "command": "tests/bench/ranks.py", "rows": rows_of(found)}
    if (docs_tables.DATA / "ranks.json").exists():
        data = docs_tables.keep_before(data, docs_tables.load("ranks"))
    print("\n".join(docs_tables.benchmark_lines(data)))
    if options.write_docs:
        docs_tables.save("ranks", data)
        docs_tables.write()


if __name__ == "__main__":
    main()
