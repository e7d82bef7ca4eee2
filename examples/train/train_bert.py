#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A language model: BERT-style masked tokens out of a memory-mapped file, loader workers, a checkpoint per epoch.

    train_bert.py DIR/tokens.bin [--epochs 1] [--workers 2] [--steps 200] [--model-sleep SECONDS]
"""

import numpy
import torch
import torch.nn.functional as functional
from torch import nn
from torch.utils.data import DataLoader, Dataset

import common

MASK, VOCABULARY = 2048, 2049


class Tokens(Dataset):
    """Sequences of a file of 16-bit tokens; the file is mapped, not read."""

    def __init__(self, path, length):
        self.tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")
        self.length = length

    def __len__(self):
        return len(self.tokens) // self.length

    def __getitem__(self, index):
        start = index * self.length
        tokens = torch.from_numpy(self.tokens[start:start + self.length].astype(numpy.int64))
        hidden = torch.rand(self.length) < 0.15
        return torch.where(hidden, torch.tensor(MASK), tokens), torch.where(hidden, tokens, torch.tensor(-100))


class Bert(nn.Module):
    def __init__(self, width, length, layers):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.encoder(self.words(tokens) + self.places)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--layers", type=int, default=2)
    parser.set_defaults(width=32, batch=16, steps=200)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    loader = DataLoader(Tokens(arguments.data, arguments.length), arguments.batch, shuffle=True,
                        num_workers=arguments.workers)

    def loss_of(model, batch):
        hidden = batch[1] >= 0  # only what was hidden is guessed
        return functional.cross_entropy(model.out(model(batch[0])[hidden]), batch[1][hidden])

    common.train(arguments, Bert(arguments.width, arguments.length, arguments.layers), loader, loss_of)


if __name__ == "__main__":
    main()
