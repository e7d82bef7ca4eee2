# SPDX-License-Identifier: MIT
"""Shared by the benchmarks that are scripts: running a command, and having the machine alone."""
import contextlib
import fcntl
import subprocess
import sys


def run(*words, allowed=(0,)):
    """What it printed; the benchmark ends where the command fails."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def alone(lock_file):
    """Holds a lock on the file (flock), if there is one: other work that takes it, too, waits."""
    if lock_file is None:
        yield
        return
    with open(lock_file, "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
