#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures preparing, planning and replaying millions of files (bench_many), and prints its table of goals.

usage: tests/bench/many.py [--bin DIR] [--dir DIR] [--files N] [--rounds N] [--write-docs]

DIR of --dir ($TMPDIR, or /tmp) holds twice 4 KiB and an inode for each of N files (1,000,000), removed after each round: about
9 GiB, and about 3 minutes a round. --write-docs: also write docs/data/many.json and docs/benchmarks.md."""
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

MIB = 1 << 20
OPENS, PATH = 2, 37  # of each file, by bench_many


def stated_of_prepare(files):
    """What docs/prepare.md says, MiB."""
    return 64 + files * (350 + 2 * PATH + 36 * OPENS) / MIB


def stated_of_replay(files, ops):
    """What docs/replay.md says, MiB."""
    return 64 + 24 + (files * (90 + PATH + 36 * OPENS + 200 + 40 * OPENS) + ops * 24) / MIB


def rows_of(found):
    rows = []

    def row(what, asked, value, unit, met=None):
        rows.append({"what": what, "asked": asked, "value": round(value, 4), "unit": unit, "met": met})

    files, ops = found["files"], found["ops"]
    ratio = 100 * found["bare_s"] / found["prepare_s"]
    row(f"prepare, {files:,} files of 4 KiB: of the speed of a bare loop on {found['threads']} threads", "≥ 80 %", ratio, "%", ratio >= 80)
    row("… files a second", "", files / found["prepare_s"], "")
    most = stated_of_prepare(files)
    row("… largest process", f"≤ {most:,.0f} MiB", found["prepare_peak_mib"], "MiB", found["prepare_peak_mib"] <= most)
    per_file = found["plan_bytes_per_file"]
    row("plan of their replay, per file", "≤ 200 B", per_file, "B", per_file <= 200)
    most = stated_of_replay(files, ops)
    row(f"replay of {ops:,} ops on them, as fast as possible: largest process", f"≤ {most:,.0f} MiB", found["replay_peak_mib"], "MiB",
        found["replay_peak_mib"] <= most)
    row("… ops a second", "", ops / found["replay_s"], "")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(TOP / "build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "many.json"
        subprocess.run([f"{options.bin}/tests/bench_many", "--dir", options.dir, "--files", str(options.files), "--rounds", str(options.rounds),
                        "--json", str(out)], check=True, stdout=sys.stderr)
        found = json.loads(out.read_text(encoding="utf-8"))
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    where = subprocess.run(["stat", "-f", "-c", "%T", options.dir], check=True, capture_output=True, text=True).stdout.strip()
    data = {"machine": f"{os.cpu_count()} x {cpu}, Linux {platform.release()}, {where}", "date": datetime.date.today().isoformat(),
            "command": "tests/bench/many.py", "rows": rows_of(found)}
    if (docs_tables.DATA / "many.json").exists():
        data = docs_tables.keep_before(data, docs_tables.load("many"))
    print("\n".join(docs_tables.benchmark_lines(data)))
    if options.write_docs:
        docs_tables.save("many", data)
        docs_tables.write()


if __name__ == "__main__":
    main()
