#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_epoch.py --bin BUILD_FOLDER [--dir DIR] [--rounds N]

An epoch of examples/train/train_resnet.py, in turn by itself and recorded: how much longer it takes, by the time the job
itself prints; how large the op log is; and how long the recording takes when it is replayed by causes, in turn with the
job, on the same storage with a warm cache. Needs root and python3-torch, python3-pil of Debian. Exit code 77: not here."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
arguments.add_argument("--rounds", type=int, default=5)
options = arguments.parse_args()
reprise = str((options.bin / "reprise").resolve())
train = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "train"
python = "/usr/bin/python3"


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def run(command, allowed=(0,), **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode not in allowed:
        print(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}", file=sys.stderr)
        sys.exit(1)
    return done


def spread(values):
    return f"{statistics.median(values):.3f} s ({min(values):.3f} to {max(values):.3f})"


def main(folder):
    data, log, root = folder / "data", folder / "epoch.oplog", folder / "root"
    run([python, train / "make_data.py", data])
    job = [python, train / "train_resnet.py", data / "images", "--out", folder / "out"]

    def epoch(before=()):
        shutil.rmtree(folder / "out", ignore_errors=True)
        begin = time.monotonic()
        done = run([*before, *job], cwd=folder)
        return float(re.search(r"steps in ([\d.]+) s", done.stdout)[1]), time.monotonic() - begin

    epoch()  # everything into the cache
    alone, recorded, whole, replayed = [], [], [], []
    for number in range(options.rounds):
        mine = epoch()
        alone.append(mine[0])
        whole.append(mine[1])
        recorded.append(epoch([reprise, "capture", "-q", "-f", "-o", log, "--"])[0])
        if number == 0:
            shutil.copy(log, folder / "first.oplog")
            run([reprise, "prepare", folder / "first.oplog", "--root", root])
        else:
            run([reprise, "prepare", folder / "first.oplog", "--root", root, "--reset"])
        result = run([reprise, "replay", folder / "first.oplog", "--root", root, "--pace", "causal", "--cache", "as-is", "--json"],
                     allowed=(0, 1))  # 1: it says that the machine did not keep up
        replayed.append(json.loads(result.stdout)["elapsed_s"])
    ratio = statistics.median(recorded) / statistics.median(alone)
    print(f"ResNet epoch, {options.rounds} rounds in turn: alone {spread(alone)}, recorded {spread(recorded)}: "
          f"{100 * (ratio - 1):+.2f} % longer")
    ops = json.loads(run([reprise, "info", folder / "first.oplog", "--json"]).stdout)["summary"]["ops"]
    print(f"op log of the ResNet epoch: {os.path.getsize(folder / 'first.oplog') / ops:.2f} bytes per op, {ops} ops")
    error = statistics.median(replayed) / statistics.median(whole) - 1
    print(f"replay by causes, same storage, warm: the job {spread(whole)}, the replay {spread(replayed)}: {100 * error:+.2f} %")


if os.geteuid() != 0:
    skip("recording needs root")
if subprocess.run([python, "-c", "import torch, PIL"], stderr=subprocess.DEVNULL).returncode != 0:
    skip("python3-torch or python3-pil is not installed")
if not json.loads(subprocess.run([reprise, "capture", "--check", "--json"], capture_output=True).stdout)["can_record"]:
    skip("this machine cannot record")
with tempfile.TemporaryDirectory(dir=options.dir) as name:
    main(pathlib.Path(name))
