#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Distributed training on one host: two ranks of PyTorch's DistributedDataParallel, gradients added by gloo through sockets.

    ddp.py DIR STEPS     per step each rank reads sixteen of its own files of DIR and trains on them

Prints "span SECONDS busy 0": rank 0, from one barrier to the other; marks it "span"."""

import os
import socket
import sys
import time

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import reprise  # noqa: E402

RANKS, FILES, WIDTH, TAKEN = 2, 16, 512, 4 * 1024


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sample(name):
    with open(name, "rb", buffering=0) as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)[:TAKEN].float().reshape(-1, WIDTH) / 255


def train(rank, port, folder, steps):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))][rank::RANKS]
    distributed.barrier()
    if rank == 0:
        reprise.begin("span")
    begin = time.monotonic()
    for step in range(steps):
        batch = torch.cat([sample(names[(step * FILES + i) % len(names)]) for i in range(FILES)])
        optimizer.zero_grad()
        (model(batch) - batch).square().mean().backward()
        optimizer.step()
    distributed.barrier()
    if rank == 0:
        reprise.end("span")
        print("span %.6f busy 0" % (time.monotonic() - begin), flush=True)
    distributed.destroy_process_group()


def main():
    port = free_port()
    other = os.fork()
    train(1 if other == 0 else 0, port, sys.argv[1], int(sys.argv[2]))
    if other == 0:
        os._exit(0)
    if os.waitpid(other, 0)[1] != 0:
        sys.exit("rank 1 failed")


main()
