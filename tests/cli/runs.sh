#!/usr/bin/env bash
# Several runs and several recordings: how many, what is restored in between, what they say, and when they stop.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# A reader that also writes a file: each run changes its root.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/out add"
    echo "0 /data/in open"
    echo "0 /data/out open"
    for i in $(seq 0 20); do echo "$((i * 1000)) /data/in read $((i * 4096)) 4096"; done
    echo "30000 /data/out write 0 8192"
    echo "31000 /data/in close"
    echo "31000 /data/out close"
} >job.log
as_strace <job.log >job.strace
run 0 "$REPRISE" import -q job.strace -o job.oplog
run 0 "$REPRISE" prepare -q job.oplog --root root

field() { python3 -c "import json,sys; print(json.load(open('run.json'))$1)"; }

run 0 "$REPRISE" replay job.oplog --root root --runs 3 -f --json=run.json -o run.oplog
# Other programs may disturb one of the three, which is then left out and said.
counted=$(field "['series']['counted']")
level=$(python3 -c "print(1 - 2 * 0.5 ** $counted)")
contains "$out" "median of $counted runs: "
contains "$out" "with $(python3 -c "print(round($level * 100))") % confidence (6 runs give 95 %)"
[[ $counted == 3 ]] || contains "$out" "left out ("
contains "$out" "the one nearest to the median"
lacks "$out" "Earlier replays changed files"
equal "$(field "['series']['confidence']")" "$level"
equal "$(field "['same_job']")" True
python3 - <<'EOF' || fail "the JSON of the series does not add up"
import json, statistics
run = json.load(open("run.json"))
series = run["series"]
assert len(series["runs"]) == 3 and all(one["valid"] for one in series["runs"]), series
for one in series["runs"]:
    assert one["counted"] == (not one["disturbed"] or series["disturbed_counted"]), series
times = [one["elapsed_ns"] / 1e9 for one in series["runs"] if one["counted"]]
assert 2 <= len(times) == series["counted"], series
assert abs(statistics.median(times) - series["median_s"]) < 1e-6, series
assert series["low_s"] == min(times) and series["high_s"] == max(times), series
chosen = series["runs"][series["median_run"] - 1]
assert chosen["counted"] and abs(run["elapsed_s"] - chosen["elapsed_ns"] / 1e9) < 1e-6
EOF
python3 - <<'EOF' || fail "the interval is not that of the series"
import json
run = json.load(open("run.json"))
low, high = run["elapsed_interval_s"]
assert low < run["series"]["median_s"] < high, run["elapsed_interval_s"]
assert low <= run["elapsed_s"] <= high, run["elapsed_interval_s"]
assert run["verdict"]["elapsed_interval_s"] == [low, high]
EOF
for i in 1 2 3; do run 0 "$REPRISE" info -q "run.$i.oplog"; done
[[ ! -e run.oplog && ! -e run.4.oplog ]] || fail "there are more logs than runs"

# A run by itself has no series; and the root that the series left changed is restored by the next one.
run 0 "$REPRISE" replay job.oplog --root root -v
contains "$out" "Earlier replays changed files"
lacks "$out" "median of"
run 0 "$REPRISE" replay job.oplog --root root --runs 1
lacks "$out" "Earlier replays changed files"
contains "$out" "median of 1 run: "
lacks "$out" "confidence"

# Until they are stable, or for so long: sleeps of a millisecond are as long each time.
run 0 "$REPRISE" replay job.oplog --engine null --pace timed --runs 3 --until-stable 30s --json=run2.json
[[ $(python3 -c "import json; print(len(json.load(open('run2.json'))['series']['runs']) >= 3)") == True ]] || fail "fewer than three runs"

# What never becomes stable says so: after no time at all there are three runs at most.
"$REPRISE" replay job.oplog --engine null --pace afap --runs 3 --until-stable 1ns --json=never.json >"$out" 2>"$err"
if [[ $(python3 -c "import json; print(json.load(open('never.json'))['series']['stable'])") == False ]]; then
    contains "$out" "NOT STABLE after 1 ns: "
    contains "$out" " of the median, 2.5 % wanted."
else
    lacks "$out" "NOT STABLE"
fi

# A series of runs of which none is valid gives the reason.
run 0 "$REPRISE" prepare -q job.oplog --root spoilt
rm spoilt/data/in
run 1 "$REPRISE" replay job.oplog --root spoilt --read-only --runs 2
head -n 1 "$out" | grep -q '^DO NOT TRUST: 0 of 2 runs can be believed (run 1: NOT THE SAME JOB: ' || { fail "no reason first"; head -n 3 "$out"; }

# One that is: restoring the root mended it after the first run.
printf '%s\n' "fio version 3 iolog" "0 /data/in add" "0 /data/in open" "0 /data/in read 0 4096" "0 /data/in close" \
    "0 /data/out add" "0 /data/out open" "0 /data/out write 0 4096" "0 /data/out close" >both.log
run 0 "$REPRISE" import -q both.log -o both.oplog
run 0 "$REPRISE" prepare -q both.oplog --root mended
rm mended/data/in
run 1 "$REPRISE" replay both.oplog --root mended --runs 3 --pace afap
head -n 1 "$out" | grep -qE '^DO NOT TRUST: [012] of 3 runs can be believed \(run 1: NOT THE SAME JOB: ' || { fail "no reason first"; head -n 3 "$out"; }

# A wrong root is wrong in the first run, and no second one follows.
run 4 "$REPRISE" replay job.oplog --root "$tmp/nowhere" --runs 3
contains "$err" "cannot open the root"
for wrong in "--runs 0" "--runs 1001" "--runs many" "--until-stable 0" "--until-stable soon"; do
    # shellcheck disable=SC2086
    run 2 "$REPRISE" replay job.oplog --root root $wrong
done

# Ctrl-C ends the series with what there is.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/in open"
    for i in $(seq 0 60); do echo "$((i * 1000000)) /data/in read $((i * 4096)) 4096"; done
    echo "61000000 /data/in close"
} >slow.log
run 0 "$REPRISE" import -q slow.log -o slow.oplog
"$REPRISE" replay slow.oplog --engine null --pace timed --runs 5 >"$out" 2>"$err" &
series=$!
sleep 1.5
kill -INT $series
code=0
wait $series || code=$?
equal "$code" 4
contains "$out" "interrupted: signal 2"

# Several recordings of one job: the one nearest to the median, the same for prepare and replay.
for i in 1 2 3; do
    sed "s/^31000 /$((31000 + (i % 3) * 20000)) /" job.log >"again.$i.log"
    run 0 "$REPRISE" import -q "again.$i.log" -o "again.$i.oplog"
done
run 0 "$REPRISE" prepare again.1.oplog again.2.oplog again.3.oplog --root several
contains "$err" "using again.1.oplog" # 51 ms; the others took 71 and 31
run 0 "$REPRISE" replay again.1.oplog again.2.oplog again.3.oplog --root several
contains "$err" "using again.1.oplog"
contains "$err" "3 recordings, median 51"
run 2 "$REPRISE" replay job.oplog slow.oplog --root root
contains "$err" "differ too much to be the same job"

# Recording several times.
can_record || { echo "capture --runs: not tried, this machine cannot record"; finish; }
run 0 "$REPRISE" capture --runs 3 -o rec.oplog -- cat job.log
contains "$err" "rec.2.oplog: "
contains "$err" "3 recordings, median "
for i in 1 2 3; do run 0 "$REPRISE" info -q "rec.$i.oplog"; done
[[ ! -e rec.oplog ]] || fail "a log without a number"
run 2 "$REPRISE" capture --runs 3 -o rec.oplog -- cat job.log
contains "$err" "rec.1.oplog exists"
run 3 "$REPRISE" capture --runs 3 -o bad.oplog -- sh -c 'exit 3'
contains "$err" "stopped after run 1 of 3: exit code 3"
[[ ! -e bad.2.oplog ]] || fail "the series went on"
run 2 "$REPRISE" capture --runs 3 -o rec.oplog --pid 1
contains "$err" "--runs requires a command"
finish
