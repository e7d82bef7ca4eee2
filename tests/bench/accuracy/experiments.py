# SPDX-License-Identifier: MIT
"""The experiments: which job is recorded where and replayed where, beside which real run, and the error allowed."""

import dataclasses

from storage import Kind


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

    @property
    def part(self):
        """Intervals are fitted to some cells and judged by the others."""
        return "fit" if self.recorded.fit else "judge"


STORAGES = {
    "ext4": Kind("ext4"), "xfs": Kind("xfs"), "btrfs": Kind("btrfs"), "tmpfs": Kind("tmpfs"),
    "xfs-25": Kind("xfs", mb_per_s=25), "xfs-50": Kind("xfs", mb_per_s=50), "xfs-100": Kind("xfs", mb_per_s=100),
    "fuse-1ms": Kind("xfs", delay_us=1000), "xfs-iops": Kind("xfs", iops=250),
    "xfs-iops5k": Kind("xfs", iops=5000),
    "xfs-250": Kind("xfs", mb_per_s=250), "xfs-iops2500": Kind("xfs", iops=2500), "xfs-iops50k": Kind("xfs", iops=50_000),
}
PREDICTION_BAR = 10.0  # percent, of the span

# Recorded on fast storage and on slow: bandwidth (that which holds the job up), latency, requests per second.
NEW = ("loader", "loader-torch2", "shm-4", "shm-16", "pipeline", "tf-data", "arrow", "duckdb", "asyncio", "checkpoints", "ddp")
EARLIER = ("resnet-sleep", "bert-sleep", "ring", "queue", "pinned", "sqlite", "tar", "rsync")  # have their cells of bandwidth below
PROGRAMS = ("sqlite", "tar", "rsync")


def both_ways(jobs, name, storages, groups=("slower", "faster")):
    """Fast to each of `storages`, and back."""
    job, fast = jobs[name], ("xfs", "cold")
    there = [Cell(groups[0], f"{name}, {at}", job, fast, job, (at, "cold")) for at in storages if "there" in job.ways]
    return there + [Cell(groups[1], f"{name}, {at} to xfs", job, (at, "cold"), job, fast) for at in storages if "back" in job.ways]


def requests_in_flight(jobs):
    """Jobs of io_uring and Linux AIO, each where it is held up and back: fio, programs whose causes are known, and all others."""
    found = []
    for job in jobs.values():
        if job.in_flight:
            group = "requests-fio" if job.name.startswith("fio-") else "requests-known" if "{bin}/requests" in job.words else "requests-programs"
            found.extend(both_ways(jobs, job.name, job.places, (group, group)))
    return found


def cells(jobs):
    fast, found = ("xfs", "cold"), []

    def same(group, regime, bar, names):
        for name in names:
            found.append(Cell(group, name, jobs[name], ("xfs", regime), jobs[name], ("xfs", regime), bar=bar))

    late = tuple(job.name for job in jobs.values() if job.late)
    same("warm", "warm", 3.0, ("resnet", "bert", *EARLIER, *NEW, *late))
    same("cold", "cold", 5.0, ("resnet", "bert", *(name for name in EARLIER if name not in PROGRAMS), *NEW, *late))  # theirs are below
    for name in ("resnet-sleep", "bert-sleep"):
        for rate in (25, 50, 100):
            found.append(Cell("slower", f"{name}, {rate} MB/s", jobs[name], fast, jobs[name], (f"xfs-{rate}", "cold")))
    for name in ("resnet-sleep", "bert-sleep"):
        found.append(Cell("faster", f"{name}, 25 MB/s to xfs", jobs[name], ("xfs-25", "cold"), jobs[name], fast))
    for name in EARLIER:
        found.extend(both_ways(jobs, name, ("fuse-1ms", "xfs-iops")))
    for name in (*NEW, *late):
        found.extend(both_ways(jobs, name, (f"xfs-{jobs[name].slow}", "fuse-1ms", "xfs-iops")))
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
                                  shared=STORAGES[target[0]].mb_per_s is not None))
    return found + requests_in_flight(jobs)
