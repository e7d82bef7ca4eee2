# SPDX-License-Identifier: MIT
"""The experiments: which job is recorded where and replayed where, beside which real run, and the error allowed."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Cell:
    group: str
    name: str
    recorded: object  # the job as it is recorded
    source: tuple  # (storage, regime)
    real: object  # the job that really runs
    target: tuple
    options: tuple = ()
    bar: float = 5.0  # percent, of the span; points, of AU
    judge: str = "span"
    shared: bool = True  # the real run of a round serves other cells of it, too


STORAGES = {  # name: (kind, MB/s)
    "ext4": ("ext4", None), "xfs": ("xfs", None), "btrfs": ("btrfs", None), "tmpfs": ("tmpfs", None),
    "xfs-25": ("xfs", 25), "xfs-50": ("xfs", 50), "xfs-100": ("xfs", 100),
}

def cells(jobs):
    fast, found = ("xfs", "cold"), []

    def same(group, regime, bar):
        for name in ("resnet", "bert"):
            found.append(Cell(group, name, jobs[name], ("xfs", regime), jobs[name], ("xfs", regime), bar=bar))

    same("warm", "warm", 3.0)
    same("cold", "cold", 5.0)
    for name in ("resnet-sleep", "bert-sleep"):
        for rate in (25, 50, 100):
            found.append(Cell("slower", f"{name}, {rate} MB/s", jobs[name], fast, jobs[name], (f"xfs-{rate}", "cold")))
    for name in ("resnet-sleep", "bert-sleep"):
        found.append(Cell("faster", f"{name}, 25 MB/s to xfs", jobs[name], ("xfs-25", "cold"), jobs[name], fast))
    for rate in (25, 50):
        job = jobs["resnet-sleep"]
        found.append(Cell("au", f"resnet-sleep, xfs to {rate} MB/s", job, fast, job, (f"xfs-{rate}", "cold"), bar=3.0, judge="au"))
    for name in ("resnet-busy", "bert-sleep"):
        for factor in (2, 4):
            found.append(Cell("gpu", f"{name}, accelerator x {factor}", jobs[name], fast, jobs[name].faster(factor), fast,
                              options=("--gpu-speed", str(factor))))
    for name in ("ring", "queue", "pinned"):
        found.append(Cell("handover", f"{name}, xfs to 25 MB/s", jobs[name], fast, jobs[name], ("xfs-25", "cold")))
        found.append(Cell("handover", f"{name}, 25 MB/s to xfs", jobs[name], ("xfs-25", "cold"), jobs[name], fast))
    places = [("ext4", "cold"), ("xfs", "cold"), ("btrfs", "cold"), ("tmpfs", "warm"), ("xfs-50", "cold")]
    for name in ("sqlite", "tar", "rsync"):
        for target in places:
            for source in places:
                # Five replays against one real run would share whatever happened to it. A limit leaves little to happen.
                found.append(Cell("programs", f"{name}, {source[0]} to {target[0]}", jobs[name], source, jobs[name], target,
                                  shared=STORAGES[target[0]][1] is not None))
    return found
