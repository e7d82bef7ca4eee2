#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares predictions with the real program on slow storage, and prints a table in Markdown.

A round measures a model of each slow storage (calibrate --storage), records each job on fast storage, cold, and on each slow
one runs the real job, cold, between the prediction and, with --replay, the replay of that recording. Medians over the rounds are
compared. See README.md beside this file. Exit code 77: not on this machine.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "accuracy"))
import jobs  # noqa: E402
import measure  # noqa: E402
import storage  # noqa: E402

PLACES = {"25 MB/s": ("bps", 25_000_000), "500 requests/s": ("iops", 500)}
SIZE_MIB = 4096


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="names of jobs; all if none is given")
    parser.add_argument("--bin", type=pathlib.Path, default=jobs.TOP / "build" / "release", help="build folder")
    parser.add_argument("--before", type=pathlib.Path, metavar="REPRISE", help="another reprise, whose models and predictions stand beside")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has pyarrow, lmdb and numpy [default: this one]")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="for images; needs 12 GB")
    parser.add_argument("--memory", action="store_true", help="devices in memory (zram) instead of images: little disturbs them")
    parser.add_argument("--out", type=pathlib.Path, default=jobs.TOP / "build" / "predict", help="folder of the results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--replay", action="store_true", help="replay, too")
    parser.add_argument("--keep", type=pathlib.Path, help="keep models and recordings of the first round here")
    parser.add_argument("--list", action="store_true", help="name the jobs and stop")
    return parser.parse_args()


def all_jobs(python):
    at = HERE / "jobs"

    def script(name, *words):
        return (python, at / name, *words)

    found = [
        jobs.Job("arrow-scan", "table.arrow", script("arrow_table.py", "scan", "{data}")),
        jobs.Job("arrow-rows", "table.arrow", script("arrow_table.py", "rows", "{data}", 100)),
        jobs.Job("lmdb", "tree.mdb", script("tree_lookup.py", "read", "{data}", 4000)),
        jobs.Job("tokens", "tokens.bin", script("tokens.py", "{data}", 60)),
        jobs.Job("mapped-sequential", "plain.bin", ("{bin}/mapped", "{data}", "sequential")),
        jobs.Job("mapped-together", "plain.bin", ("{bin}/mapped", "{data}", "together")),
        jobs.Job("mapped-random", "plain.bin", ("{bin}/mapped", "{data}", "random", 600)),
        # Plain reads, one program by one thread, one by two that hand over.
        jobs.Job("md5sum", "plain.bin", ("md5sum", "{data}"), span="command"),
        jobs.Job("queue", "files", (python, HERE.parent / "accuracy/jobs/thread_queue.py", "{data}", 60)),
    ]
    return {job.name: job for job in found}


def make_data(folder, wanted, python):
    jobs.make_data(folder, wanted & {"files"}, False)
    source = random.Random(17)
    for name, mib in (("plain.bin", 96), ("tokens.bin", 64)):
        if name in wanted:
            (folder / name).write_bytes(b"".join(source.randbytes(1 << 20) for _ in range(mib)))
    for name, maker, mib in (("table.arrow", "arrow_table.py", 160), ("tree.mdb", "tree_lookup.py", 100)):
        if name in wanted:
            subprocess.run([python, HERE / "jobs" / maker, "make", folder / name, str(mib)], check=True)


class Throttle:
    """`what` is bps or iops; of the group of this process and of the root group, where the kernel's writers are."""

    def __init__(self, device, what, value):
        self.device, self.what, self.value = device, what, value
        self.groups = storage.Limit(device, value).groups

    def set(self, on):
        for group in self.groups:
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_{self.what}_device").write_text(f"{self.device} {self.value if on else 0}\n")


class Place(storage.Storage):
    """Unlimited where `what` is None."""

    def __init__(self, name, folder, memory, what=None, value=0):
        super().__init__(name, "ext4", None, folder, memory=memory, size_mib=SIZE_MIB)
        self.what, self.value = what, value

    def cool(self):
        """Another mount namespace may hold the file system: then it is mounted again with all its pages."""
        super().cool()
        for root, _folders, files in os.walk(self.path):
            for name in files:
                with open(os.path.join(root, name), "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _free_device(self):
        for _ in range(60):  # for the same reason
            try:
                super()._free_device()
                return
            except OSError:
                time.sleep(0.5)
        print(f"predict: {self.device} is left: another mount namespace holds its file system", file=sys.stderr)

    def __enter__(self):
        super().__enter__()
        if self.what:
            number = (pathlib.Path("/sys/block") / self.device.name / "dev").read_text().strip()
            self.limit = Throttle(number, self.what, self.value)
        return self


def check(reprise, python):
    def skip(why):
        print(f"SKIPPED: {why}")
        sys.exit(77)

    if os.geteuid() != 0:
        skip("recording and mounting need root")
    if not json.loads(subprocess.run([reprise, "capture", "--check", "--json"], stdout=subprocess.PIPE).stdout)["can_record"]:
        skip("this machine cannot record")
    if subprocess.run([python, "-c", "import pyarrow, lmdb, numpy"], stderr=subprocess.DEVNULL).returncode != 0:
        skip(f"{python} has no pyarrow, lmdb or numpy: make a virtual environment, and name its interpreter by --python")
    if missing := measure.has_tools(["losetup", "mkfs.ext4", "cc", "md5sum"]):
        skip(f"missing: {', '.join(missing)}")


def model_of(reprise, place, path):
    with measure.limited(place):
        measure.execute([reprise, "calibrate", "--storage", place.path, "-q", "-f", "-o", path])
    return path


def predicted(bench, reprise, job, log, model, out):
    measure.execute([reprise, "predict", "-q", "-f", log, "--storage", model, "-o", out])
    return bench.read_log(job, out).seconds


class Session:
    def __init__(self, bench, arguments, fast, slow, folder):
        self.bench, self.arguments, self.fast, self.slow, self.folder = bench, arguments, fast, slow, folder

    def round(self, number, wanted):
        tools = {"predicted_s": self.bench.reprise}
        if self.arguments.before:
            tools["before_s"] = str(self.arguments.before.resolve())
        models = {(name, tool): model_of(path, place, self.folder / f"model-{index}-{tool}.json")
                  for index, (name, place) in enumerate(self.slow.items()) for tool, path in tools.items()}
        for job in wanted:
            log = self.folder / f"{job.name}.oplog"
            recorded = self.bench.record(job, self.fast, "cold", log).seconds
            if number == 0 and self.arguments.keep:
                measure.execute(["cp", log, *models.values(), self.arguments.keep])
            for name, place in self.slow.items():
                row = {"job": job.name, "place": name, "round": number, "recorded_s": recorded}
                for tool, path in tools.items():
                    row[tool] = predicted(self.bench, path, job, log, models[name, tool], self.folder / "predicted.oplog")
                runs = [lambda: ("real_s", self.bench.real(job, place, "cold").seconds)]
                if self.arguments.replay:
                    runs.append(lambda: ("replayed_s", self.bench.replay(job, log, place, "cold").seconds))
                for run in runs[:: 1 if number % 2 == 0 else -1]:
                    key, seconds = run()
                    row[key] = seconds
                yield row


def percent(value, real):
    return f"{100 * (value / real - 1):+.1f}"


def table(rows):
    sides = [(key, title) for key, title in (("predicted_s", "predicted"), ("before_s", "predicted before"), ("replayed_s", "replayed"))
             if key in rows[0]]
    head = ["storage", "job", "recorded s", "real s", "real, least … most"] + [word for _, title in sides for word in (f"{title} s", "error %")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    errors = {}
    cells = {}
    for row in rows:
        cells.setdefault((row["place"], row["job"]), []).append(row)
    for (place, job), mine in cells.items():
        reals = [row["real_s"] for row in mine]
        real = statistics.median(reals)
        words = [place, job, f"{statistics.median(row['recorded_s'] for row in mine):.3f}", f"{real:.3f}", f"{min(reals):.3f} … {max(reals):.3f}"]
        for key, _ in sides:
            value = statistics.median(row[key] for row in mine)
            errors.setdefault(key, []).append(100 * (value / real - 1))
            words += [f"{value:.3f}", percent(value, real)]
        lines.append("| " + " | ".join(words) + " |")
    lines.append("")
    for key, title in sides:
        sizes = [abs(error) for error in errors[key]]
        lines.append(f"{title}: mean |error| {statistics.mean(sizes):.1f} %, mean {statistics.mean(errors[key]):+.1f} %, worst {max(sizes):.1f} %")
    return "\n".join(lines)


def run(arguments, wanted, reprise, rows):
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack, open(arguments.out / "runs.jsonl", "w", encoding="utf-8") as out:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-predict-", dir=arguments.dir)))
        make_data(folder / "data", {job.data for job in wanted}, arguments.python)
        (folder / "bin").mkdir()
        subprocess.run(["cc", "-O2", "-Wall", "-I", jobs.TOP / "markers", "-o", folder / "bin" / "mapped", HERE / "jobs/mapped.c", "-pthread"],
                       check=True)
        fast = stack.enter_context(Place("fast", folder, arguments.memory))
        slow = {name: stack.enter_context(Place(f"slow{index}", folder, arguments.memory, what, value)) for index, (name, (what, value)) in enumerate(PLACES.items())}
        session = Session(measure.Bench(reprise, folder, folder / "data"), arguments, fast, slow, folder)
        for number in range(arguments.rounds):
            for row in session.round(number, wanted):
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(" ".join(f"{key}={value if isinstance(value, (str, int)) else round(value, 3)}" for key, value in row.items()), file=sys.stderr, flush=True)


def main():
    arguments = options()
    known = all_jobs(arguments.python)
    if arguments.list:
        print("\n".join(known))
        return
    if unknown := set(arguments.jobs) - set(known):
        sys.exit(f"predict: no such job: {', '.join(sorted(unknown))}; --list names them")
    reprise = (arguments.bin / "reprise").resolve()
    check(reprise, arguments.python)
    measure.backed = 256
    rows = []
    try:
        run(arguments, [job for name, job in known.items() if not arguments.jobs or name in arguments.jobs], reprise, rows)
    finally:
        if rows:
            text = table(rows)
            (arguments.out / "table.md").write_text(text + "\n")
            print(text)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
