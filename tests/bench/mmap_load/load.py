# SPDX-License-Identifier: MIT
"""Loads a model file in the safetensors format, as model servers do.

  load.py make FILE --bytes N           writes one of N bytes: tensors of 64 KiB (norms) to 64 MiB (weights)
  load.py mmap FILE [--prefetch]        maps the file and touches every tensor in turn; asks for all of it before
  load.py read FILE [--piece BYTES] [--direct] [--staged]    reads every tensor in turn, a piece at a time; with O_DIRECT; into one
                                        buffer for all, as loaders that pass them on to an accelerator
Prints the seconds that loading took. The format: 8 bytes with the length of a JSON header, the header, the tensors.
"""

import argparse
import ctypes
import json
import mmap
import os
import random
import struct
import time

PAGE = 4096
PREFETCH = 128 << 10  # the kernel takes no more of one request than the device's read-ahead
SIZES = [64 << 10, 16 << 20, 4 << 20, 64 << 10, 48 << 20, 64 << 20, 1 << 20]  # of a layer: norms, attention, feed-forward


def make(path, total):
    tensors, at = {}, 0
    while at < total:
        size = min(SIZES[len(tensors) % len(SIZES)], total - at)
        tensors[f"layer.{len(tensors)}"] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(tensors).encode()
    header += b" " * (-(len(header) + 8) % 8)
    noise = random.Random(1).randbytes(4 << 20)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        left = at
        while left > 0:
            left -= file.write(noise[:min(left, len(noise))])
        file.flush()
        os.fsync(file.fileno())


def tensors_of(header):
    return [entry["data_offsets"] for entry in json.loads(header).values()]


def by_mmap(path, prefetch):
    """The pages of each tensor, one byte each, as a copy to the accelerator reads them."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if prefetch:
            readahead = ctypes.CDLL(None).readahead
            readahead.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_size_t]
            for at in range(0, size, PREFETCH):
                readahead(file.fileno(), at, PREFETCH)
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = struct.unpack("<Q", view[:8])[0]
    base = 8 + length
    touched = 0
    for begin, end in tensors_of(view[8:base]):
        touched += len(view[base + begin:base + end:PAGE])
    view.close()
    return touched


def new_memory(size):
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def by_read(path, piece, direct, staged):
    with open(path, "rb", buffering=0) as file:
        length = struct.unpack("<Q", file.read(8))[0]
        base = 8 + length
        tensors = tensors_of(file.read(length))
    descriptor = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    got = 0
    buffer = new_memory(piece)
    for begin, end in tensors:
        first = (base + begin) // PAGE * PAGE if direct else base + begin
        last = -(-(base + end) // PAGE) * PAGE if direct else base + end
        memory = None if staged else new_memory(last - first)
        for at in range(0, last - first, piece):
            into = buffer[:min(piece, last - first - at)] if staged else memory[at:at + piece]
            got += os.preadv(descriptor, [into], first + at)
    os.close(descriptor)
    return got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["make", "mmap", "read"])
    parser.add_argument("file")
    parser.add_argument("--bytes", type=int, default=2_000_000_000)
    parser.add_argument("--piece", type=int, default=1 << 20)
    parser.add_argument("--prefetch", action="store_true")
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--staged", action="store_true")
    arguments = parser.parse_args()
    if arguments.how == "make":
        return make(arguments.file, arguments.bytes)
    begin = time.monotonic()
    if arguments.how == "mmap":
        by_mmap(arguments.file, arguments.prefetch)
    else:
        by_read(arguments.file, arguments.piece, arguments.direct, arguments.staged)
    print(f"{time.monotonic() - begin:.3f}")


if __name__ == "__main__":
    main()
