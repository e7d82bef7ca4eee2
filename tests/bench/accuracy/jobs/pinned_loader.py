#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch DataLoader with pin_memory: between its workers and the loop stands a thread with a queue of its own.

    pinned_loader.py DIR COMPUTE     per batch the main thread multiplies COMPUTE matrices

There is no accelerator here, and without one PyTorch leaves the thread out. So this job says that there is one and makes
pinning a copy into ordinary memory; thread and queues are PyTorch's own. Prints "span SECONDS busy 0"; marks it "span"."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

import reprise

torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = lambda device: None
torch.Tensor.pin_memory = lambda self, device=None: self.clone()


class Files(Dataset):
    def __init__(self, folder):
        self.names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with open(self.names[index], "rb", buffering=0) as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


def main():
    loader = DataLoader(Files(sys.argv[1]), batch_size=4, shuffle=False, num_workers=2, pin_memory=True)
    torch.set_num_threads(1)
    matrix, total = torch.rand(128, 128), 0
    reprise.begin("span")
    begin = time.monotonic()
    for batch in loader:
        total += int(batch[0][0])
        for _ in range(int(sys.argv[2])):
            torch.mm(matrix, matrix)
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
