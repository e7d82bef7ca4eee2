#!/usr/bin/env bash
# `reprise dump`: the golden text, ranges, tasks, filters, JSON, damage.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
sample_log=$REPRISE_BUILD_DIR/programs/sample_log

"$sample_log" sample "$tmp/a.oplog"
"$sample_log" all-ops "$tmp/b.oplog"
run 0 "$REPRISE" dump --tables "$tmp/a.oplog"
cmp "$out" "$REPRISE_SOURCE_DIR/tests/golden/sample.dump" || fail "the dump differs from the golden one"
run 0 "$REPRISE" dump --tables "$tmp/b.oplog"
cmp "$out" "$REPRISE_SOURCE_DIR/tests/golden/all_ops.dump" || fail "the dump differs from the golden one"

run 0 "$REPRISE" dump "$tmp/a.oplog"
equal "$(wc -l <"$out")" 44
run 0 "$REPRISE" dump --task 2 "$tmp/a.oplog"
equal "$(wc -l <"$out")" 15
lacks "$out" " task=1 "
run 0 "$REPRISE" dump --from 8ms --to 10ms "$tmp/a.oplog"
equal "$(wc -l <"$out")" 2
contains "$out" "begin=9000000"
run 0 "$REPRISE" dump --only dataset --task 2 "$tmp/a.oplog"
lacks "$out" "libc"
lacks "$out" " munmap "
contains "$out" " pread "
run 0 "$REPRISE" dump --no-ops --tables "$tmp/a.oplog"
lacks "$out" "begin="
run 0 "$REPRISE" dump --json "$tmp/a.oplog"
equal "$(wc -l <"$out")" 44
if command -v python3 >/dev/null; then
    python3 -c 'import json,sys
for line in open(sys.argv[1], encoding="utf-8"): json.loads(line)' "$out" || fail "not JSON lines"
fi
run 0 "$REPRISE" dump -o "$tmp/d.txt.gz" "$tmp/a.oplog"
equal "$(gzip -dc "$tmp/d.txt.gz" | wc -l)" 44

run 2 "$REPRISE" dump --task 9 "$tmp/a.oplog"
contains "$err" "tasks 1 to 3"
run 2 "$REPRISE" dump --from soon "$tmp/a.oplog"
run 2 "$REPRISE" dump --from 5h "$tmp/a.oplog"
contains "$err" "--from 5h is beyond the log's end"
contains "$err" "the log covers "
run 2 "$REPRISE" dump --from 2ms --to 1ms "$tmp/a.oplog"
contains "$err" "--from 2ms is not before --to 1ms"
contains "$err" "the log covers "
run 2 "$REPRISE" dump --from 2ms --to 2ms "$tmp/a.oplog"
run 2 "$REPRISE" dump --to 1us "$tmp/b.oplog"
[[ ! -e $tmp/none.txt ]] && run 2 "$REPRISE" dump --from 5h -o "$tmp/none.txt" "$tmp/a.oplog"
[[ ! -e $tmp/none.txt ]] || fail "a refused range leaves an output"
run 2 "$REPRISE" dump --json --tables "$tmp/a.oplog"
run 3 "$REPRISE" dump "$REPRISE_SOURCE_DIR/README.md"
contains "$err" "README.md"
head -c 900 "$tmp/a.oplog" >"$tmp/cut.oplog"
run 3 "$REPRISE" dump "$tmp/cut.oplog"
run 4 "$REPRISE" dump -o "$tmp/no/such/file" "$tmp/a.oplog"
[[ -c /dev/full ]] && run 4 bash -c '"$0" dump "$1" >/dev/full' "$REPRISE" "$tmp/a.oplog"
finish
