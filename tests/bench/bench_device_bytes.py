#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_device_bytes.py --bin BUILD_FOLDER [--dir DIR]

What a replay says its device read and wrote, beside the device's own counters: six jobs with processes and threads, each
recorded, and replayed from a cold cache on a loop device of its own. A table; exit code 1 where one of them is more than
1 % and 1 MiB off. Needs root and BPF. Exit code 77: not here."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "accuracy"))
from storage import Storage, command  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
options = arguments.parse_args()
reprise = str((options.bin / "reprise").resolve())

PRELUDE = """
import mmap, os, random, threading
random.seed(1)
MIB = 1 << 20
def whole(name):
    with open(name, "rb", buffering=0) as f:
        while f.read(1 << 17): pass
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid
def wait(pids):
    for pid in pids: os.waitpid(pid, 0)
"""
JOBS = {
    "one reader, in order": """
whole("a")
""",
    "4 forked readers": """
wait([child(lambda n=n: whole(n)) for n in "abcd"])
""",
    "a child's child reads, too": """
def deeper():
    wait([child(lambda: whole("b"))])
    whole("c")
wait([child(deeper)])
whole("a")
""",
    "4 threads, random preads": """
def some():
    fd = os.open("a", os.O_RDONLY)
    for _ in range(300): os.pread(fd, 16384, random.randrange(0, 60) * MIB + random.randrange(0, 250) * 4096)
threads = [threading.Thread(target=some) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
""",
    "mapped, touched in 2 processes": """
def touch(name):
    with open(name, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        sum(m[i] for i in range(0, len(m), 4096))
wait([child(lambda: touch("a")), child(lambda: touch("b"))])
""",
    "readers and writers with fsync": """
def write(name):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
    for _ in range(64): os.write(fd, os.urandom(MIB))
    os.fsync(fd)
wait([child(lambda: write("out1")), child(lambda: write("out2")), child(lambda: whole("d"))])
""",
}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def one(name, source, folder, storage):
    job = folder / "job"
    job.mkdir(exist_ok=True)
    for file in job.iterdir():
        file.unlink()
    for file in "abcd":
        with open(job / file, "wb") as out:
            for _ in range(64):
                out.write(os.urandom(1 << 20))
    script = folder / "job.py"
    script.write_text(PRELUDE + source)
    log = folder / "job.oplog"
    subprocess.run([reprise, "capture", "-q", "-f", "-o", log, "--", sys.executable, script], cwd=job, check=True)
    root = storage.path / "root"
    subprocess.run([reprise, "prepare", "-q", log, "--root", root, "--map", f"{job}=."], check=True)
    storage.cool()
    result = folder / "run.json"
    result.unlink(missing_ok=True)
    # 1: this machine was too busy to keep the time, which changes no bytes.
    done = subprocess.run([reprise, "replay", "-q", log, "--root", root, f"--json={result}"], stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{name}: replay: exit code {done.returncode}")
    os.sync()
    subprocess.run(["rm", "-rf", str(root)], check=True)
    run = json.loads(result.read_text())
    if not run["same_job"]:
        raise RuntimeError(f"{name}: {run['not_same_job']}")
    return run


def main():
    check = json.loads(subprocess.run([reprise, "capture", "--check", "--json"], capture_output=True).stdout)
    if os.geteuid() != 0 or not check["can_record"]:
        skip("recording needs root and BPF")
    bad = 0
    print(f"{'job':34} {'read, MiB':>10} {'device':>10} {'off':>8}   {'written':>9} {'device':>9}")
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        folder = pathlib.Path(folder)
        with Storage("bytes", "ext4", folder=folder, size_mib=2048) as storage:
            for name, source in JOBS.items():
                run = one(name, source, folder, storage)
                said, counted = run["device_read_bytes"], run["device_counter_read_bytes"]
                wrote, wrote_counted = run["device_write_bytes"], run["device_counter_write_bytes"]
                if None in (said, counted, wrote, wrote_counted):
                    print(f"{name}: not known here")
                    bad += 1
                    continue
                off = said / counted - 1 if counted else 0.0
                worse = abs(said - counted) > max(0.01 * counted, 1 << 20) or wrote != wrote_counted
                bad += worse
                print(f"{name:34} {said / (1 << 20):10.2f} {counted / (1 << 20):10.2f} {off:+8.2%}   "
                      f"{wrote / (1 << 20):9.2f} {wrote_counted / (1 << 20):9.2f}{'   WRONG' if worse else ''}", flush=True)
    print(f"{len(JOBS) - bad} of {len(JOBS)} jobs within 1 % (or 1 MiB)")
    return bad != 0


sys.exit(main())
