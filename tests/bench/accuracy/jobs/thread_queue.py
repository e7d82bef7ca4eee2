#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reader threads hand files to the main thread through a queue.Queue, which makes no system call while nobody has to wait.

    thread_queue.py DIR COMPUTE     per file the main thread computes COMPUTE thousand additions

Prints "span SECONDS busy 0"; marks it "span"."""

import os
import queue
import sys
import threading
import time

import reprise

READERS, CAPACITY, CHUNK = 2, 16, 128 * 1024


def read_files(names, out):
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            return
        parts = []
        with open(name, "rb", buffering=0) as file:
            while part := file.read(CHUNK):
                parts.append(part)
        out.put(parts)


def compute(thousands):
    total = 0
    for i in range(1000 * thousands):
        total += i
    return total


def main():
    folder, thousands = sys.argv[1], int(sys.argv[2])
    names, ready = queue.SimpleQueue(), queue.Queue(CAPACITY)
    files = sorted(os.listdir(folder))
    for name in files:
        names.put(os.path.join(folder, name))
    reprise.begin("span")
    begin = time.monotonic()
    readers = [threading.Thread(target=read_files, args=(names, ready)) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for _ in files:
        ready.get()
        compute(thousands)
    for reader in readers:
        reader.join()
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
