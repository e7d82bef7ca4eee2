#!/usr/bin/env bash
# `reprise compare`: side by side, exit code 1 beyond tolerance.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
sample_log=$REPRISE_BUILD_DIR/programs/sample_log

"$sample_log" sample "$tmp/a.oplog"
for name in run run-short-read run-missing run-slower; do
    "$sample_log" $name "$tmp/$name.oplog"
done
run 0 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run.oplog"
contains "$out" "checks      within tolerance: ops, bytes, results, order, arguments"
contains "$out" "note: 5 ops and 0 B of A excluded by the filter: leave=program,system"
lacks "$out" "lateness_us.p99: 12"
run 0 "$REPRISE" compare -v "$tmp/a.oplog" "$tmp/run.oplog"
contains "$out" "lateness_us.p99: 12"
run 0 "$REPRISE" compare "$tmp/a.oplog" "$tmp/a.oplog"
run 1 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run-short-read.oplog"
head -n 1 "$out" | grep -q '^OUT OF TOLERANCE: bytes .* (allowed 0 B), results 1 differ (allowed 0)\.$' || fail "the first line: $(head -n 1 "$out")"
contains "$out" "job         NOT THE SAME: 18 I/O ops as recorded + 1 differs + 5 left out (filter) = 24 recorded"
lacks "$out" '/data/a b\n\xff"x'
run 1 "$REPRISE" compare -v "$tmp/a.oplog" "$tmp/run-short-read.oplog"
contains "$out" '/data/a b\n\xff"x'
run 0 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run-short-read.oplog" --tolerance results=1 --tolerance bytes=20%
run 1 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run-missing.oplog"
run 0 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run-slower.oplog"
run 1 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run-slower.oplog" --tolerance elapsed=5%
head -n 1 "$out" | grep -q '^OUT OF TOLERANCE: elapsed +.* % (allowed 5 %)\.$' || fail "the first line: $(head -n 1 "$out")"
run 1 "$REPRISE" compare --json --examples 0 "$tmp/a.oplog" "$tmp/run-short-read.oplog"
contains "$out" '"passed": false'
contains "$out" '"differences": []'
run 2 "$REPRISE" compare "$tmp/a.oplog"
run 2 "$REPRISE" compare "$tmp/a.oplog" "$tmp/run.oplog" --tolerance speed=1
contains "$err" "elapsed"
run 3 "$REPRISE" compare "$tmp/a.oplog" "$REPRISE_SOURCE_DIR/README.md"
finish
