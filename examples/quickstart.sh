#!/usr/bin/env bash
# usage: examples/quickstart.sh [DIR]
# Builds reprise, creates the data set of a bundled recording (one epoch of a PyTorch ResNet-18 over 2 000 JPEGs, two
# loader workers) below DIR, replays the recording there, and compares. DIR must not exist, or be empty, or be from an
# earlier quickstart; by default it is build/quickstart, whose 125 MB of data are removed at the end.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
work=build/quickstart
root=${1:-$work/root}
log=examples/recorded/resnet.oplog
reprise=build/release/reprise

scripts/ensure-packages.sh build

echo "Building (a few minutes the first time) ..."
mkdir -p "$work"
if ! { cmake --preset release -DREPRISE_TESTS=OFF -DREPRISE_BENCH=OFF &&
    cmake --build --preset release -j "$(nproc)" --target reprise; } >"$work/build.log" 2>&1; then
    tail -n 40 "$work/build.log" >&2
    echo "quickstart: the build failed; the full output is in $work/build.log" >&2
    exit 1
fi

if [[ -z ${1:-} ]]; then
    # Only what this script created, in its own build directory.
    trap 'rm -rf "$PWD/build/quickstart/root"' EXIT
fi

# Prints the command, then runs it.
run() {
    echo
    echo "\$ reprise $*"
    "$reprise" "$@"
}

run prepare "$log" --root "$root" --map /data/job=.
# Exit code 1: this machine could not keep the recording's timing and says so; the result is complete.
run replay "$log" --root "$root" -o "$work/run.oplog" -f --json="$work/run.json" || [ $? = 1 ]
grep -q '"same_job": true' "$work/run.json"
run compare "$log" "$work/run.oplog"

echo
echo "The run's op log is $work/run.oplog, its result as JSON $work/run.json."
