#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples of a file of tokens, as loaders of language models read it: numpy.memmap, windows at random places, a step of
computing per batch.

    tokens.py FILE STEPS [THREADS]     batches of 16 windows of 1024 tokens of 16 bits

Prints "span SECONDS busy 0"; marks it "span"."""

import sys
import time

import numpy
import reprise

BATCH, WINDOW = 16, 1024


def main():
    path, steps = sys.argv[1], int(sys.argv[2])
    source = numpy.random.default_rng(5)
    weights = source.random((WINDOW, 256), dtype=numpy.float32)
    reprise.begin("span")
    begin, total = time.monotonic(), 0.0
    tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")
    for _ in range(steps):
        places = source.integers(0, len(tokens) - WINDOW, BATCH)
        batch = numpy.stack([tokens[at:at + WINDOW] for at in places]).astype(numpy.float32)
        for _ in range(8):
            total += float((batch @ weights).sum())
    reprise.end("span")
    print("span %.6f busy 0 sum %g" % (time.monotonic() - begin, total))


main()
