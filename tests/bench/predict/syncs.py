#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: syncs.py [--system ext4|xfs] [--rounds N] [--dir DIR] [--reprise FILE] [--json FILE] [--write-docs]

Predictions of jobs that sync, beside the jobs: many new files, appends of several threads, SQLite with a rollback journal and with a
write-ahead log. Each is recorded without a limit; the model is measured on the limited device, where the job then runs.
Needs root, BPF and control groups of version 1 with blkio; five minutes."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "tests/bench"), str(TOP / "tests/bench/accuracy")]
import storage  # noqa: E402
import support  # noqa: E402

PYTHON = "/usr/bin/python3"
TABLE = """
import random, sqlite3
db = sqlite3.connect("a.db")
db.execute("create table t(k integer primary key, v blob)")
draw = random.Random(1)
db.executemany("insert into t values(?, ?)", ((i, draw.randbytes(400)) for i in range(60000)))
db.commit()
"""
UPDATES = """
import random, sqlite3
db, draw = sqlite3.connect("a.db"), random.Random(2)
%s
for i in range(%d):
    for _ in range(%d):
        db.execute("update t set v=? where k=?", (draw.randbytes(400), draw.randrange(60000)))
    db.commit()
"""
# name: what is there before, the job
JOBS = {
    "1,200 new files, every tenth synced": ("", """
import os
for i in range(1200):
    folder = "d%d" % (i % 30)
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/f%d" % i, "wb") as file:
        file.write(os.urandom(3000 + i))
        if i % 10 == 0:
            file.flush()
            os.fsync(file.fileno())
"""),
    "4 threads, 60 appends and fdatasyncs each": ("", """
import os, threading
def work(k):
    fd = os.open("t%d" % k, os.O_RDWR | os.O_CREAT)
    for i in range(60):
        os.pwrite(fd, b"x" * 8192, i * 8192)
        os.fdatasync(fd)
all = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for one in all: one.start()
for one in all: one.join()
"""),
    "SQLite, 60 commits, rollback journal": (TABLE, UPDATES % ("", 60, 10)),
    "SQLite, 200 commits, write-ahead log": (TABLE, UPDATES % (
        'db.execute("pragma journal_mode=wal")\ndb.execute("pragma synchronous=full")', 200, 5)),
}
KINDS = [(40.0, 400), (5.0, None), (20.0, 2000)]  # MB/s, requests per second


def rows_of(system, limit, work, reprise, rounds):
    rows = []
    mb_per_s, iops = limit
    with storage.Storage("syncs", storage.Kind(system, mb_per_s=mb_per_s, iops=iops), work) as disk:
        run = lambda *words, where=disk.path: subprocess.run([str(word) for word in words], cwd=where, check=True, stdout=subprocess.PIPE,
                                                             stderr=subprocess.DEVNULL, text=True).stdout
        model, log, job = work / "model.json", work / "job.oplog", disk.path / "job"
        disk.limit.set(True)
        run(reprise, "calibrate", "-q", "--storage", disk.path, "-f", "-o", model)
        disk.limit.set(False)
        for name, (before, code) in JOBS.items():
            def fresh():
                shutil.rmtree(job, ignore_errors=True)
                job.mkdir()
                run(PYTHON, "-c", before or "pass", where=job)
                disk.cool()
            fresh()
            run(reprise, "capture", "-q", "-f", "-o", log, "--", PYTHON, "-c", code, where=job)
            found = json.loads(run(reprise, "predict", log, "--storage", model, "--json"))
            real = []
            for _ in range(rounds):
                fresh()
                disk.limit.set(True)
                try:
                    begin = time.monotonic()
                    run(PYTHON, "-c", code, where=job)
                    real.append(time.monotonic() - begin)
                finally:
                    disk.limit.set(False)
            there = statistics.median(real)
            rows.append({"system": system, "mb_per_s": mb_per_s, "iops": iops, "job": name, "real": there, "range": [min(real), max(real)],
                         "predicted": found["elapsed_s"], "journal": found["journal_s"], "trust": found["trust"].upper(),
                         "error": 100 * (found["elapsed_s"] / there - 1)})
            print(rows[-1], file=sys.stderr, flush=True)
        shutil.rmtree(job, ignore_errors=True)
    return rows


def table(rows):
    lines = ["| storage | job | the job there | predicted | of that the journal | error | trust |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        limit = f"{row['mb_per_s']:g} MB/s" + (f", {row['iops']} requests/s" if row["iops"] else "")
        lines.append(f"| {row['system']}, {limit} | {row['job']} | {row['real']:.2f} s | {row['predicted']:.2f} s | {row['journal']:.2f} s | "
                     f"{row['error']:+.0f} % | {row['trust']} |")
    return lines


def main():
    parser = support.table_parser(__doc__)
    parser.add_argument("--system", choices=("ext4", "xfs"), action="append")
    arguments = parser.parse_args()
    storage.own_mounts()
    rows = []
    with storage.working_folder(arguments.dir) as work:
        for system in arguments.system or ("ext4", "xfs"):
            for limit in KINDS:
                rows += rows_of(system, limit, work, arguments.reprise.resolve(), arguments.rounds)
    support.publish(arguments, "syncs", rows, table(rows), "tests/bench/predict/syncs.py")


if __name__ == "__main__":
    main()
