#!/usr/bin/env bash
# sweep: a grid of runs, in order of a seed, kept one by one; killed at any point, the same command goes on, and nothing
# stays behind. REPRISE_KILLS: how often [4].
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

{
    echo "fio version 3 iolog"
    at=0
    for file in $(seq 0 7) $(seq 0 7); do
        printf '%s /data/%s add\n%s /data/%s open\n' "$at" "$file" "$at" "$file"
        for ((offset = 0; offset < 1048576; offset += 262144)); do echo "$at /data/$file read $offset 262144"; done
        echo "$at /data/$file close"
        at=$((at + 10))
    done
    printf '%s /data/out add\n%s /data/out open\n%s /data/out write 0 4096\n%s /data/out close\n' $at $at $at $at
} >job.log
run 0 "$REPRISE" import -q job.log -o job.oplog

wrong() {
    local text=$1
    shift
    run 2 "$REPRISE" sweep job.oplog "$@"
    contains "$err" "$text"
}
wrong "nothing is varied" --root root
wrong "sweep needs --root" --gpu-speed 1
wrong "--ratio is '1,,2', expected values" --root root --ratio 1,,2
wrong "--ratio has one value twice: 1 and 1" --root root --ratio 1,1
wrong "--ratio has one value twice: 1 and 1.0" --root root --ratio 2,1,1.0
wrong "--memory has one value twice: 1G and 1024M" --root root --memory 1G,1024M
wrong "--gpu-speed has one value twice: 2 and 2.0" --root root --gpu-speed 2,2.0
wrong "--io-limit has one value twice: read=1M,riops=5 and riops=5,read=1024K" --root root --io-limit read=1M,riops=5 --io-limit riops=5,read=1024K
wrong "--memory and --ratio both say how much" --root root --ratio 1 --memory 1G
wrong "--runs is '0', expected a whole number from 1" --root root --ratio 1 --runs 0
wrong "--runs is '-1', expected a whole number from 1" --root root --ratio 1 --runs -1
wrong "--seed is '-1', expected a whole number from 0" --root root --ratio 1 --seed -1
wrong "--ratio is 'x'" --root root --ratio x
wrong "--gpu-speed is 'x', expected a number" --root root --gpu-speed 1,x
wrong "--gpu-speed: job.oplog has no accelerator work" --root root --gpu-speed 1,2
wrong "--io-limit: 'raed=1M' is none of" --root root --io-limit read=1M --io-limit raed=1M
wrong "--memory is 'x'" --root root --memory 60M,x
wrong "--no-ballast without a memory limit" --root root --io-limit read=1M --no-ballast
wrong "--tolerance-results: 'much' is not a tolerance" --root root --io-limit read=1M --tolerance-results much
# Nothing was made until the words were right.
[[ ! -e root && ! -e job.oplog.sweep ]] || fail "a mistake left a root or a folder"
[[ $failures == 0 ]] || finish
rm -rf job.oplog.sweep root

# A folder with files of others is left as it is.
mkdir theirs
for file in cells.csv sweep.svg run.json; do echo mine >theirs/$file; done
wrong "theirs has files, and not those of a sweep" --root root --gpu-speed 1 -o theirs
equal "$(cat theirs/* | sort -u)" mine
equal "$(ls theirs | wc -l)" 3
[[ ! -e root ]] || fail "the root was prepared"

# Every cell begins with the same in memory: cold, where the log does not say what was there.
cold() { python3 -c "import os;[os.posix_fadvise(os.open(os.path.join(d,f),0),0,0,4) for d,_,fs in os.walk('$1') for f in fs]"; }
printf '[t]\nformat=npz\nsamples=100\nsample_size=100k\nbatch=8\ncompute=1ms\n' >t.ini
run 0 "$REPRISE" generate -q t.ini -o t.oplog
run 0 "$REPRISE" prepare -q t.oplog --root t
cold t
speeds() { "$REPRISE" sweep t.oplog --root t --gpu-speed 1,2,4 --runs 1 --json=t.json "$@" >"$out" 2>"$err"; }
if [[ $(stat -f -c %T t) != tmpfs ]]; then
    speeds -o cold || [[ $? == 1 ]] || fail "gpu-speed: $(cat "$err")"
    contains "$out" "cache: cold at the start of each run (the log does not say what was in memory; --cache chooses)"
    lacks "$out" "DO NOT COMPARE"
    equal "$(python3 -c 'import json; print({cell["device_share_share"]["median"] > 0.9 for cell in json.load(open("t.json"))["cells"]})')" "{True}"
fi
rm -f t.json
speeds -o warm --cache warm || [[ $? == 1 ]] || fail "--cache warm: $(cat "$err")"
contains "$out" "cache: warm at the start of each run (as asked)"
run 2 "$REPRISE" sweep t.oplog --root t --gpu-speed 1,2 --cache recorded
contains "$err" "the log does not say what was in memory"
run 2 "$REPRISE" sweep t.oplog --root t --gpu-speed 1,2 --cache as-is
contains "$err" "expected cold, warm or recorded"

# An axis that needs no control group. The root is prepared by the sweep, and restored for each run.
sweep() { "$REPRISE" sweep job.oplog --root root --memory 60M,80M --runs 2 >"$out" 2>"$err"; }
"$REPRISE" prepare -q job.oplog --root probe
if ! "$REPRISE" replay -q job.oplog --root probe --memory 60M >"$out" 2>"$err" && grep -q "control group\|controller\|in memory (tmpfs)" "$err"; then
    skip "no memory limit can be set here: $(head -n 1 "$err")"
fi
sweep || [[ $? == 1 ]] || fail "the sweep: $(cat "$err")"
contains "$out" "cache: cold at the start of each run (under a memory limit)"
contains "$out" "memory  elapsed"
contains "$out" "job.oplog.sweep/cells.csv, sweep.svg, sweep.png"
equal "$(wc -l <job.oplog.sweep/runs.jsonl)" 4
equal "$(wc -l <job.oplog.sweep/cells.csv)" 3
head -n 1 job.oplog.sweep/cells.csv | grep -q "^memory,elapsed_s,elapsed_s_low,elapsed_s_high,au_share," || fail "the head of the CSV"
equal "$(head -c 4 job.oplog.sweep/sweep.png | tail -c 3)" PNG
contains job.oplog.sweep/sweep.svg "</svg>"
# Once more: nothing to do, the same table.
cp "$out" first
before=$(cat job.oplog.sweep/runs.jsonl)
sweep || [[ $? == 1 ]] || fail "again: $(cat "$err")"
cmp first "$out" || fail "another table from the same runs"
equal "$(cat job.oplog.sweep/runs.jsonl)" "$before"
# Other circumstances are another sweep.
run 2 "$REPRISE" sweep job.oplog --root root --memory 60M,90M --runs 2
contains "$err" "has runs of another sweep"
"$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 -f --json=sweep.json >"$out" 2>"$err" || [[ $? == 1 ]] || fail "-f: $(cat "$err")"
equal "$(wc -l <job.oplog.sweep/runs.jsonl)" 1
python3 - <<'EOF' || fail "sweep.json"
import json
sweep = json.load(open("sweep.json"))
assert [cell["memory"] for cell in sweep["cells"]] == ["60M"], sweep
assert sweep["cells"][0]["elapsed_s"]["runs"] == 1 and sweep["cells"][0]["elapsed_s"]["median"] > 0, sweep
EOF
# Beside what was measured elsewhere, without running anything again.
printf 'memory,elapsed_s,device_read_bytes\n60M,0.5,1000\n80M,0.4,\n' >real.csv
run 2 "$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 --beside real.csv
contains "$err" "expected NAME=FILE"
run 3 "$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 --beside real=job.log
contains "$err" "has no column 'memory'"
"$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 --beside real=real.csv --json=sweep.json -f >"$out" 2>"$err" || [[ $? == 1 ]] || fail "--beside: $(cat "$err")"
contains "$out" "beside real"
contains "$out" "500 ms"
equal "$(python3 -c 'import json; print(json.load(open("sweep.json"))["beside"]["real"]["60M"]["elapsed_s"]["median"])')" 0.5
grep -aq "real" job.oplog.sweep/sweep.svg || grep -aq "<use" job.oplog.sweep/sweep.svg || fail "no second curve"
# What replay tolerates is given to it.
run 2 "$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 -o tolerance --tolerance-results much
contains "$err" "--tolerance-results: 'much' is not a tolerance"
run 2 "$REPRISE" sweep job.oplog --root root --memory 60M --runs 1 -o tolerance --tolerance-results 200%
contains "$err" "expected a number of ops, or a share from 0% to 100%"
# A cell that cannot be run is said, and is no success.
run 1 "$REPRISE" sweep job.oplog --root root --memory 1M --runs 1 -o small
contains "$out" "--memory 1M: not run: a memory limit of 1.00 MiB is less than the replay itself needs"

# A root whose reset was interrupted is reset.
sed -i 's/"state": "[a-z]*"/"state": "resetting"/' root/.reprise-prepared
run 4 "$REPRISE" replay job.oplog --root root
contains "$err" "prepare job.oplog --root root --reset"
"$REPRISE" sweep job.oplog --root root --memory 80M --runs 1 -o reset >"$out" 2>"$err" || [[ $? == 1 ]] || fail "a root whose reset was interrupted: $(cat "$err")"

# Killed and gone on, again and again.
own_groups() { find /sys/fs/cgroup -maxdepth 6 -type d -name "reprise-*-$1-*" 2>/dev/null; }
go_on() { "$REPRISE" sweep job.oplog --root root --memory 60M,80M --runs 3 -o killed >"$out" 2>"$err"; }
begin() {
    "$REPRISE" sweep job.oplog --root root --memory 60M,80M --runs 3 -o killed >"$out" 2>"$err" &
    sweep=$!
}
mounts=$(grep -cF "$tmp" /proc/self/mountinfo)
kept='' child=''
for turn in $(seq "${REPRISE_KILLS:-4}"); do
    begin
    sleep "0.$((RANDOM % 10))"
    child=$(pgrep -P "$sweep" | head -n 1)
    kill -KILL "$sweep" 2>/dev/null
    wait "$sweep" 2>/dev/null
    now=$(cat killed/runs.jsonl 2>/dev/null)
    [[ ${now:0:${#kept}} == "$kept" ]] || fail "kill $turn lost runs"
    kept=$(grep -a '}$' killed/runs.jsonl 2>/dev/null)
done
go_on || [[ $? == 1 ]] || fail "after the kills: $(cat "$err")"
now=$(cat killed/runs.jsonl)
[[ ${now:0:${#kept}} == "$kept" ]] || fail "runs were lost"
equal "$(wc -l <killed/runs.jsonl)" 6
equal "$(cd killed && echo *)" "cells.csv runs.jsonl sweep.png sweep.svg"
equal "$(grep -cF "$tmp" /proc/self/mountinfo)" "$mounts"
[[ -z $child ]] || equal "$(own_groups "$child")" ""
pgrep -f "replay job.oplog --root root -q --runs 1 --json=killed" >/dev/null && fail "a replay is left"

# Asked to end: what there is, and how to go on.
rm -rf killed
begin
for _ in $(seq 600); do [[ ! -s killed/runs.jsonl ]] || break; sleep 0.05; done
kill -TERM "$sweep"
wait "$sweep"
equal $? 4
contains "$err" "interrupted; the same command goes on where it stopped"
contains "$out" "memory"
finish
