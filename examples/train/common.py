# SPDX-License-Identifier: MIT
"""What both training jobs share: options, the training loop, checkpoints."""

import argparse
import contextlib
import os
import time

import torch

try:
    import reprise  # marks, where PYTHONPATH leads to it; the jobs need none
except ImportError:
    reprise = None


@contextlib.contextmanager
def marked(name, number):
    """A span with marks at both ends, where there are marks."""
    if reprise:
        reprise.begin(name, number)
    yield
    if reprise:
        reprise.end(name, number)


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", help="what make_data.py made")
    parser.add_argument("--out", default="checkpoints", help="folder for checkpoints")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="end an epoch after so many steps; 0: with the data")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=16, help="of the model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model-sleep", type=float, metavar="SECONDS",
                        help="stand-in for an accelerator: sleep so long instead of each step of the model")
    return parser


def save(model, optimizer, directory, epoch):
    """By another name first, so that a crash leaves the old checkpoint whole."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "epoch_%d.pt" % epoch)
    with open(path + ".tmp", "wb") as file:
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)
    return path


def train(arguments, model, loader, loss_of):
    """`loss_of(model, batch)` gives the loss of one batch."""
    torch.set_num_threads(1)  # the workers of the loader need the other processors
    device = torch.device(arguments.device)
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(arguments.epochs):
        if reprise:
            reprise.begin("span", epoch)
        begin, steps, loss, busy = time.monotonic(), 0, None, 0.0
        for batch in loader:
            batch = [part.to(device) for part in batch]
            if arguments.model_sleep is not None:
                start = time.monotonic()
                with marked("accelerator", steps):
                    time.sleep(arguments.model_sleep)
                busy += time.monotonic() - start
            else:
                loss = loss_of(model, batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            steps += 1
            if steps == arguments.steps:
                break
        path = save(model, optimizer, arguments.out, epoch)
        took = time.monotonic() - begin
        if reprise:
            reprise.end("span", epoch)
        what = "loss %.3f" % loss.item() if loss is not None else "accelerator %.3f s" % busy
        print("epoch %d: %d steps in %.3f s, %s, %s" % (epoch, steps, took, what, path), flush=True)
