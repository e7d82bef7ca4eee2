#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: shared.py [--part ddp|fio] [--rounds N] [--dir DIR] [--reprise FILE] [--json FILE] [--write-docs]

Four hosts with storage that they share, a FUSE file system on a limited device: real programs of four ranks there beside the
replay, under mpirun, of recordings made on it without the limit.

  ddp  PyTorch DistributedDataParallel (gloo; a sleep stands in for the accelerator): epoch time (goal 5 %), AU (3 points)
  fio  fio --server on each host, fio --client for all: aggregate bandwidth beside the replay of fio's own recording (3 %)

A round records the job, runs it for real, and replays the recording; medians are compared. The hosts are network namespaces of one machine
(hosts.py), which share its processors: recorded computing is slept. Needs root, control groups of version 1 with blkio, Open MPI, fio, FUSE.
"""

import contextlib
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path[:0] = [str(TOP / "tests/bench"), str(TOP / "tests/bench/accuracy")]
import hosts  # noqa: E402
import storage  # noqa: E402
import support  # noqa: E402

RANKS = 4
TRAIN = TOP / "examples/train"
PYTHON = "/usr/bin/python3"  # Debian's, which has PyTorch
MARKERS = {"PYTHONPATH": str(TOP / "markers/python")}
# Answers once so many have called.
GATE = """
import socket, sys
gate = socket.create_server(("10.77.0.1", 5577))
print("open", flush=True)
callers = [gate.accept()[0] for _ in range(int(sys.argv[1]))]
for caller in callers:
    caller.sendall(b"go\\n")
"""
MARK = re.compile(r"^begin=(\d+) duration=\d+ task=(\d+) op=\d+ marker (.*)$", re.M)
READ = re.compile(r"^begin=(\d+) duration=(\d+) task=\d+ op=\d+ (?:read|pread) .*?result=(\d+)", re.M)


class Shared(storage.Storage):
    """Each request takes a fifth of a millisecond more, as over a network, always; the device's limit holds where it is set."""

    def __init__(self, folder, mb_per_s):
        super().__init__("shared", storage.Kind("ext4", mb_per_s=mb_per_s, delay_us=200), folder, program=folder / "slow_fuse")

    def __enter__(self):
        super().__enter__()
        device = (pathlib.Path("/sys/block") / self.device.name / "dev").read_text().strip()
        self.limit = storage.Limit(device, self.about)
        return self

    @contextlib.contextmanager
    def limited(self, on):
        self.cool()
        self.fuse.set(True)
        if on:
            self.limit.set(True)
        try:
            yield
        finally:
            self.limit.set(False)
            self.fuse.set(False)


def dumped(reprise, log, kinds):
    """Lines of the log's text with ops of these kinds."""
    with subprocess.Popen([reprise, "dump", log], stdout=subprocess.PIPE) as dump:
        return subprocess.run(["grep", "-E", f" ({kinds}) "], stdin=dump.stdout, stdout=subprocess.PIPE, text=True).stdout


class Ddp:
    """One epoch over cold data, from the barrier before it to the one after it. AU is the mean of the ranks'."""

    goal = {"epoch": 5.0, "au": 3.0}
    steps = {5.0: 0.05, 12.0: 0.2}  # MB/s: seconds of a step. The limit decides alone; it takes about as long as the accelerators
    limits = tuple(steps)

    def __init__(self, bench, limit):
        self.bench, self.step = bench, self.steps.get(limit, 0.2)
        hosts.execute([PYTHON, TRAIN / "make_data.py", bench.shared.path / "job", "--images", 1000, "--tokens", 0])

    def command(self):
        job = self.bench.shared.path / "job"
        return [PYTHON, TRAIN / "train_ddp.py", job / "images", "--out", job / "out", "--batch", 10, "--width", 8, "--workers", 1,
                "--epochs", 1, "--model-sleep", self.step]

    def run(self, words, limit):
        shutil.rmtree(self.bench.shared.path / "job/out", ignore_errors=True)
        with self.bench.shared.limited(limit):
            text, _ = hosts.execute(self.bench.cluster.mpirun(RANKS, *words, environment=("MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME",
                                    "OMP_NUM_THREADS", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")), **MARKERS)
        return text

    def record(self):
        log = self.bench.work / "ddp.oplog"
        self.run([self.bench.reprise, "capture", "-q", "-f", "-o", log, "--", *self.command()], False)
        self.bench.merge(log)
        return log, self.of_log(log)

    def real(self):
        rows = re.findall(r"rank (\d+) epoch (\d+): \d+ steps from ([\d.]+) to ([\d.]+), accelerator ([\d.]+) s", self.run(self.command(), True))
        return self.summary([(int(epoch), float(begin), float(end), float(busy)) for _, epoch, begin, end, busy in rows])

    def replay(self, log):
        return self.of_log(self.bench.replay(log))

    def of_log(self, log):
        spans, since, busy, rows = {}, {}, {}, []
        for at, task, rest in MARK.findall(dumped(self.bench.reprise, log, "marker")):
            name, phase = re.search(r'text="([^"]*)"', rest)[1], int(re.search(r"flags=(\d+)", rest)[1])
            key = (task, name)
            if phase == 1:
                since[key] = int(at)
                if name == "span":
                    spans[task], busy[task] = len([row for row in rows if row[4] == task]), 0
            elif phase == 2 and name == "accelerator":
                busy[task] = busy.get(task, 0) + int(at) - since[key]
            elif phase == 2 and name == "span":
                rows.append((spans[task], since[key] * 1e-9, int(at) * 1e-9, busy[task] * 1e-9, task))
        return self.summary([row[:4] for row in rows])

    def summary(self, rows):
        """rows: (epoch, begin, end, accelerator's seconds) of each rank."""
        last = [row for row in rows if row[0] == max(row[0] for row in rows)]
        if len(last) != RANKS:
            raise RuntimeError(f"{len(last)} ranks told of their last epoch")
        return {"epoch": max(row[2] for row in last) - min(row[1] for row in last),
                "au": 100 * statistics.mean(row[3] / (row[2] - row[1]) for row in last)}


class Fio:
    """Each rank reads a file of its own at random."""

    goal, limits = {"bandwidth": 3.0}, (20.0,)
    MIB, BLOCK = 64, 16384

    def __init__(self, bench, _limit):
        self.bench, self.folder = bench, bench.shared.path / "fio"
        self.folder.mkdir()
        block = bytes(range(256)) * 4096
        for rank in range(RANKS):
            (self.folder / f"rank{rank}").write_bytes(block * self.MIB)

    def words(self, name):
        return ["--name=rank", f"--filename={self.folder}/{name}", "--rw=randread", f"--bs={self.BLOCK}", f"--size={self.MIB}m", "--ioengine=psync",
                "--randrepeat=1", "--thread", "--invalidate=0"]

    def record(self):
        log = self.bench.work / "fio.oplog"
        # As fio's client does: nobody begins before all are there.
        fio = " ".join(["fio", *self.words("rank$OMPI_COMM_WORLD_RANK")])
        script = f"exec 9<>/dev/tcp/10.77.0.1/5577; read -r -u 9 word; exec 9>&-; exec {fio}"
        with self.bench.shared.limited(False):
            gate = hosts.start(self.bench.cluster.on(1, PYTHON, "-c", GATE, RANKS))
            try:
                gate.stdout.readline()
                hosts.execute(self.bench.cluster.mpirun(RANKS, self.bench.reprise, "capture", "-q", "-f", "-o", log, "--", "bash", "-c", script))
            finally:
                gate.kill()
                gate.wait()
        self.bench.merge(log)
        return log, self.of_log(log)

    def real(self):
        clients = []
        for rank in range(RANKS):
            job = self.bench.work / f"rank{rank}.fio"
            job.write_text("[rank]\n" + "\n".join(word[2:] for word in self.words(f"rank{rank}")[1:]) + "\n", encoding="ascii")
            clients += [f"--client={self.bench.cluster.address(rank + 1)}", job]
        with self.bench.shared.limited(True):
            servers = [hosts.start(self.bench.cluster.on(host, "fio", f"--server={self.bench.cluster.address(host)}"))
                       for host in range(1, RANKS + 1)]
            try:
                time.sleep(1)  # the servers listen
                text, _ = hosts.execute(self.bench.cluster.on(1, "fio", "--output-format=json", *clients))
            finally:
                for host in range(1, RANKS + 1):
                    for process in self.bench.cluster.processes(host):
                        subprocess.run(["kill", str(process)], check=False)
                for server in servers:
                    server.wait()
        rows = [row["read"] for row in json.loads(text[text.index("{"):])["client_stats"] if row["jobname"] != "All clients"]
        return {"bandwidth": sum(row["io_bytes"] for row in rows) / max(row["runtime"] for row in rows) / 1e3}

    def replay(self, log):
        return self.of_log(self.bench.replay(log))

    def of_log(self, log):
        reads = [(int(begin), int(begin) + int(took), int(got)) for begin, took, got in READ.findall(dumped(self.bench.reprise, log, "read|pread"))
                 if int(got) == self.BLOCK]
        return {"bandwidth": sum(row[2] for row in reads) / (max(row[1] for row in reads) - min(row[0] for row in reads)) * 1e3}


class Bench:
    def __init__(self, reprise, work, shared, cluster):
        self.reprise, self.work, self.shared, self.cluster, self.trust = reprise, work, shared, cluster, []

    def merge(self, log):
        parts = sorted(log.parent.glob(f"{log.stem}.rank*.oplog"))
        if len(parts) != RANKS:
            raise RuntimeError(f"{len(parts)} recordings of {RANKS} ranks")
        hosts.execute([self.reprise, "merge", "-q", "-f", *parts, "-o", log])
        for part in parts:
            part.unlink()

    def replay(self, log):
        root, out, result = self.shared.path / "replay", self.work / "run.oplog", self.work / "run.json"
        shutil.rmtree(root, ignore_errors=True)
        hosts.execute(self.cluster.mpirun(RANKS, self.reprise, "prepare", "-q", log, "--root", root))
        with self.shared.limited(True):
            hosts.execute(self.cluster.mpirun(RANKS, self.reprise, "replay", "-q", "-f", log, "--root", root, "--cache", "as-is", "-o", out,
                                              "--delay", "sleep", f"--json={result}"), allowed=(0, 1))
        found = json.loads(result.read_text())
        if found["ended"] != "complete" or not found["same_job"]:
            raise RuntimeError(f"the replay ended: {found['ended']}; {found.get('not_same_job')}")
        shutil.rmtree(root, ignore_errors=True)
        self.trust.append(found["verdict"]["trust"])
        return out


def part_of(bench, kind, limit, rounds):
    job = kind(bench, limit)
    rows = {"recorded": [], "real": [], "replayed": []}
    for number in range(rounds):
        log, recorded = job.record()
        rows["recorded"].append(recorded)
        rows["real"].append(job.real())
        rows["replayed"].append(job.replay(log))
        print(f"round {number + 1}: recorded {recorded}, real {rows['real'][-1]}, replayed {rows['replayed'][-1]}", file=sys.stderr, flush=True)
    found = []
    for name, goal in kind.goal.items():
        recorded, real, replayed = (statistics.median(row[name] for row in rows[side]) for side in ("recorded", "real", "replayed"))
        error = replayed - real if name == "au" else 100 * (replayed / real - 1)
        found.append({"part": kind.__name__.lower(), "mb_per_s": limit, "what": name, "rounds": rounds, "recorded": recorded, "real": real, "replayed": replayed,
                      "real_range": [min(row[name] for row in rows["real"]), max(row[name] for row in rows["real"])],
                      "error": error, "trust": max(bench.trust, key=TRUST.index), "goal": goal, "met": abs(error) <= goal})
    return found


TRUST = ("good", "fair", "poor")
NAMES = {"epoch": ("epoch of PyTorch DDP, s", "%"), "au": ("AU of PyTorch DDP, %", "points"), "bandwidth": ("aggregate bandwidth of fio, MB/s", "%")}


def table(rows):
    lines = ["| four ranks on four hosts, shared storage | recorded unlimited | real, limited | range | replayed | error | trust | goal |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        name, unit = NAMES[row["what"]]
        low, high = row["real_range"]
        lines.append(f"| {name} ({row['mb_per_s']:g} MB/s, {row['rounds']} rounds) | {row['recorded']:.2f} | {row['real']:.2f} | {low:.2f} to {high:.2f} | {row['replayed']:.2f} | "
                     f"{row['error']:+.1f} {unit} | {row['trust'].upper()} | {row['goal']:g} {unit}{'' if row['met'] else ' **missed**'} |")
    return lines


def main():
    parser = support.table_parser(__doc__)
    parser.add_argument("--part", choices=("ddp", "fio"), action="append")
    parser.add_argument("--mb-per-s", type=float, default=None, help="the limit of the shared device")
    arguments = parser.parse_args()
    storage.own_mounts()
    rows = []
    with storage.working_folder(arguments.dir) as work:
        fuse = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        storage.command("cc", "-O2", "-o", work / "slow_fuse", TOP / "tests/bench/accuracy/slow_fuse.c", *fuse, "-pthread")
        for part in arguments.part or ("ddp", "fio"):
            kind = {"ddp": Ddp, "fio": Fio}[part]
            for limit in [arguments.mb_per_s] if arguments.mb_per_s else kind.limits:
                with Shared(work, limit) as shared, hosts.Hosts(RANKS, work) as cluster:
                    rows += part_of(Bench(arguments.reprise.resolve(), work, shared, cluster), kind, limit, arguments.rounds)
    support.publish(arguments, "shared", rows, table(rows), "tests/bench/cluster/shared.py")


if __name__ == "__main__":
    main()
