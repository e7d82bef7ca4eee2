#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HDF5's chunks, compressed, in random order: one thread reads, decompresses and computes.

    h5_reader.py FILE BATCHES     BATCHES of 16 samples of the dataset "x"

Prints "span SECONDS busy 0"; marks it "span"."""

import random
import sys
import time

import h5py
import numpy

import reprise


def main():
    source, total = random.Random(7), 0.0
    with h5py.File(sys.argv[1], "r") as file:
        data = file["x"]
        order = source.sample(range(len(data)), len(data))
        reprise.begin("span")
        begin = time.monotonic()
        for number in range(int(sys.argv[2])):
            batch = numpy.stack([data[order[(16 * number + i) % len(order)]] for i in range(16)])
            total += float(numpy.abs(numpy.fft.fft2(batch)).mean())
        reprise.end("span")
        print("span %.6f busy 0 total %.3f" % (time.monotonic() - begin, total))


main()
