#!/usr/bin/env bash
# `reprise graft`: a profile onto a recording of the same second, and profiles that are of something else.
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

cat >job.strace <<'END'
100 1700000000.000000 execve("/bin/train", ["train"], 0x0 /* 0 vars */) = 0 <0.000100>
100 1700000000.100000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000010>
100 1700000000.100100 read(3, "x", 4096) = 4096 <0.000100>
100 1700000000.500000 read(3, "x", 4096) = 4096 <0.000100>
100 1700000000.900000 close(3) = 0 <0.000010>
100 1700000000.950000 exit_group(0) = ?
100 1700000000.950100 +++ exited with 0 +++
END
cat >profile.json <<'END'
{
  "schemaVersion": 1,
  "deviceProperties": [],
  "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 100, "tid": 100, "ts": 1700000000100050, "dur": 400000},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 1700000000110000, "dur": 5, "args": {"correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1700000000110010, "dur": 300000.5, "args": {"device": 0, "stream": 7, "correlation": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 100, "tid": 100, "ts": 1700000000111000, "dur": 299100, "args": {"correlation": 2}}
]}
END
run 0 "$REPRISE" import job.strace -o job.oplog
run 0 "$REPRISE" graft job.oplog profile.json -o whole.oplog --json
grep -q '"by": "clock"' "$out" || fail "not by the clock"
grep -q '"submissions": 1,' "$out" || fail "not one submission"
run 0 "$REPRISE" graft job.oplog profile.json -o whole.oplog --force
contains "$out" "1 accelerator submission and 1 wait from "
run 0 "$REPRISE" info whole.oplog
contains "$out" "Accelerators"
contains "$out" "accelerator.source"
run 0 "$REPRISE" dump whole.oplog
grep -q 'gpu_submit.*size=300000500' "$out" || fail "the busy time"

# An imported profile is as good.
run 0 "$REPRISE" import profile.json -o profile.oplog
run 0 "$REPRISE" graft job.oplog profile.oplog --by clock -o again.oplog
"$REPRISE" dump whole.oplog >one
"$REPRISE" dump again.oplog >two
cmp -s one two || fail "the same profile gives another log"

# What cannot be.
run 2 "$REPRISE" graft job.oplog profile.json -o whole.oplog
contains "$err" "exists"
run 2 "$REPRISE" graft job.oplog profile.json -o job.oplog --force
contains "$err" "would overwrite job.oplog"
run 2 "$REPRISE" graft job.oplog -o x.oplog
run 2 "$REPRISE" graft job.oplog profile.json --by magic -o x.oplog
run 3 "$REPRISE" graft whole.oplog profile.json -o x.oplog
contains "$err" "already"
run 3 "$REPRISE" graft job.oplog job.strace -o x.oplog
contains "$err" "not a profile"
run 3 "$REPRISE" graft job.oplog profile.json --by step -o x.oplog
contains "$err" "1 steps (numbers 4 to 4)"
sed 's/1700000000/1700009999/' profile.json >later.json
run 3 "$REPRISE" graft job.oplog later.json -o x.oplog
contains "$err" "by the clock the profile is from 9999"
contains "$err" "reprise: later.json: this profile is not of the recorded job"
[[ ! -e x.oplog && ! -e x.oplog.partial ]] || fail "a refusal left something behind"
finish
