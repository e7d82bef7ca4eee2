#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: memory.py --bin REPRISE --dir FOLDER [--jobs A,B] [--ratios R,S]

Predictions with less memory beside replays (docs/predict.md): jobs of three epochs over 200 MB, recorded on ext4 on a loop
device in FOLDER (3 GiB), replayed with --ratio or --memory and --io-limit read=60M, and predicted by LRU and by two lists.
Shows what share of each epoch's bytes the device read. As root; ten minutes.
"""
import argparse
import json
import os
import random
import subprocess
import sys

MIB = 1 << 20
RATE = "60M"
MAPPED = ("one-mapping-each", "mapped-files")  # the recording's data are the pages that faulted: --memory instead


def make(folder):
    order, block = random.Random(7), os.urandom(4 * MIB)
    os.makedirs(folder + "/many")
    for i in range(2000):
        with open(f"{folder}/many/{i:05}", "wb") as file:
            file.write(block[: order.randrange(20_000, 180_000)])
    for name, size in (("big", 200), ("hot", 40), ("cold", 160)):
        with open(f"{folder}/{name}", "wb") as file:
            for _ in range(size // 4):
                file.write(block)
    os.sync()


def read_whole(path):
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, MIB):
        pass
    os.close(fd)


def touch_all(path):
    import mmap

    fd = os.open(path, os.O_RDONLY)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as data:
        os.close(fd)
        for at in range(0, len(data), 4096):
            data[at]


def files(folder, use, after=lambda n: None):
    order, names = random.Random(3), [f"{folder}/many/{i:05}" for i in range(2000)]
    count = 0
    for _ in range(3):
        order.shuffle(names)
        for name in names:
            use(name)
            count += 1
            after(count)


def checkpoint(folder):
    block = os.urandom(4 * MIB)

    def write(count):
        if count % 500 == 0:
            with open(folder + "/checkpoint.tmp", "wb") as file:
                for _ in range(6):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            os.rename(folder + "/checkpoint.tmp", folder + "/checkpoint")

    return write


def slices(folder):
    order, parts = random.Random(3), list(range(800))
    fd = os.open(folder + "/big", os.O_RDONLY)
    for _ in range(3):
        order.shuffle(parts)
        for part in parts:
            os.pread(fd, 262144, 262144 * part)


def hot_and_cold(folder):
    order = random.Random(3)
    fds = [os.open(folder + name, os.O_RDONLY) for name in ("/hot", "/cold")]
    for fd in fds:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for _ in range(10000):
        which = 0 if order.random() < 0.8 else 1
        os.pread(fds[which], 65536, 65536 * order.randrange((40, 160)[which] * MIB // 65536))


def holding(folder):
    held = bytearray(b"x") * (60 * MIB)
    files(folder, read_whole)
    return held


JOBS = {
    "files": lambda folder: files(folder, read_whole),
    "files-and-60MiB": holding,
    "mapped-files": lambda folder: files(folder, touch_all),
    "checkpoints": lambda folder: files(folder, read_whole, checkpoint(folder)),
    "slices": slices,
    "in-order": lambda folder: [read_whole(folder + "/big") for _ in range(3)],
    "one-mapping-each": lambda folder: [touch_all(folder + "/big") for _ in range(3)],
    "hot-and-cold": hot_and_cold,
}


def run(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True)


def shares(epochs, scale):
    return [100 * scale * (e["own_bytes"] or 0) / max(e["asked_bytes"], 1) for e in epochs]


def cell(options, job, ratio, model):
    limit = ["--memory", str(int(200 * MIB / ratio))] if job in MAPPED else ["--ratio", str(ratio)]
    root, out = f"{options.dir}/mnt/root-{job}", f"{options.dir}/run.json"
    done = run(options.bin, "replay", "-qf", f"{options.dir}/{job}.oplog", "--root", root, "--io-limit", f"read={RATE}",
               f"--json={out}", *limit)
    if done.returncode not in (0, 1):
        print(f"{job:17}{ratio:5} {done.stderr.splitlines()[0][:100]}")
        return
    with open(out) as file:
        replayed = json.load(file)
    # Of mapped files the log has the faults: what was asked for is the data.
    asked = sum(e["asked_bytes"] for e in replayed["by_epoch"])
    scale = asked / (3 * 190 * MIB) if job in MAPPED else 1
    line = f"{job:17}{ratio:5} | {replayed['elapsed_s']:6.2f} s {replayed['device_read_bytes'] >> 20:4} MiB"
    line += " ".join(f"{share:6.1f}" for share in shares(replayed["by_epoch"], scale))
    for lists in ("two-lists", "lru"):
        predicted = json.loads(run(options.bin, "predict", f"{options.dir}/{job}.oplog", "--storage", model, "--page-cache",
                                   lists, "--json", *limit).stdout)
        line += f" | {predicted['elapsed_s']:6.2f} s {predicted['storage_bytes'] >> 20:4} MiB"
        line += " ".join(f"{share:6.1f}" for share in shares(predicted["by_epoch"], scale))
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("REPRISE", "reprise"))
    parser.add_argument("--dir", required=True)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--ratios", default="0.5,0.8,1.2,2,4")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.dir = os.path.abspath(options.dir)
    data = options.dir + "/mnt/data"
    if options.job:
        JOBS[options.job](data)
        return
    os.makedirs(options.dir + "/mnt", exist_ok=True)
    image = options.dir + "/disk.img"
    for command in (["truncate", "-s", "4G", image], ["mkfs.ext4", "-qF", image],
                    ["mount", "-o", "loop", image, options.dir + "/mnt"]):
        subprocess.run(command, check=True)
    try:
        make(data)
        model = options.dir + "/model.json"
        subprocess.run([options.bin, "calibrate", "-q", "--storage", options.dir + "/mnt", "-o", model, "-f"], check=True)
        with open(model) as file:
            text = json.load(file)
        text["read_bytes_per_s"] = float(int(RATE[:-1]) * MIB)  # what --io-limit allows
        with open(model, "w") as file:
            json.dump(text, file)
        print("                        | replayed, epochs                     | two lists                            | LRU")
        for job in options.jobs.split(","):
            run("sh", "-c", "sync; echo 3 >/proc/sys/vm/drop_caches")
            log = f"{options.dir}/{job}.oplog"
            subprocess.run([options.bin, "capture", "-qf", "-o", log, "--", sys.executable, os.path.abspath(__file__), "--dir",
                            options.dir, "--job", job], check=True, stdout=subprocess.DEVNULL)
            root = f"{options.dir}/mnt/root-{job}"
            subprocess.run([options.bin, "prepare", "-q", log, "--root", root], check=True)
            for ratio in options.ratios.split(","):
                cell(options, job, float(ratio), model)
            run("rm", "-rf", root)
    finally:
        run("umount", options.dir + "/mnt")
        os.unlink(image)


if __name__ == "__main__":
    main()
