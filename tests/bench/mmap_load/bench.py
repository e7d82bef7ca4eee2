# SPDX-License-Identifier: MIT
"""What other access would do for a model that is loaded by mmap: `reprise replay` with what-if options beside the real program
changed that way, both on storage with a delay per request (tests/bench/accuracy/slow_fuse.c).

  sudo python3 tests/bench/mmap_load/bench.py --folder DIR [--bytes N] [--runs N] [--delay-us N] [ROW...]

DIR lies on a file system on a disk, with three times N bytes free; what is made there is removed. Each job is recorded once, on
that file system; each row is run in turn, real and replayed, with the pages of the slow file system dropped before (the folder
below it stays in memory, so that a request takes the delay). Times are of the whole process.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
READ_AHEAD_KIB, MUCH_READ_AHEAD_KIB = 128, 4096
RECORDINGS = 5

# row: (what it says, recorded as, the real program, options of replay, read-ahead of the mount)
ROWS = {
    "reads": ("reads, as recorded", "read", ["read"], [], READ_AHEAD_KIB),
    "mmap": ("reads -> mmap", "read", ["mmap"], ["--read-as-mmap"], READ_AHEAD_KIB),
    "direct": ("reads -> direct reads", "read", ["read", "--direct"], ["--direct"], READ_AHEAD_KIB),
    "direct-staged": ("reads -> direct reads, one buffer", "read", ["read", "--direct", "--staged"], ["--direct"], READ_AHEAD_KIB),
    "as-is": ("mmap, as recorded", "mmap", ["mmap"], [], READ_AHEAD_KIB),
    "read": ("mmap -> reads of 1 MiB", "mmap", ["read"], ["--mmap-as-read"], READ_AHEAD_KIB),
    "read-direct": ("mmap -> direct reads of 1 MiB", "mmap", ["read", "--direct"], ["--mmap-as-read", "--direct"], READ_AHEAD_KIB),
    "read-staged": ("mmap -> reads of 1 MiB, one buffer", "mmap", ["read", "--staged"], ["--mmap-as-read"], READ_AHEAD_KIB),
    "direct-read-staged": ("mmap -> direct reads of 1 MiB, one buffer", "mmap", ["read", "--direct", "--staged"],
                           ["--mmap-as-read", "--direct"], READ_AHEAD_KIB),
    "prefetch": ("mmap, prefetched", "mmap", ["mmap", "--prefetch"], ["--prefetch"], READ_AHEAD_KIB),
    "read-ahead": ("mmap, read-ahead of 4 MiB", "mmap", ["mmap"], [], MUCH_READ_AHEAD_KIB),
}


def run(*words, good=(0,), **more):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode not in good:
        raise SystemExit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


class Slow:
    """slow_fuse between DIR/below and DIR/slow, fast except inside `with`."""

    def __init__(self, folder, delay_us):
        self.at, below = folder / "slow", folder / "below"
        self.at.mkdir()
        below.mkdir()
        flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
        run("cc", "-O2", "-o", folder / "slow_fuse", TOP / "tests/bench/accuracy/slow_fuse.c", *flags, "-pthread")
        self.server = subprocess.Popen([folder / "slow_fuse", below, self.at, str(delay_us)])
        while not os.path.ismount(self.at):
            if self.server.poll() is not None:
                raise SystemExit("slow_fuse ended")
            time.sleep(0.05)
        found = os.stat(self.at).st_dev
        self.setting = pathlib.Path(f"/sys/class/bdi/{os.major(found)}:{os.minor(found)}/read_ahead_kb")

    def read_ahead(self, kib):
        self.setting.write_text(str(kib))

    def switch(self, to):
        """Of two signals that are on their way the second may come first."""
        self.server.send_signal(to)
        time.sleep(0.2)

    def __enter__(self):
        self.switch(signal.SIGUSR1)

    def __exit__(self, *_):
        self.switch(signal.SIGUSR2)

    def end(self):
        run("umount", self.at)
        self.server.wait()


def drop(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def real(slow, program, model):
    drop(model)
    with slow:
        begin = time.monotonic()
        run(sys.executable, HERE / "load.py", *program, model)
        return time.monotonic() - begin


def replayed(reprise, slow, log, root, options):
    with slow:
        out = run(reprise, "replay", log, "--root", root, "--cache", "cold", "--json", *options, good=(0, 1))
    result = json.loads(out)
    for failure in result["fidelity"]["failures"] + result["not_same_job"]:
        print(f"  {failure}", file=sys.stderr)
    return result["elapsed_s"], result


def record(reprise, folder, job, model):
    """The fastest of several: memory that is new to a virtual machine makes touching it ten times as dear, by chance."""
    best, least = folder / f"{job}.oplog", None
    for turn in range(RECORDINGS):
        drop(model)
        log = folder / f"{job}-{turn}.oplog"
        out = run(reprise, "capture", "-o", log, "--", sys.executable, HERE / "load.py", job, model)
        seconds = float(re.search(r"^(\d+\.\d+)$", out, re.MULTILINE).group(1))
        if least is None or seconds < least:
            least = seconds
            log.rename(best)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--reprise", default=TOP / "build/release/reprise")
    parser.add_argument("--bytes", type=int, default=2_000_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delay-us", type=int, default=1000)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], metavar="ROW")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows = {name: ROWS[name] for name in arguments.rows or ROWS}
    folder = arguments.folder.resolve() / "mmap_load"
    folder.mkdir(parents=True)
    slow = None
    try:
        slow = Slow(folder, arguments.delay_us)
        jobs = {}
        fast = folder / "model.safetensors"
        run(sys.executable, HERE / "load.py", "make", fast, "--bytes", arguments.bytes)
        model = slow.at / "model.safetensors"
        shutil.copyfile(fast, model)
        for job in sorted({row[1] for row in rows.values()}):
            jobs[job] = record(arguments.reprise, folder, job, fast)
        os.unlink(fast)
        print(f"{arguments.bytes / 1e9:g} GB, {arguments.delay_us / 1000:g} ms per request, {arguments.runs} runs: median (least ... most)\n")
        with slow:
            run(arguments.reprise, "calibrate", "--storage", slow.at, "-o", folder / "model.json")
        print("| access | real s | replayed s | error % | predicted s | error % |")
        print("|---|---|---|---|---|---|")
        prepared = None
        for name, (what, job, program, options, read_ahead) in rows.items():
            if prepared != job:
                shutil.rmtree(slow.at / "root", ignore_errors=True)
                run(arguments.reprise, "prepare", jobs[job], "--root", slow.at / "root")
                prepared = job
            for path in (folder / "below").rglob("*"):
                if path.is_file():
                    warm(path)
            slow.read_ahead(read_ahead)
            reals, here = [], []
            for _ in range(arguments.runs):
                reals.append(real(slow, program, model))
                seconds, result = replayed(arguments.reprise, slow, jobs[job], slow.at / "root", options)
                here.append(seconds)
            shown = [f"{statistics.median(times):.2f} ({min(times):.2f} ... {max(times):.2f})" for times in (reals, here)]
            error = (statistics.median(here) / statistics.median(reals) - 1) * 100
            more = ["--read-ahead", f"{read_ahead}KiB"] if read_ahead != READ_AHEAD_KIB else []
            predicted = json.loads(run(arguments.reprise, "predict", jobs[job], "--storage", folder / "model.json", "--json", *options, *more,
                                       good=(0, 1)))["elapsed_s"]
            beside = (predicted / statistics.median(reals) - 1) * 100
            print(f"| {what} | {shown[0]} | {shown[1]} | {error:+.1f} | {predicted:.2f} | {beside:+.1f} |", flush=True)
            if result["access"]:
                print(f"  {result['access']['says']}", file=sys.stderr)
    finally:
        if slow:
            slow.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
