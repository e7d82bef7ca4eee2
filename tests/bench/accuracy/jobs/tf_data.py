#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TensorFlow's input pipeline in C++: tf.data reads files in parallel, tunes itself, and hands batches to the loop.

    tf_data.py DIR COMPUTE     per batch of sixteen files of DIR the main thread multiplies COMPUTE matrices

Prints "span SECONDS busy 0"; marks it "span"."""

import os
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import reprise  # noqa: E402


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]

    def numbers(name):
        return tf.cast(tf.io.decode_raw(tf.io.read_file(name), tf.uint8), tf.float32)

    data = tf.data.Dataset.from_tensor_slices(names).map(numbers, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)
    matrix, total = numpy.random.default_rng(1).random((128, 128), dtype=numpy.float32), 0.0
    reprise.begin("span")
    begin = time.monotonic()
    for batch in data:
        total += float(batch[0][0])
        for _ in range(int(sys.argv[2])):
            matrix @ matrix
    reprise.end("span")
    print("span %.6f busy 0" % (time.monotonic() - begin))


main()
