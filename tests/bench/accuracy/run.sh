#!/usr/bin/env bash
# usage: tests/bench/accuracy/run.sh [--quick] [OPTION...] [CELL...]
# Builds reprise, runs real jobs and their replays in turn (a night; --quick: about an hour), and prints the tables:
# the real job's time, the replay's, the error. Interrupted, it goes on where it was. Options and cells: accuracy.py --help and
# --list. Needs root, BPF, loop devices, FUSE and the blkio controller; nothing is left behind but build/accuracy/, the results,
# and build/bench-venv/, packages of PyPI. Run it on a quiet machine.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../../.."

scripts/ensure-packages.sh build accuracy
mkdir -p build/accuracy
{ cmake --preset release && cmake --build --preset release -j "$(nproc)" --target reprise; } >build/accuracy/build.log 2>&1 ||
    { tail -n 40 build/accuracy/build.log >&2; exit 1; }
exec python3 tests/bench/accuracy/accuracy.py "$@"
