#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An event loop: asyncio reads files in the threads of an executor, eight at a time, and computes in the loop as they come.

    asyncio_reader.py DIR COMPUTE     per file the loop computes COMPUTE thousand additions

Prints "span SECONDS busy 0"; marks it "span"."""

import asyncio
import concurrent.futures
import os
import sys
import time
import zlib

import reprise

THREADS, AT_A_TIME, CHUNK = 4, 8, 128 * 1024


def read(name):
    check = 0
    with open(name, "rb", buffering=0) as file:
        while part := file.read(CHUNK):
            check = zlib.crc32(part, check)
    return check


def compute(thousands):
    total = 0
    for i in range(1000 * thousands):
        total += i
    return total


async def one(name, pool, turn, thousands):
    async with turn:
        check = await asyncio.get_running_loop().run_in_executor(pool, read, name)
    compute(thousands)
    return check


async def main():
    folder, thousands = sys.argv[1], int(sys.argv[2])
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    turn = asyncio.Semaphore(AT_A_TIME)
    reprise.begin("span")
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        checks = await asyncio.gather(*(one(name, pool, turn, thousands) for name in names))
    reprise.end("span")
    print("span %.6f busy 0 sum %d" % (time.monotonic() - begin, sum(checks)))


asyncio.run(main())
