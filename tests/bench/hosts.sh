#!/usr/bin/env bash
# usage: tests/bench/hosts.sh [STEPS]
# What a barrier between the steps of two ranks costs in a replay, beside a bare loop of MPI_Barrier: both take the same
# step (10 ms of an accelerator), each rank on a processor of its own. Prints medians and their ratio. Needs mpicc, mpirun.
# SPDX-License-Identifier: MIT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${REPRISE_BUILD_DIR:-$here/build/release}
steps=${1:-500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
cat >bare.c <<'END'
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int order(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return x < y ? -1 : x > y; }
int main(int argc, char **argv) {
    int steps = atoi(argv[1]), rank;
    double *step = calloc(steps, sizeof *step), *barrier = calloc(steps, sizeof *barrier);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    prctl(PR_SET_TIMERSLACK, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; ++i) {
        long long begin = now();
        struct timespec until = {(begin + 10000000) / 1000000000LL, (begin + 10000000) % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        long long here = now();
        MPI_Barrier(MPI_COMM_WORLD);
        barrier[i] = now() - here;
        step[i] = now() - begin;
    }
    qsort(step, steps, sizeof *step, order);
    qsort(barrier, steps, sizeof *barrier, order);
    if (rank == 0) printf("%.0f %.0f\n", step[steps / 2], barrier[steps / 2]);
    MPI_Finalize();
}
END
mpicc -O2 -o bare bare.c
read -r bare_step bare_barrier < <(mpirun --bind-to core -n 2 ./bare "$steps")

"$build/programs/sample_log" live job.oplog # 500 steps of 10 ms
# median time that the trainer of a rank waits at the barriers, ns
waits_of() {
    "$build/reprise" export "$1" --to csv -o steps.csv -f >/dev/null 2>&1
    python3 - <<'END'
import csv, statistics
rows = list(csv.DictReader(open("steps.csv")))
trainer = next(row["task"] for row in rows if row["kind"] == "gpu_submit")
mine = [row for row in rows if row["task"] == trainer]
# The barrier is the wait after the accelerator's.
times = [float(b["duration_ns"]) for a, b in zip(mine, mine[1:]) if a["kind"] == "gpu_wait" and b["kind"] == "wait"]
assert len(times) > 100, len(times)
print(statistics.median(times))
END
}
mpirun --bind-to core -n 2 "$build/reprise" replay job.oplog --engine null -o two.oplog -f >two.txt || [[ $? == 1 ]]
first=$(waits_of two.rank0.oplog) second=$(waits_of two.rank1.oplog)
python3 - "$bare_step" "$bare_barrier" "$first" "$second" <<'END'
import sys
bare, barrier, first, second = map(float, sys.argv[1:])
print(f"bare loop: a step of 10 ms and MPI_Barrier: {barrier / 1e3:.1f} us at the barrier")
print(f"replay:    {first / 1e3:.1f} us (rank 0) and {second / 1e3:.1f} us (rank 1) at the barrier")
print(f"ratio of the steps: {(1e7 + max(first, second)) / (1e7 + barrier):.4f}")
END
grep "^started within" two.txt
