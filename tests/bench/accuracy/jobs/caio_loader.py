#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An asyncio loader on `caio`, the engine below PyPI's `aiofile`: samples at random places of a file, some at once.

    caio_loader.py ENGINE FILE DEPTH COUNT SIZE COMPUTE     ENGINE: uring or aio; DEPTH readers take COUNT samples of SIZE bytes; COMPUTE
                                                           thousand additions per sample

Prints "span SECONDS busy 0"; marks it "span"."""

import asyncio
import os
import random
import sys
import time

import caio

import reprise


async def load(engine, path, depth, count, size, thousands):
    fd, source = os.open(path, os.O_RDONLY), random.Random(1)
    blocks = os.fstat(fd).st_size // size
    places = iter([source.randrange(blocks) * size for _ in range(count)])
    kind, more = (caio.linux_uring_asyncio, {"sqpoll": False}) if engine == "uring" else (caio.linux_aio_asyncio, {})
    async with kind.AsyncioContext(max_requests=depth, **more) as context:
        async def reader():
            total = 0
            for place in places:
                if len(await context.read(size, fd, place)) != size:
                    sys.exit("caio_loader.py: short read")
                for i in range(1000 * thousands):
                    total += i

        reprise.begin("span")
        begin = time.monotonic()
        await asyncio.gather(*(reader() for _ in range(depth)))
        reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


asyncio.run(load(sys.argv[1], sys.argv[2], *(int(word) for word in sys.argv[3:])))
