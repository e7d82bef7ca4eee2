#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training with checkpoints in the background: while the loop reads and computes, a thread writes, syncs and renames.

    checkpoints.py DIR OUT COMPUTE EVERY MIB     per file of DIR COMPUTE thousand additions; after each EVERY files a checkpoint
                                                 of MIB MiB is begun in OUT, once the one before is done

Prints "span SECONDS busy 0": from the first file until the last checkpoint is on the device; marks it "span"."""

import os
import sys
import threading
import time

import reprise

CHUNK = 128 * 1024
PART = 1 << 20


def compute(thousands):
    total = 0
    for i in range(1000 * thousands):
        total += i
    return total


def checkpoint(out, number, mib):
    part = os.urandom(PART)
    name = os.path.join(out, f"checkpoint-{number}")
    with open(name + ".new", "wb", buffering=0) as file:
        for _ in range(mib):
            file.write(part)
        os.fsync(file.fileno())
    os.rename(name + ".new", name)
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)
    if number > 1:  # two are kept
        os.unlink(os.path.join(out, f"checkpoint-{number - 2}"))


def main():
    folder, out = sys.argv[1:3]
    thousands, every, mib = (int(word) for word in sys.argv[3:6])
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    reprise.begin("span")
    begin, writer = time.monotonic(), None
    for number, name in enumerate(names):
        with open(name, "rb", buffering=0) as file:
            while file.read(CHUNK):
                pass
        compute(thousands)
        if number % every == every - 1:
            if writer:
                writer.join()
            writer = threading.Thread(target=checkpoint, args=(out, number // every, mib))
            writer.start()
    if writer:
        writer.join()
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
