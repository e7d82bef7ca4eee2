#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small training jobs, one for each layout of a data set, to be recorded on a small and on a larger set.

    job.py make LAYOUT DIR SAMPLES        job.py run LAYOUT DIR [--epochs 2] [--workers 0] [--step SECONDS] [--seed N]

Layouts: files (a listing, a stat of each and an index at start), records (random pread of one file), tokens (random
touches of one mapped file), shards (tar files one after the other through a shuffle buffer), hdf5, lmdb.
"""

import argparse
import io
import json
import os
import random
import tarfile
import time

SAMPLE = 24 * 1024


def blob(number):
    """Bytes of one sample; sizes vary by a fifth."""
    size = SAMPLE + random.Random(number).randrange(-SAMPLE // 10, SAMPLE // 10)
    return random.Random(number).randbytes(size)


def make(layout, where, samples):
    os.makedirs(where, exist_ok=True)
    if layout == "files":
        names = ["sample_%06d.bin" % i for i in range(samples)]
        os.makedirs(os.path.join(where, "train"), exist_ok=True)
        for i, name in enumerate(names):
            with open(os.path.join(where, "train", name), "wb") as file:
                file.write(blob(i))
        with open(os.path.join(where, "labels.json"), "w", encoding="ascii") as file:
            json.dump({name: i % 10 for i, name in enumerate(names)}, file)
    elif layout in ("records", "tokens"):
        with open(os.path.join(where, "data.bin"), "wb") as file:
            for i in range(samples):
                file.write(random.Random(i).randbytes(SAMPLE))
    elif layout == "shards":
        shards = 4
        for shard in range(shards):
            with tarfile.open(os.path.join(where, "shard_%03d.tar" % shard), "w", format=tarfile.USTAR_FORMAT) as tar:
                for i in range(samples * shard // shards, samples * (shard + 1) // shards):
                    row = tarfile.TarInfo("%06d.bin" % i)
                    data = blob(i)
                    row.size = len(data)
                    tar.addfile(row, io.BytesIO(data))
    elif layout == "hdf5":
        import h5py
        import numpy
        with h5py.File(os.path.join(where, "data.h5"), "w") as file:
            data = file.create_dataset("x", (samples, SAMPLE), dtype="u1", chunks=(1, SAMPLE))
            for i in range(samples):
                data[i] = numpy.frombuffer(random.Random(i).randbytes(SAMPLE), dtype="u1")
    elif layout == "lmdb":
        import lmdb
        with lmdb.open(os.path.join(where, "db"), map_size=1 << 34, subdir=True) as env:
            with env.begin(write=True) as txn:
                for i in range(samples):
                    txn.put(b"%08d" % i, blob(i))


class Files:
    def __init__(self, where):
        with open(os.path.join(where, "labels.json"), encoding="ascii") as file:
            self.labels = json.load(file)
        folder = os.path.join(where, "train")
        self.paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        self.size = sum(os.stat(path).st_size for path in self.paths)

    def __len__(self):
        return len(self.paths)

    def get(self, index):
        with open(self.paths[index], "rb") as file:
            return file.read()


class Records:
    def __init__(self, where):
        self.file = os.open(os.path.join(where, "data.bin"), os.O_RDONLY)
        self.count = os.fstat(self.file).st_size // SAMPLE

    def __len__(self):
        return self.count

    def get(self, index):
        return os.pread(self.file, SAMPLE, index * SAMPLE)


class Tokens:
    def __init__(self, where):
        import numpy
        self.data = numpy.memmap(os.path.join(where, "data.bin"), dtype="u1", mode="r")

    def __len__(self):
        return len(self.data) // SAMPLE

    def get(self, index):
        return self.data[index * SAMPLE:(index + 1) * SAMPLE].tobytes()


class Hdf5:
    def __init__(self, where):
        import h5py
        self.file = h5py.File(os.path.join(where, "data.h5"), "r")
        self.data = self.file["x"]

    def __len__(self):
        return len(self.data)

    def get(self, index):
        return self.data[index].tobytes()


class Lmdb:
    def __init__(self, where):
        import lmdb
        self.env = lmdb.open(os.path.join(where, "db"), readonly=True, lock=False, readahead=False)
        self.txn = self.env.begin(buffers=True)
        self.count = self.env.stat()["entries"]

    def __len__(self):
        return self.count

    def get(self, index):
        return bytes(self.txn.get(b"%08d" % index))


LAYOUTS = {"files": Files, "records": Records, "tokens": Tokens, "hdf5": Hdf5, "lmdb": Lmdb}


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def shards_of(where, order, buffer):
    """Samples of tar files in a new order each epoch, through a shuffle buffer."""
    names = sorted(name for name in os.listdir(where) if name.endswith(".tar"))
    order.shuffle(names)
    held = []
    for name in names:
        with tarfile.open(os.path.join(where, name), "r|") as tar:
            for row in tar:
                held.append(tar.extractfile(row).read())
                if len(held) >= buffer:
                    yield held.pop(order.randrange(len(held)))
    order.shuffle(held)
    yield from held


def batches(arguments, data, epoch):
    random_order = random.Random(f"{arguments.seed} {epoch}")
    if arguments.layout == "shards":
        batch = []
        for sample in shards_of(arguments.where, random_order, 64):
            batch.append(sample)
            if len(batch) == arguments.batch:
                yield batch
                batch = []
        if batch:
            yield batch
        return
    if arguments.workers:
        from torch.utils.data import DataLoader, Dataset

        class Samples(Dataset):
            def __len__(self):
                return len(data)

            def __getitem__(self, index):
                sample = data.get(index)
                spin(arguments.decode)
                return len(sample)

        yield from DataLoader(Samples(), arguments.batch, shuffle=True, num_workers=arguments.workers)
        return
    order = list(range(len(data)))
    random_order.shuffle(order)
    for begin in range(0, len(order), arguments.batch):
        batch = []
        for index in order[begin:begin + arguments.batch]:
            batch.append(data.get(index))
            spin(arguments.decode)
        yield batch


def run(arguments):
    data = None if arguments.layout == "shards" else LAYOUTS[arguments.layout](arguments.where)
    if arguments.workers:
        import torch.utils.data  # not within the first epoch
    print("epochs begin at %.6f" % time.monotonic(), flush=True)
    for epoch in range(arguments.epochs):
        begin, steps = time.monotonic(), 0
        for _ in batches(arguments, data, epoch):
            time.sleep(arguments.step)
            steps += 1
        with open(os.path.join(arguments.out, "epoch_%d.pt" % epoch), "wb") as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
        print("epoch %d: %d steps in %.3f s" % (epoch, steps, time.monotonic() - begin), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["make", "run"])
    parser.add_argument("layout", choices=sorted(LAYOUTS) + ["shards"])
    parser.add_argument("where")
    parser.add_argument("samples", type=int, nargs="?", default=800)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--decode", type=float, default=0.0005)
    parser.add_argument("--seed", type=int, default=0, help="of the order; loader processes have another one each time")
    parser.add_argument("--out", default=".")
    arguments = parser.parse_args()
    if arguments.action == "make":
        make(arguments.layout, arguments.where, arguments.samples)
    else:
        os.makedirs(arguments.out, exist_ok=True)
        run(arguments)


if __name__ == "__main__":
    main()
