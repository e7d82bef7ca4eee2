# SPDX-License-Identifier: MIT
"""Owns the jobs of the experiments: their data, their command lines, and what is measured of each.

Two spans are measured. `epoch`: the job prints how long its loop took and marks the same stretch, so that a replay's log
tells it, too; loading Python and PyTorch, which a replay does not repeat, is outside. `command`: from the start of the
process (the end of its exec) to its end, and of the replay likewise.
"""

import dataclasses
import pathlib
import random
import re
import sqlite3
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent.parent
TRAIN = TOP / "examples" / "train"
PYTHON = "/usr/bin/python3"  # Debian's own, which has PyTorch


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    data: str  # a folder or file of `make_data`
    words: tuple  # {data}, {out}, {bin} and, for stand-ins, {sleep} are filled in
    span: str = "epoch"
    sleep: float = 0.0  # seconds of the stand-in for an accelerator, per step
    gpu: float = 1.0  # ... divided by this

    def command(self, folder, work):
        sleep = f"{self.sleep / self.gpu:.6f}"
        return [str(word).format(data=folder / self.data, out=folder / "out", bin=work / "bin", sleep=sleep) for word in self.words]

    def faster(self, factor):
        return dataclasses.replace(self, gpu=factor)


def resnet(*more):
    return (PYTHON, TRAIN / "train_resnet.py", "{data}", "--out", "{out}", *more)


def bert(*more):
    return (PYTHON, TRAIN / "train_bert.py", "{data}", "--out", "{out}", *more)


def jobs(quick):
    """By name. The lengths are chosen so that a run takes some seconds, a quick one about half as long."""
    steps = 100 if quick else 200
    found = [
        Job("resnet", "images", resnet()),
        Job("bert", "tokens.bin", bert("--steps", steps // 2)),  # its model is computed: 0.1 s a step
        # 32 images are 1.9 MiB: 20 ms a step want 98 MB/s; decoding allows about 50.
        Job("resnet-sleep", "images", resnet("--model-sleep", "{sleep}"), sleep=0.02),
        # A slow accelerator: storage never holds it up, unless it is far too slow.
        Job("resnet-busy", "images", resnet("--model-sleep", "{sleep}"), sleep=0.2),
        Job("bert-sleep", "tokens.bin", bert("--steps", steps, "--model-sleep", "{sleep}"), sleep=0.01),
        # Hand-overs without system calls. 256 KiB per 5 ms are 52 MB/s.
        Job("ring", "files", ("{bin}/ring", "{data}", "0.005", "0")),
        Job("ring-sleep", "files", ("{bin}/ring", "{data}", "0", "{sleep}"), sleep=0.005),
        Job("queue", "files", (PYTHON, HERE / "jobs/thread_queue.py", "{data}", "60")),
        Job("pinned", "files", (PYTHON, HERE / "jobs/pinned_loader.py", "{data}", "8")),
        # Programs not written for this.
        Job("sqlite", "table.db", ("sqlite3", "{data}", SQL), span="command"),
        Job("tar", "tree", ("tar", "-cf", "{out}/tree.tar", "-C", "{data}", "."), span="command"),
        Job("rsync", "tree", ("rsync", "-a", "{data}/", "{out}/copy"), span="command"),
    ]
    return {job.name: job for job in found}


# A scan, an index, and small transactions, each of which is synced.
SQL = ("select count(*), sum(length(body)) from rows; create index by_key on rows(key); "
       + "".join(f"insert into rows values({10**7 + i}, {i * 7919 % 10007}, 'a new row'); " for i in range(100))
       + "drop index by_key; delete from rows where id >= 10000000;")


def parse(job, text):
    """(seconds of the epoch, seconds the stand-in was busy) as the job printed them."""
    if found := re.search(r"^span ([\d.]+) busy ([\d.]+)", text, re.M):
        return float(found[1]), float(found[2])
    if found := re.search(r"steps in ([\d.]+) s(?:, accelerator ([\d.]+) s)?", text):
        return float(found[1]), float(found[2] or 0)
    raise RuntimeError(f"{job.name} did not print its time: {text[-300:]!r}")


def make_data(folder, wanted, quick):
    """The data of all jobs once, to be copied to each storage."""
    folder.mkdir(parents=True)
    images, tokens, files, rows, small = (600, 8, 200, 150_000, 1500) if quick else (1000, 32, 400, 400_000, 3000)
    source = random.Random(20240601)
    if {"images", "tokens.bin"} & wanted:
        subprocess.run([PYTHON, TRAIN / "make_data.py", folder, "--images", str(images if "images" in wanted else 0),
                        "--tokens", str(1_000_000 * tokens if "tokens.bin" in wanted else 0)], check=True, stdout=subprocess.DEVNULL)
    if "files" in wanted:
        (folder / "files").mkdir()
        for i in range(files):
            (folder / "files" / f"{i:04}").write_bytes(source.randbytes(256 * 1024))
    if "table.db" in wanted:
        base = sqlite3.connect(folder / "table.db")
        base.execute("create table rows(id integer primary key, key integer, body blob)")
        base.executemany("insert into rows values(?, ?, ?)",
                         ((i, source.randrange(1 << 30), source.randbytes(400)) for i in range(rows)))
        base.commit()
        base.close()
    if "tree" in wanted:
        for i in range(small):
            place = folder / "tree" / f"{i % 10}" / f"{i % 37}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i:05}").write_bytes(source.randbytes(int(2000 * 100 ** source.random())))


def build(work):
    """The jobs that are programs."""
    (work / "bin").mkdir()
    subprocess.run(["cc", "-O2", "-Wall", "-I", TOP / "markers", "-o", work / "bin" / "ring", HERE / "jobs/ring.c", "-pthread"],
                   check=True)
