#!/usr/bin/env bash
# Open loops: generate makes them, replay and predict count their requests from when they are due.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

printf '0.001\n0.002\n0.002\n0.25\n' >times.csv
cat >job.ini <<'END'
[train]
format=npz
samples=20
sample_size=20k
batch=2
compute=5ms

[pool]
rw=randrw
size=1m
rate_iops=400
runtime=0.5
concurrency=4
fsync=50

[ring]
rw=randread
size=1m
ioengine=io_uring
iodepth=4
rate_iops=300
arrivals=fixed
runtime=0.5

[listed]
rw=read
size=1m
arrivals=times.csv
stonewall
END
run 0 "$REPRISE" generate job.ini -o job.oplog --json=job.json
contains "$out" "150 requests in an open loop"
run 0 "$REPRISE" prepare -q job.oplog --root root
run "0 1" "$REPRISE" replay job.oplog --root root -o run.oplog --json=causal.json
contains "$out" "job         SAME"
contains "$out" "arrivals    ring: 150, from due p50 "
run "0 1" "$REPRISE" replay job.oplog --root root --pace timed --json=timed.json
run 0 "$REPRISE" replay job.oplog --root root --pace afap --json=afap.json
lacks "$out" "arrivals"
storage_model model.json
run 0 "$REPRISE" predict job.oplog --storage model.json --json=predicted.json
contains "$out" "arrivals: ring: 150, from due"
# Each read takes 25 ms, and the device does one at a time: 300 and more a second make a queue.
sed 's/"ns": 65000/"ns": 25000000/; s/"parallelism": 3/"parallelism": 1/' model.json >slow.json
run 0 "$REPRISE" predict job.oplog --storage slow.json --json=slow_job.json
contains "$out" "began late (max "
python3 - <<'END' || fail "the requests of the open loops"
import json
def load(name):
    return json.load(open(name, encoding="utf-8"))
made = {each["name"]: each for each in load("job.json")["sections"]}
assert made["train"]["requests"] == 0 and made["listed"]["requests"] == 4, made
for name in ("causal.json", "timed.json", "predicted.json", "slow_job.json"):
    loops = {each["name"]: each for each in load(name)["open_loops"]}
    assert sorted(loops) == ["listed", "pool", "ring"], (name, loops)
    for loop, each in loops.items():
        assert each["requests"] == made[loop]["requests"] and each["not_done"] == 0, (name, each)
        for what in ("p50", "p99", "max"):
            assert each["from_due_us"][what] >= each["from_begin_us"][what], (name, each)
assert load("afap.json")["open_loops"] == []
fast = {each["name"]: each for each in load("predicted.json")["open_loops"]}
slow = {each["name"]: each for each in load("slow_job.json")["open_loops"]}
assert fast["ring"]["began_late"] == 0 and fast["ring"]["from_due_us"]["max"] < 10e3, fast
ring = slow["ring"]
assert ring["began_late"] > 100, ring
# Four in flight at a time: that is all that the latency from begin has of the queue.
assert ring["from_due_us"]["p50"] > 5 * ring["from_begin_us"]["p99"] / 2, ring
END
run 0 "$REPRISE" compare job.oplog run.oplog
run 0 "$REPRISE" info job.oplog
run 0 "$REPRISE" analyze job.oplog --no-what-if
run 0 "$REPRISE" dump job.oplog
run 0 "$REPRISE" generate job.ini --shrink 10 -o small.oplog
contains "$out" "[ring] is shrunk"
run 0 "$REPRISE" generate job.ini --diagram job.svg
grep -q "at most 4 requests in flight" job.svg || fail "job.svg has no open loop"
run 0 "$REPRISE" generate job.ini --show
cp "$out" shown.ini
run 0 "$REPRISE" generate shown.ini --show
cmp -s "$out" shown.ini || fail "--show of what --show printed differs"

printf '1\n0.5\n' >times.csv
run 3 "$REPRISE" generate job.ini -o x.oplog
contains "$err" "times.csv:2: '0.5' is before the line above"
rm times.csv
run 3 "$REPRISE" generate job.ini -o x.oplog
contains "$err" "times.csv"
contains "$err" "cannot be read"
# In CSV, the results of requests have what they moved, and its file.
printf '[a]\nrw=randread\nbs=4k\nsize=1m\nioengine=io_uring\niodepth=8\n' >u.ini
run 0 "$REPRISE" generate u.ini -q -o u.oplog
run 0 "$REPRISE" export u.oplog --to csv -o u.csv -q
equal "$(python3 -c '
import csv
rows = [row for row in csv.DictReader(open("u.csv", newline="")) if row["kind"] == "uring_complete"]
print(sum(int(row["bytes"]) for row in rows), {row["path"] for row in rows})')" "1048576 {'/data/a.0.0'}"
finish
