#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples out of an LMDB, a B-tree that is read by page faults alone: two threads, random keys.

    lmdb_reader.py DIR SAMPLES     SAMPLES lookups by each thread, and half a millisecond of hashing for each

Prints "span SECONDS busy 0"; marks it "span"."""

import hashlib
import random
import sys
import threading
import time

import lmdb

import reprise

ROUNDS = 2500  # half a millisecond


def look(base, seed, count):
    source = random.Random(seed)
    with base.begin(buffers=True) as view:
        keys = view.stat()["entries"]
        for _ in range(count):
            value = view.get(b"%08d" % source.randrange(keys))
            hashlib.pbkdf2_hmac("sha256", value, b"", ROUNDS)


def main():
    base = lmdb.open(sys.argv[1], readonly=True, lock=False, readahead=True)
    threads = [threading.Thread(target=look, args=(base, seed, int(sys.argv[2]))) for seed in (1, 2)]
    reprise.begin("span")
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
