#!/usr/bin/env bash
# usage: tests/fuzz/make_oplog_seeds.sh REPRISE     (the binary)
# Makes the seeds of fuzz_oplog anew from those of the importers: after a change of the format.
# SPDX-License-Identifier: MIT
set -euo pipefail
reprise=$1
cd "$(dirname "$0")/corpus"
for seed in dftracer/old.pfw dftracer/hashes.pfw fio/v3 strace/follow; do
    name=${seed//\//-}
    "$reprise" import "$seed" -o "oplog/${name%.*}.oplog" --force -q
done
