#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_limit.py --bin REPRISE [--dir DIR] [--ratios 2,4,8] [--mib 768] [--write-docs]

Is a memory limit real, down to an eighth of the data? A job of three epochs reads files of 1 MiB, --mib in all, while the memory that it holds
itself grows from a quarter of the smallest limit to three quarters of it; recorded without a limit and replayed at each ratio on the file
system of DIR. Shows the group's peak beside the limit, how often it was full, kills, how far the memory held was off the recorded curve, and
what was in memory before the first epoch. Exit code 1 where one is not as asked, 77: not here. As root; two minutes.
--write-docs: also docs/data/limit.json and docs/ratios.md."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import docs_tables  # noqa: E402

JOB = """
import os, random, sys, time
folder, epochs, low, high = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) << 20, int(sys.argv[4]) << 20
names = sorted(os.listdir(folder))
held = [bytearray(os.urandom(1 << 20)) for _ in range(low >> 20)]
for epoch in range(epochs):
    random.Random(epoch).shuffle(names)
    for number, name in enumerate(names):
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
        done = (epoch * len(names) + number + 1) / (epochs * len(names))
        while len(held) << 20 < low + (high - low) * done:
            held.append(bytearray(1 << 20))
        time.sleep(0.002)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--ratios", default="2,4,8", type=lambda text: [float(one) for one in text.split(",")])
    parser.add_argument("--mib", type=int, default=768)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    reprise = str(options.bin.resolve())
    check = subprocess.run([reprise, "capture", "--check"], capture_output=True, text=True, check=False)
    if os.geteuid() != 0 or check.returncode != 0:
        print("SKIPPED: this user cannot record")
        return 77
    rows = []
    with tempfile.TemporaryDirectory(dir=options.dir) as work:
        data = pathlib.Path(work, "data")
        data.mkdir()
        block = os.urandom(1 << 20)
        for number in range(options.mib):
            (data / f"{number:05}").write_bytes(block)
        os.sync()
        least = int(options.mib / max(options.ratios))
        words = ["/usr/bin/python3", "-c", JOB, str(data), "3", str(least // 4), str(least * 3 // 4 - 12)]  # 12: Python's own
        log, root = work + "/job.oplog", work + "/root"
        subprocess.run([reprise, "capture", "-q", "-o", log, "--", *words], check=True)
        subprocess.run([reprise, "prepare", "-q", log, "--root", root], check=True)
        for ratio in options.ratios:
            result = work + "/run.json"
            subprocess.run([reprise, "replay", "-q", "-f", log, "--root", root, "--ratio", f"{ratio:g}", f"--json={result}"], check=False)
            rows.append(row(ratio, json.loads(pathlib.Path(result).read_text(encoding="utf-8"))))
            print(rows[-1], flush=True)
    if options.write_docs:
        docs_tables.save("limit", {"machine": f"{os.cpu_count()} processors, Linux {platform.release().split('-')[0]}",
                                   "date": datetime.date.today().isoformat(), "mib": options.mib, "rows": rows})
        docs_tables.write()
    return 0 if all(each["as_asked"] for each in rows) else 1


def row(ratio, result):
    memory = result["memory"]
    peak = 100 * memory["peak_bytes"] / memory["limit_bytes"]
    before = result["by_epoch"][0]["resident_before_share"] if result.get("by_epoch") else None
    off = 100 * memory["held_error"]
    asked = 95 <= peak <= 100 and memory["limit_reached"] > 0 and memory["killed"] == 0 and off <= 5 and before == 0
    return {"ratio": ratio, "limit_mib": memory["limit_bytes"] / 2**20, "job_mib": memory["job_peak_bytes"] / 2**20, "peak": peak,
            "full": memory["limit_reached"], "killed": memory["killed"], "ballast_off": off, "resident_before": before, "as_asked": asked,
            "trust": result["verdict"]["trust"]}


if __name__ == "__main__":
    sys.exit(main())
