# SPDX-License-Identifier: MIT
"""Owns the jobs of the experiments: their data, their command lines, and what is measured of each.

Three spans are measured. `epoch`: the job prints how long its loop took and marks the same stretch, so that a replay's log
tells it, too; loading Python and PyTorch, which a replay does not repeat, is outside. `command`: from the start of the
process (the end of its exec) to its end, and of the replay likewise. `requests`: a program without marks prints how long its
requests took; of the replay, from the first submission to the last completion.
"""

import dataclasses
import json
import pathlib
import random
import re
import sqlite3
import subprocess

import packages
import request_jobs

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent.parent
TRAIN = TOP / "examples" / "train"
PYTHON = "/usr/bin/python3"  # Debian's own, which has PyTorch


@dataclasses.dataclass(frozen=True)
class Job:
    """`fit`: intervals may be fitted to its cells; those of all other jobs judge them. It is said of a job and not of a cell,
    so that what a job is like cannot pass from one to the other."""

    name: str
    data: str  # a folder or file of `make_data`
    words: tuple  # {data}, {out}, {bin}, {python} and, for stand-ins, {sleep} are filled in
    span: str = "epoch"
    sleep: float = 0.0  # seconds of the stand-in for an accelerator, per step
    gpu: float = 1.0  # ... divided by this
    fit: bool = False
    needs: tuple = ()  # of packages.PINNED; the first one's interpreter is {python}
    event_loop: bool = False  # the recorded order is the storage's, not the program's own
    late: bool = False  # written after the code it judges was done
    slow: int = 25  # MB/s that hold it up
    places: tuple = ()  # storages that hold it up, where they are not the usual ones
    ways: tuple = ("there", "back")  # fast to its places, and from them to fast
    tools: tuple = ()  # programs that it needs
    in_flight: bool = False  # it keeps requests in flight: how many is compared

    def command(self, folder, work):
        sleep = f"{self.sleep / self.gpu:.6f}"
        python = packages.python(self.needs[0]) if self.needs else PYTHON
        return [str(word).format(data=folder / self.data, out=folder / "out", bin=work / "bin", python=python, sleep=sleep)
                for word in self.words]

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
        Job("resnet", "images", resnet(), fit=True),
        Job("bert", "tokens.bin", bert("--steps", steps // 2), fit=True),  # its model is computed: 0.1 s a step
        # 32 images are 1.9 MiB: 20 ms a step want 98 MB/s; decoding allows about 50.
        Job("resnet-sleep", "images", resnet("--model-sleep", "{sleep}"), sleep=0.02, fit=True),
        # A slow accelerator: storage never holds it up, unless it is far too slow.
        Job("resnet-busy", "images", resnet("--model-sleep", "{sleep}"), sleep=0.2, fit=True),
        Job("bert-sleep", "tokens.bin", bert("--steps", steps, "--model-sleep", "{sleep}"), sleep=0.01, fit=True),
        # Hand-overs without system calls. 256 KiB per 5 ms are 52 MB/s.
        Job("ring", "files", ("{bin}/ring", "{data}", "0.005", "0"), fit=True),
        Job("ring-sleep", "files", ("{bin}/ring", "{data}", "0", "{sleep}"), sleep=0.005),
        Job("queue", "files", (PYTHON, HERE / "jobs/thread_queue.py", "{data}", "60"), fit=True),
        Job("pinned", "files", (PYTHON, HERE / "jobs/pinned_loader.py", "{data}", "8")),
        # Samples of 64 KiB in files of their own: 25 MB/s, 1 ms a request and 250 requests/s all hold these up.
        # Batches through /dev/shm, of 2 MiB by Debian's PyTorch 1.13 and PyPI's 2, of 4 and 16 MiB.
        Job("loader", "samples", (PYTHON, HERE / "jobs/shm_loader.py", "{data}", "32", "2", "20", "2"), fit=True),
        Job("loader-torch2", "samples", ("{python}", HERE / "jobs/shm_loader.py", "{data}", "32", "2", "150", "2"), needs=("torch",)),
        Job("shm-4", "big", (PYTHON, HERE / "jobs/shm_loader.py", "{data}", "4", "2", "4", "2"), slow=50),
        Job("shm-16", "big", (PYTHON, HERE / "jobs/shm_loader.py", "{data}", "16", "2", "16", "2"), slow=50, fit=True),
        # C++ below: waits with growing time-outs, and thread pools.
        Job("pipeline", "samples", ("{bin}/timed_pipeline", "{data}", "0.00125"), fit=True),
        Job("tf-data", "samples", ("{python}", HERE / "jobs/tf_data.py", "{data}", "200"), needs=("tensorflow",)),
        Job("arrow", "parquet", ("{python}", HERE / "jobs/arrow_scan.py", "{data}", "9"), needs=("pyarrow",), slow=50, fit=True),
        Job("duckdb", "parquet", ("{python}", HERE / "jobs/duckdb_scan.py", "{data}", "9"), needs=("duckdb", "pyarrow"), slow=50),
        Job("asyncio", "samples", (PYTHON, HERE / "jobs/asyncio_reader.py", "{data}", "40"), event_loop=True),
        Job("checkpoints", "samples", (PYTHON, HERE / "jobs/checkpoints.py", "{data}", "{out}", "30", "200", "16")),
        Job("ddp", "samples", (PYTHON, HERE / "jobs/ddp.py", "{data}", 15 if quick else 30)),
        # Written when the code they judge was done, and never fitted to.
        Job("h5", "samples.h5", ("{python}", HERE / "jobs/h5_reader.py", "{data}", "100"), needs=("h5py",), late=True),
        Job("lmdb", "samples.lmdb", ("{python}", HERE / "jobs/lmdb_reader.py", "{data}", "1000"), needs=("lmdb",), late=True),
        Job("zarr", "samples.zarr", ("{python}", HERE / "jobs/zarr_reader.py", "{data}", "100"), needs=("zarr",), event_loop=True, late=True),
        Job("polars", "parquet", ("{python}", HERE / "jobs/polars_scan.py", "{data}", "9"), needs=("polars", "pyarrow"), slow=50, late=True),
        Job("zstd", "big", ("zstd", "-q", "-T2", "-r", "{data}", "--output-dir-flat", "{out}"), span="command", slow=50, late=True),
        # Programs not written for this.
        Job("sqlite", "table.db", ("sqlite3", "{data}", SQL), span="command", fit=True),
        Job("tar", "tree", ("tar", "-cf", "{out}/tree.tar", "-C", "{data}", "."), span="command"),
        Job("rsync", "tree", ("rsync", "-a", "{data}/", "{out}/copy"), span="command"),
        *request_jobs.fio_jobs(quick), *request_jobs.known_jobs(quick), *request_jobs.programs(quick),
    ]
    return {job.name: job for job in found}


# A scan, an index, and small transactions, each of which is synced.
SQL = ("select count(*), sum(length(body)) from rows; create index by_key on rows(key); "
       + "".join(f"insert into rows values({10**7 + i}, {i * 7919 % 10007}, 'a new row'); " for i in range(100))
       + "drop index by_key; delete from rows where id >= 10000000;")


def parse(job, text):
    """(seconds of the epoch, seconds the stand-in was busy) as the job printed them."""
    if found := re.search(r'^\{ *$.*^\}', text, re.M | re.S):  # fio
        return max(part["runtime"] for part in (json.loads(found[0])["jobs"][0][way] for way in ("read", "write"))) * 1e-3, 0.0
    if found := re.search(r"^Run completed in ([\d.]+) seconds", text, re.M):  # qemu-img bench
        return float(found[1]), 0.0
    if found := re.search(r"^span ([\d.]+) busy ([\d.]+)", text, re.M):
        return float(found[1]), float(found[2])
    if found := re.search(r"steps in ([\d.]+) s(?:, accelerator ([\d.]+) s)?", text):
        return float(found[1]), float(found[2] or 0)
    raise RuntimeError(f"{job.name} did not print its time: {text[-300:]!r}")


def make_data(folder, wanted, quick):
    """The data of all jobs once, to be copied to each storage."""
    folder.mkdir(parents=True)
    images, tokens, files, rows, small, big, tables = (600, 8, 200, 150_000, 1500, 96, 8) if quick else (1000, 32, 400, 400_000, 3000, 192, 16)
    source = random.Random(20240601)
    if {"images", "tokens.bin"} & wanted:
        subprocess.run([PYTHON, TRAIN / "make_data.py", folder, "--images", str(images if "images" in wanted else 0),
                        "--tokens", str(1_000_000 * tokens if "tokens.bin" in wanted else 0)], check=True, stdout=subprocess.DEVNULL)
    for name, count, size in (("files", files, 256 * 1024), ("samples", 4 * files, 64 * 1024), ("big", big, 1024 * 1024)):
        if name in wanted:
            (folder / name).mkdir()
            for i in range(count):
                (folder / name / f"{i:04}").write_bytes(source.randbytes(size))
    if "parquet" in wanted:
        (folder / "parquet").mkdir()
        subprocess.run([packages.python("pyarrow"), "-c", TABLES, folder / "parquet", str(tables)], check=True)
    for name, needs, text in (("samples.h5", "h5py", CHUNKS), ("samples.lmdb", "lmdb", TREE), ("samples.zarr", "zarr", ARRAY)):
        if name in wanted:
            subprocess.run([packages.python(needs), "-c", text, folder / name, str(4 * files)], check=True)
    if "random.bin" in wanted:  # as large as the places that are read are far apart; written whole, O_DIRECT reads find no holes
        with open(folder / "random.bin", "wb") as file:
            for _ in range(128):
                file.write(source.randbytes(1 << 20))
    if "mariadb.db" in wanted:
        subprocess.run([PYTHON, HERE / "jobs/mariadb.py", "make", folder / "mariadb.db", str(150 * files)], check=True)
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


# 9 MB each, of random numbers, so that nothing is compressed away.
TABLES = """
import sys, numpy, pyarrow, pyarrow.parquet
random, rows = numpy.random.default_rng(20240601), 300_000
for i in range(int(sys.argv[2])):
    table = pyarrow.table({"key": random.integers(0, 10000, rows), **{f"c{j}": random.random(rows) for j in range(3)}})
    pyarrow.parquet.write_table(table, f"{sys.argv[1]}/{i:03}.parquet", row_group_size=rows // 4, compression="zstd")
"""

# Samples of 64 KiB of random numbers, as three formats keep them.
CHUNKS = """
import sys, h5py, numpy
source = numpy.random.default_rng(20240601)
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", data=source.random((int(sys.argv[2]), 128, 128), dtype="f4"), chunks=(1, 128, 128), compression="gzip", compression_opts=1)
"""
TREE = """
import sys, lmdb, random
source = random.Random(20240601)
base = lmdb.open(sys.argv[1], map_size=1 << 30)
with base.begin(write=True) as change:
    for i in range(int(sys.argv[2])):
        change.put(b"%08d" % i, source.randbytes(65536))
base.close()
"""
ARRAY = """
import sys, numpy, zarr
source = numpy.random.default_rng(20240601)
data = zarr.create_array(store=sys.argv[1], shape=(int(sys.argv[2]), 128, 128), chunks=(4, 128, 128), dtype="f4")
data[:] = source.random(data.shape, dtype="f4")
"""


def build(work):
    """The jobs that are programs, and the slow file system."""
    place = work / "bin"
    place.mkdir()
    markers = ("-O2", "-Wall", "-I", TOP / "markers")
    fuse = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    for words in (("cc", *markers, "-o", place / "ring", HERE / "jobs/ring.c", "-pthread"),
                  ("cc", *markers, "-o", place / "requests", HERE / "jobs/requests.c", "-luring"),
                  ("cc", *markers, "-o", place / "ring_files", HERE / "jobs/ring_files.c", "-luring"),
                  ("cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", place / "ring_writer.so", HERE / "jobs/ring_writer.c", "-luring"),
                  ("c++", "-std=c++20", *markers, "-o", place / "timed_pipeline", HERE / "jobs/timed_pipeline.cpp", "-pthread"),
                  ("cc", "-O2", "-Wall", "-o", place / "slow_fuse", HERE / "slow_fuse.c", *fuse, "-pthread")):
        subprocess.run(words, check=True)
