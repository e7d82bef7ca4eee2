#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training with PyTorch whose checkpoints are written past the page cache, several parts in flight: the parameters are copied into a
staging buffer, and a thread writes that while the loop goes on.

    ring_checkpoints.py ENGINE LIBRARY DEPTH DIR OUT EVERY MIB     per file of DIR a step; after each EVERY files a checkpoint of MIB
                                                                  MiB by ENGINE, in parts of 1 MiB, DEPTH at once

ENGINE is uring or aio, and LIBRARY then ring_writer.c; or deepspeed, whose own module writes by Linux AIO. Prints "span SECONDS busy 0": from the first file until the last checkpoint is on the device; marks it
"span"."""

import ctypes
import mmap
import os
import sys
import threading
import time

import torch

import reprise

CHUNK = 128 * 1024
PART = 1 << 20


class Writer:
    """One checkpoint at a time; the next one waits for it."""

    def __init__(self, engine, library, depth, out, size):
        self.depth, self.use_ring, self.out, self.handle = depth, engine == "uring", out, None
        if engine == "deepspeed":
            sys.path.insert(0, os.path.join(sys.prefix, "extensions", "async_io"))  # packages.py has had it compiled
            import async_io
            self.handle = async_io.aio_handle(PART, depth, False, True, 1)
        else:
            self.library = ctypes.CDLL(library)
        self.staging = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # aligned as O_DIRECT asks for
        self.tensor = torch.frombuffer(self.staging, dtype=torch.float32)
        self.address = ctypes.c_void_p(self.tensor.data_ptr())
        self.thread, self.failed = None, []

    def save(self, parameters, number):
        self.wait()
        at = 0
        for parameter in parameters:
            self.tensor[at:at + parameter.numel()].copy_(parameter.detach().reshape(-1))
            at += parameter.numel()
        self.thread = threading.Thread(target=self._write, args=(number,))
        self.thread.start()

    def _write(self, number):
        name = os.path.join(self.out, f"checkpoint-{number}")
        if self.handle:
            self.handle.sync_pwrite(self.tensor, name + ".new")
            fd = os.open(name + ".new", os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        code = 0 if self.handle else self.library.write_file((name + ".new").encode(), self.address, ctypes.c_long(len(self.staging)), self.depth, ctypes.c_long(PART),
                                       int(self.use_ring))
        if code != 0:
            self.failed.append(os.strerror(code))
            return
        os.rename(name + ".new", name)
        if number > 1:  # two are kept
            os.unlink(os.path.join(self.out, f"checkpoint-{number - 2}"))

    def wait(self):
        if self.thread:
            self.thread.join()
        if self.failed:
            sys.exit(f"ring_checkpoints.py: {self.failed[0]}")


def main():
    engine, library, depth, folder, out, every, mib = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    size, width = int(mib) << 20, 256
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(size // (4 * width * width))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    writer = Writer(engine, library, int(depth), out, size)
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    reprise.begin("span")
    begin = time.monotonic()
    for number, name in enumerate(names):
        data = bytearray()
        with open(name, "rb", buffering=0) as file:
            while part := file.read(CHUNK):
                data += part
        batch = torch.frombuffer(data, dtype=torch.uint8)[:4 * width].reshape(4, width).float() / 255
        optimizer.zero_grad(set_to_none=True)
        model[number % len(model)](batch).square().mean().backward()
        optimizer.step()
        if number % int(every) == int(every) - 1:
            writer.save(list(model.parameters()), number // int(every))
    writer.wait()
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
