#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the data of the two training jobs, the same on every machine: a folder of JPEGs and a file of tokens.

    make_data.py DIR [--images 2000] [--classes 10] [--tokens 16000000]
"""

import argparse
import os

import numpy
from PIL import Image


def make_images(directory, count, classes, seed):
    """Photographs' sizes: 40 to 110 KiB each, a class per folder."""
    random = numpy.random.RandomState(seed)
    total = 0
    for i in range(count):
        folder = os.path.join(directory, "class_%02d" % (i % classes))
        os.makedirs(folder, exist_ok=True)
        side = int(random.randint(230, 361))
        # Noise over a coarse pattern of the class: compresses like a photograph of fine texture.
        coarse = numpy.kron(numpy.random.RandomState(i % classes).randint(0, 160, (8, 8, 3)), numpy.ones((46, 46, 1)))
        pixels = coarse[:side, :side] + random.randint(0, 112, (side, side, 3))
        path = os.path.join(folder, "image_%05d.jpg" % i)
        Image.fromarray(pixels.astype(numpy.uint8)).save(path, quality=90)
        total += os.path.getsize(path)
    return total


def make_tokens(path, count, vocabulary, seed):
    """16-bit tokens whose frequencies fall as words' do."""
    random = numpy.random.RandomState(seed)
    ranks = random.zipf(1.3, size=count) - 1
    numpy.minimum(ranks, vocabulary - 1).astype(numpy.uint16).tofile(path)
    return os.path.getsize(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=16_000_000)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=20240601)
    arguments = parser.parse_args()
    os.makedirs(arguments.directory, exist_ok=True)
    if arguments.images:
        size = make_images(os.path.join(arguments.directory, "images"), arguments.images, arguments.classes,
                           arguments.seed)
        print("%d images, %.1f MiB" % (arguments.images, size / 2**20))
    if arguments.tokens:
        size = make_tokens(os.path.join(arguments.directory, "tokens.bin"), arguments.tokens, arguments.vocabulary,
                           arguments.seed)
        print("%d tokens, %.1f MiB" % (arguments.tokens, size / 2**20))


if __name__ == "__main__":
    main()
