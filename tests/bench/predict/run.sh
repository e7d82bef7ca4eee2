#!/usr/bin/env bash
# usage: tests/bench/predict/run.sh [OPTION...] [JOB...]
# Builds reprise, runs real jobs on slow storage between their predictions (with --replay, replays, too), and prints the table:
# real, predicted, the error. Options: predict.py --help; jobs: --list. Needs root, BPF, loop devices and the blkio controller;
# nothing is left behind but an interpreter with pyarrow, lmdb and numpy in build/predict/venv, made where there is none.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../../.."

mkdir -p build/predict
{ cmake --preset release && cmake --build --preset release -j "$(nproc)" --target reprise; } >build/predict/build.log 2>&1 ||
    { tail -n 40 build/predict/build.log >&2; exit 1; }
venv=build/predict/venv
if [[ ! -x $venv/bin/python ]]; then
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet pyarrow lmdb numpy || { rm -rf "$venv"; exit 1; }
fi
exec "$venv/bin/python" tests/bench/predict/predict.py --python "$PWD/$venv/bin/python" "$@"
