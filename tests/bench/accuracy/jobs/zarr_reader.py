#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches of a Zarr 3 array, whose chunks are files: its event loop gives them to a pool of threads, several at a time.

    zarr_reader.py DIR BATCHES     BATCHES of 16 neighbouring samples, in random order

Prints "span SECONDS busy 0"; marks it "span"."""

import random
import sys
import time

import numpy
import zarr

import reprise


def main():
    data = zarr.open_array(sys.argv[1], mode="r")
    batches = data.shape[0] // 16
    order = random.Random(7).sample(range(batches), batches)
    reprise.begin("span")
    begin, total = time.monotonic(), 0.0
    for number in range(int(sys.argv[2])):
        first = 16 * order[number % batches]
        batch = data[first:first + 16]
        total += float(numpy.abs(numpy.fft.fft2(batch)).mean())
    reprise.end("span")
    print("span %.6f busy 0 total %.3f" % (time.monotonic() - begin, total))


main()
