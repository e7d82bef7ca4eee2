#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A loader on a ring of its own, by PyPI's `liburing`: samples at random places of a file, a batch ahead of the consumer.

    uring_loader.py FILE DEPTH BATCHES SIZE COMPUTE     a batch is DEPTH samples of SIZE bytes; COMPUTE thousand additions per batch

While a batch is computed on, the next one is in flight. Prints "span SECONDS busy 0"; marks it "span"."""

import os
import random
import sys
import time

import liburing

import reprise


def main():
    path, depth, batches, size, thousands = sys.argv[1], *(int(word) for word in sys.argv[2:])
    fd = os.open(path, os.O_RDONLY)
    blocks, source = os.fstat(fd).st_size // size, random.Random(1)
    slots = [bytearray(size) for _ in range(2 * depth)]
    ring, cqe = liburing.Ring(), liburing.Cqe()
    liburing.io_uring_queue_init(2 * depth, ring)
    done = [0, 0]

    def submit(half):
        for i in range(half * depth, (half + 1) * depth):
            sqe = liburing.io_uring_get_sqe(ring)
            liburing.io_uring_prep_read(sqe, fd, slots[i], source.randrange(blocks) * size)
            sqe.user_data = i + 1
        liburing.io_uring_submit(ring)

    def wait(half):
        while done[half] < depth:
            liburing.io_uring_wait_cqe(ring, cqe)
            entry = cqe[0]
            if entry.res != size:
                sys.exit(f"uring_loader.py: a read returned {entry.res}")
            done[(entry.user_data - 1) // depth] += 1
            liburing.io_uring_cqe_seen(ring, entry)
        done[half] = 0

    reprise.begin("span")
    begin, total = time.monotonic(), 0
    submit(0)
    for number in range(batches):
        wait(number % 2)
        if number + 1 < batches:
            submit(1 - number % 2)
        for i in range(1000 * thousands):
            total += i
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
