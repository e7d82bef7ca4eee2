#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The image classifier of train_resnet.py on several ranks: DistributedDataParallel with gloo, a share of the images
each, gradients averaged after each step, a checkpoint per epoch by rank 0.

    torchrun --nproc_per_node 4 train_ddp.py DIR/images [--epochs 1] [--workers 1]
    mpirun -n 4 train_ddp.py DIR/images

With --model-sleep each rank sleeps in place of its model and averages gradients of that size; an epoch ends when the
slowest rank is done.
"""

import os
import time

import torch
import torch.distributed as distributed
import torch.nn.functional as functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import common
from train_resnet import Images, resnet18


def join():
    """Ranks by torchrun's variables, or by those of Open MPI; all on one host unless MASTER_ADDR says otherwise."""
    for name, of_mpi in (("RANK", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")):
        if name not in os.environ and of_mpi in os.environ:
            os.environ[name] = os.environ[of_mpi]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    distributed.init_process_group("gloo")


def step_of(model, optimizer, batch):
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss


def sleep_step(seconds, step, gradients):
    """Seconds that the stand-in for an accelerator was busy."""
    begin = time.monotonic()
    with common.marked("accelerator", step):
        time.sleep(seconds)
    busy = time.monotonic() - begin
    distributed.all_reduce(gradients)
    return busy


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=32, help="of the images that the model sees")
    arguments = parser.parse_args()
    join()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    images = Images(arguments.data, arguments.side)
    sampler = DistributedSampler(images, shuffle=True, seed=1)
    loader = DataLoader(images, arguments.batch, sampler=sampler, num_workers=arguments.workers)
    model = DistributedDataParallel(resnet18(arguments.width, len(images.classes)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    gradients = torch.zeros(sum(part.numel() for part in model.parameters()))
    rank = distributed.get_rank()
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        steps, loss, busy = 0, None, 0.0
        distributed.barrier()
        begin = time.monotonic()
        with common.marked("span", epoch):
            for batch in loader:
                if arguments.model_sleep is not None:
                    busy += sleep_step(arguments.model_sleep, steps, gradients)
                else:
                    loss = step_of(model, optimizer, batch)
                steps += 1
                if steps == arguments.steps:
                    break
            if rank == 0:
                common.save(model.module, optimizer, arguments.out, epoch)
            distributed.barrier()
        end = time.monotonic()
        if loss is not None and rank == 0:
            print("epoch %d: %d steps, loss %.3f" % (epoch, steps, float(loss)), flush=True)
        elif loss is None:  # in one write: the ranks share the terminal
            line = "rank %d epoch %d: %d steps from %.6f to %.6f, accelerator %.3f s\n"
            os.write(1, (line % (rank, epoch, steps, begin, end, busy)).encode())
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
