#!/usr/bin/env bash
# usage: tests/bench/accuracy/run.sh [--quick] [OPTION...] [CELL...]
# Builds reprise, runs real jobs and their replays in turn (about two hours; --quick: about ten minutes), and prints the tables:
# the real job's time, the replay's, the error. Options and cells: accuracy.py --help and --list. Needs root, BPF, loop
# devices and the blkio controller; nothing is left behind. Run it on a quiet machine. Results: build/accuracy/.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../../.."

scripts/ensure-packages.sh build accuracy
mkdir -p build/accuracy
{ cmake --preset release && cmake --build --preset release -j "$(nproc)" --target reprise; } >build/accuracy/build.log 2>&1 ||
    { tail -n 40 build/accuracy/build.log >&2; exit 1; }
exec python3 tests/bench/accuracy/accuracy.py "$@"
