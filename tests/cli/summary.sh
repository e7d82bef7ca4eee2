#!/usr/bin/env bash
# What replay and compare end with: at most ten lines of at most 120 columns, with numbers that add up; the first two
# stop a wrong conclusion. The rest is there with -v, and all of it in JSON.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# A job that reads a megabyte from four files and writes one.
{
    echo "fio version 3 iolog"
    for i in 0 1 2 3; do
        printf '%d /data/in%d add\n%d /data/in%d open\n' $((i * 20000)) $i $((i * 20000)) $i
        for part in 0 1 2 3; do printf '%d /data/in%d read %d 65536\n' $((i * 20000 + part * 1000)) $i $((part * 65536)); done
        printf '%d /data/in%d close\n' $((i * 20000 + 5000)) $i
    done
    printf '90000 /data/out add\n90000 /data/out open\n91000 /data/out write 0 4096\n92000 /data/out close\n'
} >job.log
as_strace <job.log >job.strace
run 0 "$REPRISE" import job.strace -o job.oplog
run 0 "$REPRISE" prepare job.oplog --root root

# ten_lines WHAT: of $out.
ten_lines() {
    local count
    count=$(wc -l <"$out")
    [[ $count -ge 4 && $count -le 10 ]] || { fail "$count lines: $1"; cat "$out"; }
    [[ $(wc -L <"$out") -le 120 ]] || { fail "wider than 120 columns: $1"; cat "$out"; }
}
# adds_up: alike + differ + left out is what was recorded.
adds_up() {
    tr -d , <"$out" | awk '/^job / {
        seen = 1
        match($0, /: [0-9]+ I\/O op/); alike = substr($0, RSTART + 2) + 0
        match($0, /\+ [0-9]+ differ/); differ = substr($0, RSTART + 2) + 0
        match($0, /\+ [0-9]+ left out/); left = substr($0, RSTART + 2) + 0
        match($0, /= [0-9]+/); all = substr($0, RSTART + 2) + 0
        if (alike + differ + left != all || all == 0) { print alike, differ, left, all; exit 1 }
    } END { if (!seen) exit 1 }' || { fail "the numbers do not add up: $1"; cat "$out"; }
}
second() { sed -n '/^job /,$p' "$out" | sed -n 2p; }

replay() { # exit code 1 says that a crowded machine could not keep the time
    local rc=0
    "$REPRISE" replay "$@" >"$out" 2>"$err" || rc=$?
    [[ $rc -le 1 ]] || { fail "exit code $rc: replay $*"; cat "$err"; }
    ten_lines "replay $*"
    adds_up "replay $*"
}
replay job.oplog --root root -o run.oplog --json=run.json
grep -q '^job  *SAME: 27 I/O ops as recorded + 0 differ + 0 left out = 27 recorded$' "$out" || { fail "the first line"; cat "$out"; }
second | grep -qE '^time .* recorded .*; (COLD|WARM|MIXED|CACHE UNKNOWN)(: |$)' || { fail "no regime in the second line"; cat "$out"; }
for label in bytes reads spent '  recorded' trust; do
    grep -q "^$label " "$out" || { fail "no line '$label'"; cat "$out"; }
done
grep -qE '^trust       (GOOD|FAIR|POOR)  ' "$out" || fail "no word on trust"
contains "$out" "read 1.00 MiB, wrote 4.00 KiB (as recorded)"
# The details are elsewhere.
lacks "$out" "lateness p50"
lacks "$out" "pread"
cp "$out" short.txt
run 0 "$REPRISE" prepare job.oplog --root root --reset
"$REPRISE" replay job.oplog --root root -v >"$out" 2>"$err"
contains "$out" "lateness p50"
contains "$out" "replayer overhead"
contains "$out" "kinds of ops that differ from the recording"
"$REPRISE" replay job.oplog --root root -vv >"$out" 2>"$err"
contains "$out" "ops by kind"

# How far the real job may be off, and where that comes from; other paces do not predict it.
grep -q '^time .* (95 %: .* to .*), recorded' "$out" || { fail "no interval"; cat "$out"; }
contains "$out" "critical path: "
contains "$out" "95 % of the real job's runs here take "
run 0 "$REPRISE" replay job.oplog --root root --pace timed
lacks "$out" "95 %"
run 0 "$REPRISE" replay job.oplog --engine null --json=null.json
lacks "$out" "95 %"
contains null.json '"elapsed_interval_s": null'

# Left out, and different.
replay job.oplog --root root --only /data/in1,/data/in2 --pace afap
contains "$out" "SAME: 12 I/O ops as recorded + 0 differ + 15 left out (filter) = 27 recorded"
second | grep -q 'as fast as possible (recorded, with waits: .*)' || { fail "a pace that compares with nothing"; cat "$out"; }
replay job.oplog --root root --read-only --pace afap --tolerance-results 3
contains "$out" "left out (read_only) = 27 recorded"
rm root/data/in3
replay job.oplog --root root --pace afap
head -n 1 "$out" | grep -q '^NOT THE SAME JOB: ' || fail "the first line: $(head -n 1 "$out")"
contains "$out" "job         NOT THE SAME: 21 I/O ops as recorded + 6 differ + 0 left out = 27 recorded"
contains "$out" "trust       POOR  it did not do what the job did"
run 0 "$REPRISE" replay job.oplog --engine null --pace afap
ten_lines "the null engine"
second | grep -q 'NO STORAGE: the null engine' || { fail "the null engine's storage"; cat "$out"; }

# The same of the run's log.
run 0 "$REPRISE" compare job.oplog run.oplog
ten_lines compare
adds_up compare
equal "$(grep '^job ' "$out")" "$(grep '^job ' short.txt)"
equal "$(grep '^bytes ' "$out")" "$(grep '^bytes ' short.txt)"
equal "$(grep '^reads ' "$out")" "$(grep '^reads ' short.txt)"
equal "$(grep '^trust ' "$out")" "$(grep '^trust ' short.txt)"
equal "$(second | sed 's/.*; //')" "$(sed -n '/^time /s/.*; //p' short.txt)"
run 0 "$REPRISE" compare job.oplog job.oplog
ten_lines "a log and itself"
contains "$out" "SAME: 27 I/O ops as in A + 0 differ + 0 left out = 27 in A"

# In JSON.
command -v python3 >/dev/null || skip "no python3: the JSON was not tried"
run 0 "$REPRISE" compare job.oplog run.oplog --json=compare.json
python3 - <<'END' || fail "the JSON"
import json
run, compare = (json.load(open(name))["verdict"] for name in ("run.json", "compare.json"))
assert list(run) == list(compare)
ops = run["io_ops"]
assert ops["alike"] + ops["differ"] + ops["left_out"] == ops["recorded"] == 27, ops
assert ops == compare["io_ops"], (ops, compare["io_ops"])
for side in ("here", "recorded"):
    time = run[side]["task_time"]
    assert sum(value for name, value in time.items() if name != "total_ns") == time["total_ns"], time
    assert min(time.values()) >= 0, time
    assert run[side]["bytes_read"] == 1 << 20 and run[side]["reads"]["calls"] == 16, run[side]
    assert run[side]["reads"] == compare[side]["reads"], (run[side], compare[side])
assert run["cache"] in ("cold", "warm", "mixed", "unknown"), run
assert run["trust"] in ("good", "fair", "poor") and run["trust_reason"], run
assert run["trust_reason"] == compare["trust_reason"]
for one in (run, compare):
    low, high = one["elapsed_interval_s"]
    assert low < one["here"]["elapsed_s"] < high, one
assert run["elapsed_interval_s"] == compare["elapsed_interval_s"]
whole = json.load(open("run.json"))
assert whole["elapsed_interval_s"] == run["elapsed_interval_s"] and whole["interval_parts"]
path = sum(value for name, value in whole["critical_path"].items() if name != "doubtful_s")
assert abs(path - whole["elapsed_s"]) < 1e-6, whole["critical_path"]
for side in ("here", "recorded"):
    assert run[side]["elapsed_s"] == compare[side]["elapsed_s"], (side, run[side], compare[side])
END

# info and compare fit 120 columns, with all facts of the machine on one line; the rest of them with -v.
for log in resnet bert py_loader_4workers; do
    run 0 "$REPRISE" info "$REPRISE_SOURCE_DIR/examples/recorded/$log.oplog"
    [[ $(wc -L <"$out") -le 120 ]] || { fail "info $log.oplog is $(wc -L <"$out") columns wide"; awk 'length > 120' "$out"; }
    lacks "$out" "capture."
done
run 0 "$REPRISE" info "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog"
grep -qE '^  host .*, [0-9]+ CPUs?$' "$out" || fail "no CPUs in the line of the host"
run 0 "$REPRISE" info -v "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog"
contains "$out" "capture.profile"
finish
