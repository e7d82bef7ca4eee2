#!/usr/bin/env bash
# usage: tests/bench/run.sh [--dir DIR] [--write-docs] [PART...]
# Builds the benchmarks, runs them all (about 40 minutes) or some parts, and prints one table of goals and measured values.
# PARTS: oplog import analyze replay prepare delay generate requests capture epoch many ranks; the other rows stay as they are in the docs.
# DIR ($TMPDIR, or /tmp) holds the files, at most 10 GB at a time, removed at the end. Both sides of a comparison run in
# turn, medians are compared. Run it on a quiet machine. The whole output is kept in build/bench/.
# --write-docs: also write docs/data/benchmarks.json and docs/benchmarks.md.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=${TMPDIR:-/tmp}
write_docs='' parts=()
while [[ $# != 0 ]]; do
    case $1 in
        --dir) dir=${2:?--dir requires a folder}; shift 2 ;;
        --write-docs) write_docs=$1; shift ;;
        oplog | import | analyze | replay | prepare | delay | generate | requests | capture | epoch | many | ranks) parts+=("$1"); shift ;;
        *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
scripts/ensure-packages.sh build test bench
scripts/ensure-packages.sh peers || echo "bench: missing tracers are named below the table" >&2

echo "Building ..." >&2
mkdir -p build/bench
{ cmake --preset release -DREPRISE_TESTS=ON -DREPRISE_BENCH=ON &&
    cmake --build --preset release -j "$(nproc)" --target bench_oplog bench_import bench_analyze bench_replay bench_prepare bench_many bench_ranks bench_delay reprise program_capture_load; } >build/bench/build.log 2>&1 ||
    { tail -n 40 build/bench/build.log >&2; exit 1; }

bin=build/release/tests
rm -f build/bench/*.txt build/bench/delay.json build/bench/parts
[[ ${#parts[@]} == 0 ]] || echo "${parts[*]}" >build/bench/parts
wanted() { [[ ${#parts[@]} == 0 || " ${parts[*]} " == *" $1 "* ]]; }
measure() { # NAME COMMAND...
    local name=$1
    wanted "$name" || return 0
    shift
    echo "Measuring: $name ..." >&2
    TMPDIR=$dir "$@" >"build/bench/$name.txt" 2>"build/bench/$name.err" ||
        { echo "bench: $name failed; see build/bench/$name.err" >&2; cat "build/bench/$name.err" >&2; exit 1; }
}
measure_page() { [[ ${#parts[@]} == 0 ]] || parts+=(page); measure page "$@"; }
measure oplog "$bin/bench_oplog" --benchmark_format=json --benchmark_repetitions=3
measure import "$bin/bench_import" --benchmark_format=json --benchmark_repetitions=3 --benchmark_filter='^import(_darshan)?/'
measure analyze "$bin/bench_analyze" --dir "$dir" --page build/bench/analyze.html
if wanted analyze && command -v chromium >/dev/null; then measure_page python3 tests/cli/analyze/look_at_page.py build/bench/analyze.html; fi
measure replay "$bin/bench_replay" --dir "$dir"
measure prepare "$bin/bench_prepare" --dir "$dir" --rounds 3 --large-mib 2048
measure delay "$bin/bench_delay" delay dlrm edges --dir "$dir" --json build/bench/delay.json


# These need root and BPF, and say so where they are not.
recording() { # NAME SCRIPT
    local rc=0
    wanted "$1" || return 0
    echo "Measuring: $1 ..." >&2
    python3 "$2" --bin build/release --dir "$dir" >"build/bench/$1.txt" 2>"build/bench/$1.err" || rc=$?
    [[ $rc == 0 || $rc == 77 ]] || { echo "bench: $1 failed" >&2; cat "build/bench/$1.err" >&2; exit 1; }
}
recording generate tests/bench/bench_generate.py
recording requests tests/bench/bench_requests.py
recording capture tests/bench/bench_capture.py
recording epoch tests/bench/bench_epoch.py

measure many tests/bench/many.py --dir "$dir" $write_docs
if wanted many; then cat build/bench/many.txt; fi
measure ranks tests/bench/ranks.py --dir "$dir" $write_docs
if wanted ranks; then cat build/bench/ranks.txt; fi
python3 tests/bench/table.py build/bench $write_docs
