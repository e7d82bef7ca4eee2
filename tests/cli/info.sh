#!/usr/bin/env bash
# `reprise info`: the overview, its JSON, and what it says of damage.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
sample_log=$REPRISE_BUILD_DIR/programs/sample_log

"$sample_log" sample "$tmp/a.oplog"
run 0 "$REPRISE" info "$tmp/a.oplog"
empty "$err"
contains "$out" 'train\n--epochs 2'
contains "$out" "2 with ops of 3, in 2 processes"
contains "$out" "88.0 KiB, written 8.00 KiB"
contains "$out" "dataset"
contains "$out" "epoch 1"
contains "$out" "66.7 %"
contains "$out" "(2 lost)"
contains "$out" "lines that could not be read"
contains "$out" "bytes per op"
lacks "$out" "idle thread"
run 0 "$REPRISE" info --tasks --files "$tmp/a.oplog"
contains "$out" "idle thread"
contains "$out" '/data/a b\n\xff"x'
run 0 "$REPRISE" info --only checkpoint --files "$tmp/a.oplog"
contains "$out" "model.pt"
lacks "$out" "libc"
contains "$out" "ops by the filter"
run 0 "$REPRISE" info --json --tasks --files "$tmp/a.oplog"
contains "$out" '"losses": 2'
if command -v python3 >/dev/null; then
    python3 - "$out" <<'PYTHON' || fail "the JSON is not what it should be"
import json, sys
info = json.load(open(sys.argv[1], encoding="utf-8"))
assert info["summary"]["ops"] == 44
assert abs(info["summary"]["devices"][0]["epochs"][0]["au"] - 0.6) < 1e-9
assert info["files"][0]["path"] == '/data/a b\\n\\xff"x'
assert [t["ops"] for t in info["tasks"]] == [29, 15, 0]
assert info["header"]["command"] == "train\\n--epochs 2"
PYTHON
fi

run 2 "$REPRISE" info
run 3 "$REPRISE" info "$tmp/none.oplog"
contains "$err" "none.oplog"
: >"$tmp/empty.oplog"
run 3 "$REPRISE" info "$tmp/empty.oplog"
# A log that was cut is refused, or read as far as it goes where that is asked for and said.
size=$(stat -c %s "$tmp/a.oplog")
head -c $((size - 20)) "$tmp/a.oplog" >"$tmp/cut.oplog"
run 3 "$REPRISE" info "$tmp/cut.oplog"
contains "$err" "--recover"
run 0 "$REPRISE" info --recover "$tmp/cut.oplog"
contains "$err" "recovered"
contains "$out" "Recovered"
finish
