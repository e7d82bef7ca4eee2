#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_capture.py --bin BUILD_FOLDER [--dir DIR] [--rounds N] [--calls N]

What recording costs a job per call, beside other tracers: a cached 4 KiB pread and a cycle of open, read, close, each run
in turn without and with every tracer; what a recording costs processes that are not recorded, beside an empty program on
the same two hooks, which is the least that anything there can cost; what is lost of 10 million
calls of one thread as fast as it can. Costs are differences of medians of the thread's processor time (wall time in
brackets), so that a busy machine shows in them only as slower memory. Needs root; a tracer that is not installed or does
not work here is named as absent. Exit code 77: this machine cannot record."""
import argparse
import ctypes
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", required=True, type=pathlib.Path)
arguments.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
arguments.add_argument("--rounds", type=int, default=7)
arguments.add_argument("--calls", type=int, default=10_000_000)
options = arguments.parse_args()
reprise, load = options.bin / "reprise", options.bin / "programs" / "capture_load"

check = json.loads(subprocess.run([reprise, "capture", "--check", "--json"], capture_output=True).stdout)
if not check["can_record"]:
    print(f"SKIPPED: this machine cannot record: {check['refusal']}")
    sys.exit(77)

BPFTRACE = """
tracepoint:syscalls:sys_exit_pread64, tracepoint:syscalls:sys_exit_openat, tracepoint:syscalls:sys_exit_read,
tracepoint:syscalls:sys_exit_close /comm == "capture_load"/ { printf("%d %lld %d\\n", tid, nsecs, args->ret); }
"""


def attach_empty():
    """Descriptors of an empty program (r0 = 0; exit) on the two hooks of every system call; None where that is refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    bpf, load, attach, raw_tracepoint = 321, 5, 17, 17  # x86-64; enum bpf_cmd, enum bpf_prog_type
    program = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")

    def call(command, attributes):
        room = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        return libc.syscall(bpf, command, room, 128)

    fds = []
    for hook in (b"sys_enter", b"sys_exit"):
        name = ctypes.create_string_buffer(hook)
        fd = call(load, struct.pack("<IIQQ", raw_tracepoint, 2, ctypes.addressof(program), ctypes.addressof(licence)))
        link = call(attach, struct.pack("<QI", ctypes.addressof(name), fd)) if fd >= 0 else -1
        fds += [one for one in (fd, link) if one >= 0]
    if len(fds) != 4:
        for fd in fds:
            os.close(fd)
        return None
    return fds


def numbers(command, **more):
    """The last line of the output with two numbers: processor and wall nanoseconds; None where the command fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    for line in reversed(done.stdout.splitlines()):
        words = line.split()
        if len(words) == 2 and done.returncode == 0:
            return float(words[0]), float(words[1])
    return None


def tracefs(command):
    """In a namespace of its own, where tracefs is mounted for tools that need it."""
    mount = "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec \"$@\""
    return ["unshare", "-m", "sh", "-c", mount, "sh", *command]


def main(folder):
    data = folder / "data"
    data.write_bytes(bytes(65536))
    (folder / "tool.bt").write_text(BPFTRACE)
    log = folder / "job.oplog"

    def plain(mode, n):
        return numbers([load, mode, str(n), data])

    def captured(mode, n, *more):
        return numbers([reprise, "capture", "-q", "-f", "--raw", *more, "-o", log, "--", load, mode, str(n), data])

    def beside(mode, n):
        """Not recorded itself while something else is."""
        other = subprocess.Popen([reprise, "capture", "-q", "-f", "-o", folder / "other.oplog", "--", "sleep", "60"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        result = numbers([load, mode, str(n), data])
        other.terminate()
        other.wait()
        return result

    def empty(mode, n):
        """An empty program on the hooks of a recording, which every process of the machine pays for."""
        fds = attach_empty()
        if fds is None:
            return None
        result = numbers([load, mode, str(n), data])
        for fd in fds:
            os.close(fd)
        return result

    has_empty = empty("pread", 1000) is not None
    tools = {
        "strace": lambda mode, n: numbers(["strace", "-f", "-o", "/dev/null", load, mode, str(n), data]),
        "perf trace": lambda mode, n: numbers(tracefs(["perf", "trace", "-o", "/dev/null", load, mode, str(n), data])),
        "bpftrace": lambda mode, n: numbers(tracefs(["bpftrace", "-o", "/dev/null", folder / "tool.bt", "-c",
                                                     f"{load} {mode} {n} {data}"])),
    }
    for mode, what, n, slow in (("pread", "cached 4 KiB pread", 400_000, 10_000),
                                ("cycle", "open + read + close", 100_000, 5_000)):
        ways = {"plain": (plain, n), "captured": (captured, n), "not recorded": (beside, n)}
        if has_empty:
            ways["an empty program"] = (empty, n)
        seen = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, (way, count) in ways.items():
                seen[name].append(way(mode, count))
        for name, runs in seen.items():
            if None in runs:
                print(f"{what}, {name}: a run failed", file=sys.stderr)
                sys.exit(1)
        middle = {name: tuple(statistics.median(column) for column in zip(*runs)) for name, runs in seen.items()}
        base = middle["plain"]
        print(f"{what}: untraced {base[0]:.0f} ns ({base[1]:.0f} ns by the clock)")
        for name in (name for name in ways if name != "plain"):
            print(f"  {name}: {middle[name][0] - base[0]:+.0f} ns ({middle[name][1] - base[1]:+.0f} by the clock)", flush=True)
        for name, way in tools.items():
            if not shutil.which(name.split()[0]):
                print(f"  {name}: absent (not installed)")
                continue
            runs = [way(mode, slow) for _ in range(2)]
            if None in runs:
                print(f"  {name}: absent (does not work here)")
                continue
            wall = min(run[1] for run in runs) - base[1]
            print(f"  {name}: {wall:+.0f} ns by the clock", flush=True)

    done = subprocess.run([reprise, "capture", "--json", "-f", "--raw", "-o", log, "--", load, "flat_out", str(options.calls),
                           data], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    summary = json.loads(done.stdout[done.stdout.index("{"):])
    print(f"one thread flat out, {summary['calls']} calls in {summary['elapsed_ns'] / 1e9:.1f} s: lost {summary['lost']}, "
          f"recursion misses {summary['recursion_misses']}, most lag {summary['most_lag_ns'] / 1e6:.1f} ms, "
          f"{summary['raw_bytes'] / summary['calls']:.1f} B of raw log per call")


if os.geteuid() != 0:
    print("SKIPPED: recording needs root")
    sys.exit(77)
with tempfile.TemporaryDirectory(dir=options.dir) as name:
    main(pathlib.Path(name))
