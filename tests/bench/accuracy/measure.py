# SPDX-License-Identifier: MIT
"""Owns one run of anything: a job for real, its recording, its replay, each in a cold or warm state of its storage; and what is
predicted of it."""

import array
import contextlib
import dataclasses
import json
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import inflight
from jobs import TOP, parse
from storage import die_with_parent


@dataclasses.dataclass
class Run:
    """What one run showed. `busy` is the accelerator's time; None where there is none."""

    seconds: float
    busy: float | None = None
    more: dict = dataclasses.field(default_factory=dict)
    stolen: float = 0.0  # share of the processors that the host of a virtual machine took meanwhile
    reported: float = 0.0  # MiB of free memory that it was told to take back meanwhile
    work: float = 0.0  # seconds that `work_seconds` took, mean of just before and just after

    def au(self):
        return self.busy / self.seconds if self.busy else None


MADV_POPULATE_WRITE = 23  # <linux/mman.h>
priority = 0  # of all that is measured; see --nice
backed = 0  # MiB of memory that are used just before each run; see --backed


def prepare_child():
    """Where sessions are scheduled as groups, the priority of the group counts; every run is a session of its own."""
    die_with_parent()
    if priority:
        os.nice(priority)
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/self/autogroup").write_text(str(priority))


def execute(words, allowed=(0,)):
    return timed(words, allowed)[0]


def timed(words, allowed=(0,)):
    """(output, seconds from the program's start on). In a session of its own, so that nothing of it outlives an interruption."""
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True, preexec_fn=prepare_child, env={**os.environ, "PYTHONPATH": str(TOP / "markers" / "python"),
                                                          "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"})
    begin = time.monotonic()  # Popen returns when the program has taken the place of the child
    try:
        text = child.communicate()[0]
        took = time.monotonic() - begin
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    if child.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {child.returncode}\n{text[-2000:]}")
    return text, took


def stolen_seconds():
    """Processor time that the host of a virtual machine has taken from it so far."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def reported_mib():
    """Free memory that was offered to the host so far; 0 where this kernel does not tell."""
    try:
        return int(pathlib.Path("/sys/module/page_reporting/parameters/reported_kib").read_text()) / 1024
    except (OSError, ValueError):
        return 0.0


# In place from the start: what an allocation costs depends on what this program did before.
_WORK = [memoryview(mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) for _ in range(2)]
_WORDS = array.array("d", (random.Random(1).random() for _ in range(40_000)))
_WORK[0][:] = _WORK[1][:] = bytes(8 << 20)


def work_seconds():
    """Processor time of a fixed piece of work, some 20 ms: how fast the machine computes now. The neighbours of a virtual
    machine slow it without taking its processors."""
    begin = time.thread_time()
    sum(hash(word) for word in sorted(_WORDS))
    for i in range(14):
        _WORK[i % 2][:] = _WORK[1 - i % 2]
    return time.thread_time() - begin


class Calm:
    """Repeats a run during which the host took too much of the processors or of the memory, and keeps the calmest. Whether
    it is repeated depends on nothing the run itself measured."""

    TRIES = 3
    MOST_MIB = 64

    def __init__(self, most):
        self.most = most

    def __call__(self, make):
        """`make(number of the try)` gives a Run; of those of all tries the calmest is given."""
        tries = []
        for number in range(self.TRIES):
            before = work_seconds()
            stolen, begin = stolen_seconds(), time.monotonic()
            run = make(number)
            run.stolen = (stolen_seconds() - stolen) / ((time.monotonic() - begin) * os.cpu_count())
            run.work = (before + work_seconds()) / 2
            robbed = run.reported > self.MOST_MIB
            tries.append((robbed, run.stolen, number, run))
            if self.most <= 0 or (run.stolen <= self.most and not robbed):
                break
        return min(tries)[3]


def back_memory(mib):
    """Uses free memory for a moment. A host that takes back what a virtual machine leaves free makes its next use cost many
    times as much, at moments of its own choice; just after this it is there for a run, a replay and a recording alike."""
    with mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory.madvise(MADV_POPULATE_WRITE)


def back_fragments():
    """The same for the small pieces of free memory, which pages of the cache are made of first: half of what is free
    holds them all. A host is told of large pieces only, so these stay there for a round."""
    if backed:
        free = next(int(line.split()[1]) for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemAvailable"))
        back_memory(free // 2048)


def clear(folder):
    shutil.rmtree(folder, ignore_errors=True)


INTERVALS = ("elapsed_interval_s", "au_interval")  # of a replay's and a prediction's report: [least, most], or none


def interval_of(run):
    """What is stated of the judged span, of what was stated of the whole: what may be wrong is as long as there, since programs
    are loaded outside the span and take their recorded time."""
    stated, whole = run.more.get("elapsed_interval_s"), run.more.get("elapsed_s")
    if not stated or whole is None:
        return None
    return [run.seconds + bound - whole for bound in stated]


class Bench:
    """`work` holds data and programs; `keep`, if any, gets the logs."""

    def __init__(self, reprise, work, data, keep=None):
        self.reprise, self.work, self.data, self.keep = str(reprise), work, data, keep
        self.bare = 0.0

    # --- the real job

    def _place(self, storage, job):
        """The job's data on that storage, its results gone."""
        folder = storage.path / "job"
        source, target = self.data / job.data, folder / job.data
        others = folder.exists() and {path.name for path in folder.iterdir()} - {job.data, "out"}
        # Other jobs' data would be read and rewritten with this one's before each run. On tmpfs, where a cold run finds pages, they
        # shall be as fresh as those of a replay's root.
        if others or storage.kind == "tmpfs":
            clear(folder)
        if not target.exists():
            folder.mkdir(exist_ok=True)
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, target)
        elif job.data.endswith(".db"):  # the job changes it
            if source.is_dir():
                clear(target)
                shutil.copytree(source, target)
            else:
                shutil.copy(source, target)
        clear(folder / "out")
        (folder / "out").mkdir()
        return folder

    def _state(self, storage, regime, folder):
        if backed:
            back_memory(backed)
        if regime == "warm":
            storage.warm(folder)
            return
        if backed and storage.kind != "tmpfs":
            storage.rehearse(folder)
        storage.cool()

    def real(self, job, storage, regime, record=None):
        """Runs the job; recorded into the file `record`, if given."""
        folder = self._place(storage, job)
        self._state(storage, regime, folder)
        words = job.command(folder, self.work)
        if record:
            words = [self.reprise, "capture", "-q", "-f", "-o", record, "--", *words]
        with limited(storage) as during:
            text, whole = timed(words)
        clear(folder / "out")
        more = {"whole_s": whole}
        if job.span == "command":
            return Run(whole, reported=during.reported, more=more)
        seconds, busy = parse(job, text)
        return Run(seconds, busy or None, reported=during.reported, more=more)

    def record(self, job, storage, regime, log):
        done = self.real(job, storage, regime, record=log)
        return dataclasses.replace(self.read_log(job, log), reported=done.reported)

    # --- its replay

    def _share(self, storage, job, root):
        """Of requests in flight, what memory takes for a page decides on fast storage, and that differs by 40 % with where the page lies. So
        the replay reads the job's own file, which no job changes."""
        if job.data != "random.bin" or storage.kind == "tmpfs" or storage.fuse:
            return
        own = self._place(storage, job) / job.data
        for copy in root.rglob(job.data):
            if copy.stat().st_size == own.stat().st_size:
                copy.unlink()
                os.link(own, copy)

    def replay(self, job, log, storage, regime, options=(), keep=None):
        root = storage.path / "replay"
        clear(root)
        root.mkdir()
        execute([self.reprise, "prepare", "-q", log, "--root", root])
        self._share(storage, job, root)
        self._state(storage, regime, root)
        out, result = self.work / "run.oplog", self.work / "run.json"
        for path in (out, result):
            path.unlink(missing_ok=True)
        with limited(storage) as during:
            execute([self.reprise, "replay", "-q", log, "--root", root, "--pace", "causal", "--cache", "as-is", "-o", out, f"--json={result}",
                     *options], allowed=(0, 1))
        found = json.loads(result.read_text())
        run = self.read_log(job, out)
        run.reported = during.reported
        if job.in_flight:
            run.more["in_flight"] = inflight.of_verdict(found["verdict"]["here"].get("requests"), run.more.get("in_flight"))
        if run.busy is None:
            run.busy = found["accelerator_busy_s"]
        run.more |= {name: found.get(name) for name in ("ended", "errors", "mismatches", "edges_by_kind", "unexplained_wait_share",
                                                       "lateness_us", "au", "elapsed_s", "recorded_s", "device_bytes", *INTERVALS)}
        if found["ended"] != "complete":
            raise RuntimeError(f"the replay of {job.name} ended: {found['ended']}")
        if not found["same_job"]:
            raise RuntimeError(f"the replay of {job.name} did not do what the job did: {found['not_same_job']}")
        if keep and self.keep:
            shutil.copy(out, self.keep / f"{keep}.run.oplog")
            shutil.copy(result, self.keep / f"{keep}.json")
            shutil.copy(log, self.keep / f"{keep}.oplog")
        clear(root)
        return run

    # --- its prediction

    def model(self, storage, path):
        """Measures the storage once, empty and slow as it is for runs; the model is kept in the file `path`."""
        if not path.exists():
            place = storage.path / "model"
            place.mkdir()
            with limited(storage):
                execute([self.reprise, "calibrate", "-q", "--storage", place, "-f", "-o", path.with_suffix(".new")])
            clear(place)
            path.with_suffix(".new").rename(path)
        return path

    def predict(self, job, log, model, regime, options=()):
        out, result = self.work / "predicted.oplog", self.work / "predicted.json"
        execute([self.reprise, "predict", "-q", "-f", log, "--storage", model, "--cache", regime, "-o", out, f"--json={result}", *options])
        found = json.loads(result.read_text())
        run = self.read_log(job, out)
        run.more |= {name: found.get(name) for name in ("elapsed_s", "au", "not_modelled", *INTERVALS)}
        return run

    # --- what a log tells

    def read_log(self, job, log):
        """The span that the job marked and, between marks, its stand-in's busy time; or, without marks, that of its requests or of the
        whole log. With how many requests were in flight, for a job whose matter that is."""
        run = self._span(job, log) if job.span != "requests" else None
        if job.in_flight:
            found = inflight.of_text(self._lines(log, inflight.WANTED))
            if found is None and run is None:
                raise RuntimeError(f"{log}: no completion of an asynchronous request was recorded")
            run = run or Run(found.seconds)
            run.more["in_flight"] = found
        return run

    def _span(self, job, log):
        text = self._lines(log, "." if job.span == "command" else " marker ")
        begin, end, busy, open_at, last, started = None, None, 0, None, 0, None
        for found in re.finditer(r"^begin=(\d+) duration=(\d+) task=\d+ op=\d+ (\w+)(.*)$", text, re.M):
            at, kind, rest = int(found[1]), found[3], found[4]
            last = max(last, at + int(found[2]))
            if started is None:  # the time of a real program begins when it has taken the place of its parent's copy
                started = last if kind == "exec" else 0
            if kind != "marker":
                continue
            phase = int(re.search(r"flags=(\d+)", rest)[1])
            if 'text="span"' in rest:
                if phase == 1 and begin is None:
                    begin = at
                elif phase == 2:
                    end = at
            elif 'text="accelerator"' in rest:
                if phase == 1:
                    open_at = at
                elif open_at is not None:
                    busy += at - open_at
                    open_at = None
        if job.span == "command":
            return Run((last - started) * 1e-9)
        if begin is None or end is None:
            raise RuntimeError(f"{log}: the marks of the job's span are not there")
        return Run((end - begin) * 1e-9, busy * 1e-9 or None)

    def _lines(self, log, wanted):
        """Of the log's text, lines with `wanted`; a log with batches in /dev/shm has a million lines."""
        with subprocess.Popen([self.reprise, "dump", log], stdout=subprocess.PIPE) as dump:
            text = subprocess.run(["grep", wanted], stdin=dump.stdout, stdout=subprocess.PIPE, text=True).stdout
        if dump.returncode != 0:
            raise RuntimeError(f"reprise dump {log}: exit code {dump.returncode}")
        return text


class limited:
    """The storage's limit holds inside. `reported`, afterwards: MiB that the host was offered meanwhile."""

    def __init__(self, storage):
        self.limit = storage.limit

    def __enter__(self):
        if self.limit:
            self.limit.set(True)
        self.reported = -reported_mib()
        return self

    def __exit__(self, *_):
        self.reported += reported_mib()
        if self.limit:
            self.limit.set(False)


def has_tools(wanted):
    return [tool for tool in wanted if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None]


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    release = os.uname().release
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    commit = subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    return {"cpus": os.cpu_count(), "cpu": cpu, "kernel": release, "memory_gib": round(memory / 2**30, 1),
            "commit": commit.stdout.strip(), "load": pathlib.Path("/proc/loadavg").read_text().split()[0]}
