# SPDX-License-Identifier: MIT
"""Owns the jobs that keep several requests in flight, by io_uring or Linux AIO: fio at depths and sizes, programs whose causes are
known (jobs/requests.c), and programs not written for this.

Their sizes are chosen for the storage that is slow: 20 000 requests of 4 KiB take 3.3 s at 25 MB/s and 4 s at 5000 requests/s, 800 of
128 KiB take 4.2 s at 25 MB/s and 3.2 s at 250 requests/s. On fast storage those take 0.03 to 0.2 s, too short to be measured: what is
recorded on slow storage and replayed on fast has ten times as many requests, and slow storage that is ten times as fast ("-long")."""

import jobs

DEPTHS = (1, 4, 16, 64)
ENGINES = {"uring": "io_uring", "aio": "libaio"}
SIZES = {"4k": 20_000, "128k": 800}  # requests
PATTERNS = ("fixed", "pipeline", "stages", "batch", "looks", "chains")
THINK_US = 2_000_000  # of a run, shared among its requests
SLOW = {"4k": ("xfs-25", "xfs-iops5k"), "128k": ("xfs-25", "xfs-iops")}  # where a job of that size is held up
LONG = 10  # times as many requests
LESS_SLOW = {"4k": ("xfs-250", "xfs-iops50k"), "128k": ("xfs-250", "xfs-iops2500")}
SEVERAL = ("xfs-25", "xfs-iops", "fuse-1ms")


def fio(name, engine, size, depth, quick, *more, think=0, long=False):
    """`think`: microseconds per request. fio lets all requests end before it thinks, so it does so once for each `depth` of them. It
    sleeps: where its `thinktime_spin` takes longer than asked for, fio 3.33 sleeps for ever. jobs/requests.c computes."""
    count = SIZES[size] * (LONG if long else 1) // (2 if quick else 1)
    words = ["fio", "--name=j", "--thread", "--filename={data}", f"--ioengine={ENGINES[engine]}", "--rw=randread", f"--bs={size}", f"--iodepth={depth}",
             "--direct=1", "--invalidate=0", "--norandommap", f"--number_ios={count}", "--io_size=1t", "--output-format=json", "--eta=never"]
    if think:
        think //= LONG if long else 1
        words += [f"--thinktime={think * depth}", f"--thinktime_blocks={depth}"]
    late = ["fuse-1ms"] if size == "4k" and depth >= 16 else []
    return jobs.Job(name + ("-long" if long else ""), "random.bin", (*words, *more), span="requests", tools=("fio",), in_flight=True,
                    places=(*(LESS_SLOW if long else SLOW)[size], *late), ways=("back",) if long else ("there",))


def fio_pair(*what, **think):
    return [fio(*what, **think), fio(*what, **think, long=True)]


def fio_jobs(quick):
    found = []
    for engine in ENGINES:
        for size, count in SIZES.items():
            for depth in DEPTHS:
                name = f"fio-{engine}-{size}-d{depth}"
                found += [*fio_pair(name, engine, size, depth, quick), *fio_pair(f"{name}-think", engine, size, depth, quick, think=THINK_US // count)]
    return [*found, *fio_pair("fio-uring-4k-d16-fixed", "uring", "4k", 16, quick, "--fixedbufs", "--registerfiles"),
            *fio_pair("fio-uring-4k-d16-sqpoll", "uring", "4k", 16, quick, "--sqthread_poll"),
            *fio_pair("fio-uring-4k-d16-batch", "uring", "4k", 16, quick, "--iodepth_batch=8", "--iodepth_batch_complete_min=4"),
            # The file is not the data that others read: writes change it.
            *fio_pair("fio-uring-128k-d16-write", "uring", "128k", 16, quick, "--rw=randwrite", "--filename={out}/file", "--size=128m")]


def known_jobs(quick):
    """64 KiB at depth 16: 1500 take 3.9 s at 25 MB/s, 6 s at 250 requests/s, and half of 0.75 s where only the computing takes time."""
    count = 600 if quick else 1500
    found = [jobs.Job("files-uring", "samples", ("{bin}/ring_files", "{data}", "16", "500"), in_flight=True, event_loop=True, places=SEVERAL)]
    for engine in ENGINES:
        for pattern in PATTERNS:
            if pattern == "looks" and engine == "aio":
                continue  # its results say when they were taken, not when they came
            words = ("{bin}/requests", engine, pattern, "{data}", "16", count, "65536", "8000" if pattern == "batch" else "500")
            found.append(jobs.Job(f"{pattern}-{engine}", "random.bin", (*words, *(["{out}/file"] if pattern == "stages" else [])), in_flight=True,
                                  event_loop=pattern == "chains", places=SEVERAL))
    return found


QEMU = ("qemu-img", "bench", "-f", "raw", "-t", "none", "-s", "16384", "-S", "81920")  # of random.bin, whose end it never crosses so
CONVERT = ("truncate -s 128M $2/disk && exec qemu-img convert -n -m 16 -W --image-opts "
           "driver=raw,file.driver=file,file.filename=$1,file.aio=$0,file.cache.direct=on "
           "--target-image-opts driver=raw,file.driver=file,file.filename=$2/disk,file.aio=$0,file.cache.direct=on")


def programs(quick):
    """Not written for this. (Debian's RocksDB is built without io_uring, so its db_bench has no asynchronous reads.)"""
    half, found = 2 if quick else 1, []
    for name, aio in (("uring", "io_uring"), ("native", "native")):
        found += [jobs.Job(f"qemu-bench-{name}", "random.bin", (*QEMU, "-d", "32", "-c", 5000 // half, "-i", aio, "{data}"), span="requests",
                           tools=("qemu-img",), in_flight=True, places=("xfs-25", "xfs-iops5k")),
                  jobs.Job(f"qemu-convert-{name}", "random.bin", ("sh", "-c", CONVERT, aio, "{data}", "{out}"), span="command", tools=("qemu-img",),
                           in_flight=True, places=("xfs-50", "fuse-1ms"))]
    for engine in ENGINES:
        found += [jobs.Job(f"torch-checkpoints-{engine}", "samples", (jobs.PYTHON, jobs.HERE / "jobs/ring_checkpoints.py", engine, "{bin}/ring_writer.so", "8",
                                                                     "{data}", "{out}", "200", "32"), in_flight=True, places=("xfs-50", "fuse-1ms")),
                  jobs.Job(f"caio-{engine}", "random.bin", ("{python}", jobs.HERE / "jobs/caio_loader.py", engine, "{data}", "16", 1500 // half, "65536", "10"),
                           needs=("caio",), in_flight=True, event_loop=True, places=SEVERAL)]
    return [*found,
            jobs.Job("deepspeed-checkpoints", "samples", ("{python}", jobs.HERE / "jobs/ring_checkpoints.py", "deepspeed", "-", "8", "{data}", "{out}", "200", "32"),
                     needs=("deepspeed",), in_flight=True, places=("xfs-50", "fuse-1ms")),
            jobs.Job("liburing-loader", "random.bin", ("{python}", jobs.HERE / "jobs/uring_loader.py", "{data}", "16", 100 // half, "65536", "50"),
                     needs=("liburing",), in_flight=True, places=SEVERAL),
            *(jobs.Job(name, "mariadb.db", (jobs.PYTHON, jobs.HERE / "jobs/mariadb.py", "run", "{data}", "{out}", "4", 250 // half, pool), in_flight=True,
                       tools=("mariadbd", "mariadb"), places=("xfs-25", "xfs-iops")) for name, pool in (("mariadb", 8), ("mariadb-24m", 24)))]
