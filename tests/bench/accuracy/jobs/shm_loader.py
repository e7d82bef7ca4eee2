#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch DataLoader whose workers hand whole batches over through /dev/shm, as all its loaders do; here they are large.

    shm_loader.py DIR FILES WORKERS COMPUTE EPOCHS     a batch is FILES files of DIR; per batch the main thread adds all its bytes
                                                       and multiplies COMPUTE matrices

Prints "span SECONDS busy 0"; marks it "span"."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

import reprise


class Files(Dataset):
    def __init__(self, folder):
        self.names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with open(self.names[index], "rb", buffering=0) as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


def main():
    files, workers, compute, epochs = (int(word) for word in sys.argv[2:6])
    loader = DataLoader(Files(sys.argv[1]), batch_size=files, shuffle=False, num_workers=workers)
    torch.set_num_threads(1)
    matrix, total = torch.rand(128, 128), 0
    reprise.begin("span")
    begin = time.monotonic()
    for _ in range(epochs):
        for batch in loader:
            total += int(batch.sum(dtype=torch.int64))
            for _ in range(compute):
                torch.mm(matrix, matrix)
    reprise.end("span")
    print("span %.6f busy 0 sum %d" % (time.monotonic() - begin, total))


main()
