# SPDX-License-Identifier: MIT
# A job that knows nothing of marks; prints what it computed, which the hook must not change.
import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.tensor([i * i])


class Counting(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        return iter(range(0 if info is None else info.id, 6, 1 if info is None else info.num_workers))


def main(kind):
    torch.manual_seed(7)
    options = {
        "plain": dict(num_workers=0),
        "workers": dict(num_workers=2),
        "persistent": dict(num_workers=2, persistent_workers=True),
        "spawn": dict(num_workers=1, multiprocessing_context="spawn"),
        "iterable": dict(num_workers=2),
    }[kind]
    data = Counting() if kind == "iterable" else Squares()
    train = DataLoader(data, batch_size=4 if kind != "iterable" else 3, shuffle=kind != "iterable", **options)
    other = DataLoader(Squares(), batch_size=6, **options)
    for _ in range(2):
        for batch in train:
            print(batch.flatten().tolist(), flush=True)
    for batch in other:
        print(batch.flatten().tolist(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
