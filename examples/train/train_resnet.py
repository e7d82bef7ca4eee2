#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An image classifier: ResNet-18 over a folder of JPEGs, loader workers, a checkpoint per epoch.

    train_resnet.py DIR/images [--epochs 1] [--workers 2] [--model-sleep SECONDS]
"""

import os

import numpy
import torch
import torch.nn.functional as functional
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

import common


class Images(Dataset):
    """A class per folder, as torchvision's ImageFolder."""

    def __init__(self, directory, side):
        self.side = side
        self.classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        self.samples = [(os.path.join(directory, name, file), number) for number, name in enumerate(self.classes)
                        for file in sorted(os.listdir(os.path.join(directory, name)))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            image = Image.open(file).convert("RGB").resize((self.side, self.side))
        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float() / 255, label


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.short = None
        if stride != 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = functional.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return functional.relu(y + (x if self.short is None else self.short(x)))


def resnet18(width, classes):
    layers = [nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage in range(4):
        after = width << stage
        layers += [Block(before, after, 1 if stage == 0 else 2), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=64, help="of the images that the model sees")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    images = Images(arguments.data, arguments.side)
    loader = DataLoader(images, arguments.batch, shuffle=True, num_workers=arguments.workers)

    def loss_of(model, batch):
        return functional.cross_entropy(model(batch[0]), batch[1])

    common.train(arguments, resnet18(arguments.width, len(images.classes)), loader, loss_of)


if __name__ == "__main__":
    main()
