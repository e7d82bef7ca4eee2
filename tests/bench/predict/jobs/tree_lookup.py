#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks up random keys of an LMDB tree, which maps its file and advises MADV_RANDOM.

    tree_lookup.py make FILE MIB
    tree_lookup.py read FILE COUNT

Prints "span SECONDS busy 0"; marks it "span"."""

import random
import sys
import time

import lmdb

VALUE = 900  # bytes: four to a page


def key(number):
    return b"%016d" % (number * 2654435761 % (1 << 32))


def main():
    path, number = sys.argv[2], int(sys.argv[3])
    if sys.argv[1] == "make":
        source = random.Random(3)
        with lmdb.open(path, subdir=False, map_size=4 << 30, sync=False) as base, base.begin(write=True) as change:
            for i in range(number * (1 << 20) // 1024):
                change.put(key(i), source.randbytes(VALUE))
        return
    import reprise

    reprise.begin("span")
    begin, found = time.monotonic(), 0
    with lmdb.open(path, subdir=False, readonly=True, lock=False, readahead=False) as base, base.begin() as view:
        count, source = view.stat()["entries"], random.Random(11)
        for _ in range(number):
            found += len(view.get(key(source.randrange(count))))
    reprise.end("span")
    print("span %.6f busy 0 found %d" % (time.monotonic() - begin, found))


main()
