#!/usr/bin/env bash
# `reprise compare A... --against B...`: a verdict per metric, exit code 1 on worse, files for CI, what is refused.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

passes_log 1 2 3 4 1 2 3 4 >job.log
passes_log 1 2 3 4 >other.log
for name in job other; do run 0 "$REPRISE" import -q $name.log -o $name.oplog; done
# As fast as the replayer itself is: what matters here is the verdict's way, not its figures.
replay() { "$REPRISE" replay -q --engine null --pace afap -f "$@" >/dev/null 2>"$err" || fail "replay $*: $(cat "$err")"; }
replay job.oplog --runs 12 -o run.oplog
replay other.oplog -o other.run.oplog
"$REPRISE" replay -q --engine null --pace timed --time-scale 0.5 job.oplog -o half.oplog >/dev/null 2>"$err" || fail "half: $(cat "$err")"
side_a=(run.{1,3,5,7,9,11}.oplog) side_b=(run.{2,4,6,8,10,12}.oplog)

# Thresholds that no noise of a loaded machine reaches.
wide=(--threshold elapsed=100000% --threshold throughput=100000% --threshold p50=100000% --threshold p99=100000%)
run 0 "$REPRISE" compare "${side_a[@]}" --against "${side_b[@]}" "${wide[@]}" --json=compare.json --junit compare.xml --markdown compare.md --html compare.html
contains "$out" "A: 6 runs, B: 6 runs; medians with 95 % intervals"
contains "$out" "where the time of all tasks went"
contains compare.md "| elapsed |"
contains compare.html "case-0-0-metric-0"
contains compare.html "Where the time of all tasks went"
python3 - <<'END' || fail "the files"
import json
from xml.etree import ElementTree
out = json.load(open("compare.json"))
assert out["passed"] is True, out
names = [row["metric"] for row in out["metrics"]]
assert names[:2] == ["elapsed", "throughput"], names
assert all(row["a"]["low"] <= row["a"]["median"] <= row["a"]["high"] for row in out["metrics"])
assert all(row["finding"] in ("same", "too noisy") for row in out["metrics"]), out["metrics"]
assert len(out["runs"]["a"]) == 6 and out["runs"]["b"][0]["recording"] == out["runs"]["a"][0]["recording"] != ""
suites = ElementTree.parse("compare.xml").getroot()
assert suites.tag == "testsuites" and int(suites.get("tests")) == len(names) and suites.get("failures") == "0"
END
run 2 "$REPRISE" compare "${side_a[@]}" --against "${side_b[@]}" --junit compare.xml
contains "$err" "compare.xml exists"
run 4 "$REPRISE" compare "${side_a[@]}" --against "${side_b[@]}" --markdown nowhere/x.md
# One per side: no interval, no verdict, no success.
run 1 "$REPRISE" compare run.1.oplog --against run.2.oplog
head -n 1 "$out" | grep -q "^NO VERDICT: one run per side: no interval can be given" || fail "$(head -n 1 "$out")"
# Refused.
run 2 "$REPRISE" compare run.1.oplog --against other.run.oplog
contains "$err" "are runs of different recordings"
run 2 "$REPRISE" compare run.1.oplog --against half.oplog
contains "$err" "were run differently"
run 2 "$REPRISE" compare run.1.oplog --against job.oplog
contains "$err" "one is a run and the other a recording"
run 2 "$REPRISE" compare run.1.oplog --against run.1.oplog
contains "$err" "is the same log as run.1.oplog"
run 2 "$REPRISE" compare run.1.oplog --against run.2.oplog --threshold elapst=3%
contains "$err" "did you mean elapsed?"
printf 'elapsed=3%%\n\nreed.p50=3%%\n' >thresholds
run 3 "$REPRISE" compare run.1.oplog --against run.2.oplog --threshold thresholds
contains "$err" "thresholds:3: 'reed.p50' is not a metric; did you mean"
run 2 "$REPRISE" compare run.1.oplog --against run.2.oplog --tolerance elapsed=5%
contains "$err" "use --threshold"
run 2 "$REPRISE" compare run.1.oplog run.2.oplog --junit x.xml
contains "$err" "--junit is of runs against runs"
run 2 "$REPRISE" compare run.1.oplog run.2.oplog run.3.oplog
contains "$err" "more than two logs"
finish
