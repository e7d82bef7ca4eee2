#!/usr/bin/env bash
# `reprise regress`: jobs x targets, kept one by one, compared with the first target or with a baseline; what is wrong
# with a suite, a target or a file.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

passes_log 1 2 >job.log
printf '9 /data/out add\n9 /data/out open\n9 /data/out write 0 65536\n9 /data/out datasync 0 0\n9 /data/out close\n' >>job.log
run 0 "$REPRISE" import -q job.log -o job.oplog
mkdir a b
cat >suite.ini <<'END'
[suite]
runs = 2
warm-up = 0
[job passes]
log = job.oplog
replay = --pace afap --cache as-is
[target b]
remount = touch remounted
END
wide=(--threshold elapsed=100000% --threshold throughput=100000% --threshold p50=100000% --threshold p99=100000%)
regress() { "$REPRISE" regress "$suite" --target a=a --target b=b "$@" >"$out" 2>"$err"; }
suite=suite.ini

# Mistakes.
printf '' >empty.ini
run 3 "$REPRISE" regress empty.ini --target a=a
contains "$err" "the suite is empty"
printf '[job x]\nlgo = job.oplog\n' >typo.ini
run 3 "$REPRISE" regress typo.ini --target a=a
contains "$err" "typo.ini:2: 'lgo' is not known here; did you mean log?"
run 2 "$REPRISE" regress suite.ini --target a
contains "$err" "is not NAME=DIR"
run 2 "$REPRISE" regress suite.ini --target x=a --target y=../"$(basename "$PWD")"/a
contains "$err" "targets x and y are the same folder"
run 2 "$REPRISE" regress suite.ini --target a=a
contains "$err" "target b has no folder"
run 4 "$REPRISE" regress suite.ini --target a=a --target b=nowhere
contains "$err" "target b: nowhere"
run 2 "$REPRISE" regress suite.ini --target a=a --target b=b --update-baseline
run 2 "$REPRISE" regress suite.ini --target a=a --target b=b --runs 0
run 2 "$REPRISE" regress suite.ini --target a=a --target b=b --threshold elapsd=1%
[[ ! -e suite.ini.regress ]] || fail "a mistake left a folder"
printf '[job x]\nlog = job.oplog\nreplay = --paec afap\n' >option.ini
run 2 "$REPRISE" regress option.ini --target a=a
contains "$err" "[job x] replay: "
for words in 'replay = --pace afap --delay sleep' 'replay = --ratio x' 'replay = --runs 3' 'replay = --cache cold --verify content' \
    'prepare = --content blue' 'prepare = --jobs 0' 'replay = --only nothing-like-this'; do
    printf '[job x]\nlog = job.oplog\n%s\n' "$words" >option.ini
    run 2 "$REPRISE" regress option.ini --target a=a
    contains "$err" "[job x] ${words%% *}: "
done
[[ ! -e option.ini.regress && ! -e a/x ]] || fail "a mistake in the words left a root or a folder"

# A folder with files of others is left as it is.
mkdir theirs
for file in run.json run.1.oplog runs.jsonl; do echo mine >theirs/$file; done
run 2 "$REPRISE" regress suite.ini --target a=a --target b=b -o theirs
contains "$err" "theirs has files, and not those of a suite"
equal "$(cat theirs/* | sort -u)" mine
equal "$(ls theirs | wc -l)" 3

# A remount that unmounts nothing proves nothing.
regress --verify --runs 1 && fail "nothing was remounted: exit code 0"
[[ -e remounted ]] || fail "the remount command did not run"
contains "$out" "content after a remount: FAILED"
contains "$out" "the remount command unmounted nothing"
rm -rf suite.ini.regress
sed -i '/^.target/,$d' suite.ini

# Two runs give no verdict; the others are added to them.
regress --verify --json=two.json && fail "two runs: exit code 0"
contains "$out" "NO VERDICT: 2 runs against 2 are too few"
lacks "$out" "earlier call"
python3 - <<'END' || fail "two.json"
import json
cases = json.load(open("two.json"))["cases"]
assert [(one["job"], one["target"]) for one in cases] == [("passes", "a"), ("passes", "b")], cases
checks = {check["check"]: check["result"] for check in cases[1]["checks"]}
assert checks == {"results of calls": "ok", "files and their content": "ok", "content after a remount": "not checked",
                  "synced data after power cuts": "not checked", "runs: results, names, types and sizes": "ok", "runs: times": "ok"}, checks
assert cases[0]["comparisons"] == [] and len(cases[1]["comparisons"]) == 1
END
lines=$(wc -l <suite.ini.regress/runs.jsonl)
regress --verify --runs 7 "${wide[@]}" --junit r.xml --markdown r.md || fail "seven runs: $(cat "$out" "$err")"
contains "$out" "passed: 2 cases"
contains "$out" "b against a"
equal "$(wc -l <suite.ini.regress/runs.jsonl)" $((lines + 11)) # and that they were judged
contains "$out" "4 of 14 runs were made by an earlier call, "
contains r.md "### passes on b"
python3 -c 'from xml.etree import ElementTree as E; s = E.parse("r.xml").getroot(); assert s.get("failures") == "0" and int(s.get("tests")) > 10' || fail "r.xml"
[[ -z $(find suite.ini.regress -name 'run.*') ]] || fail "left behind: $(ls suite.ini.regress)"
# Once more: nothing to run.
before=$(cat suite.ini.regress/runs.jsonl)
regress --verify --runs 7 "${wide[@]}" --json=again.json || fail "again: $(cat "$err")"
contains "$out" "no new run: all 14 runs were made by an earlier call, "
equal "$(python3 -c 'import json; print(json.load(open("again.json"))["resumed"]["runs"])')" 14
equal "$(cat suite.ini.regress/runs.jsonl)" "$before"
sed -i "s/^warm-up = 0/warm-up = 0\nseed = 2/" suite.ini
run 2 "$REPRISE" regress suite.ini --target a=a --target b=b
contains "$err" "has runs of another suite"
sed -i /^seed/d suite.ini

# A baseline: made, then compared with by new runs, however often; something slower than it fails.
regress --runs 7 --baseline base.json || fail "the baseline: $(cat "$out" "$err")"
contains "$out" "the baseline was stored"
for more in 0 1; do # also where only some of the runs are the baseline's
    cp suite.ini.regress/runs.jsonl before
    regress --runs $((7 + more)) --baseline base.json "${wide[@]}" || fail "beside itself: $(cat "$out" "$err")"
    contains "$out" "a against baseline"
    contains "$err" "the runs of the last call were judged: they are now in suite.ini.regress/runs.before.jsonl"
    lacks "$out" "earlier call"
    cmp -s before suite.ini.regress/runs.before.jsonl || fail "the old runs are not kept"
done
head -n 3 suite.ini.regress/runs.jsonl >some
python3 - <<'END'
import json
base = json.load(open("base.json"))
rows = [json.loads(line) for line in open("some")]
base["cells"][0]["runs"][0] = rows[-1]["record"]
json.dump(base, open("mixed.json", "w"))
END
cp some suite.ini.regress/runs.jsonl
regress --runs 7 --baseline mixed.json "${wide[@]}" || fail "a run of the baseline: $(cat "$out" "$err")"
lacks "$out" "earlier call"
# One that was interrupted goes on, and says so.
cp some suite.ini.regress/runs.jsonl
regress --runs 7 --baseline base.json "${wide[@]}" || fail "interrupted: $(cat "$out" "$err")"
contains "$out" "3 of 14 runs were made by an earlier call, "
python3 - <<'END'
import json
base = json.load(open("base.json"))
for cell in base["cells"]:
    for run in cell["runs"]:
        run["elapsed_s"] /= 10
json.dump(base, open("fast.json", "w"))
END
regress --runs 7 --baseline fast.json --update-baseline && fail "ten times slower: exit code 0"
contains "$out" "WORSE: elapsed"
contains "$out" "the baseline was NOT stored"
run 3 "$REPRISE" regress suite.ini --target a=a --target b=b --baseline job.log

# Runs with other options, or of another log, are not those of the baseline: refused before anything is run or put aside.
sed 's/--cache as-is/--cache warm/' suite.ini >warm.ini
cp -r suite.ini.regress warm.ini.regress
suite=warm.ini
run 2 "$REPRISE" regress warm.ini --target a=a --target b=b --runs 7 --baseline base.json -f
contains "$err" "job passes: the baseline base.json has runs with other options of replay"
contains "$err" "then: --pace afap --cache as-is"
contains "$err" "now:  --pace afap --cache warm"
contains "$err" "remove the baseline or name another one"
cmp -s suite.ini.regress/runs.jsonl warm.ini.regress/runs.jsonl || fail "runs were put aside for nothing"
sed 's/^replay/prepare = --content random\nreplay/' suite.ini >random.ini
run 2 "$REPRISE" regress random.ini --target a=a --target b=b --baseline base.json
contains "$err" "has runs with other options of prepare"
contains "$err" "then: no options"
passes_log 1 3 >longer.log
run 0 "$REPRISE" import -q longer.log -o longer.oplog
sed 's/job.oplog/longer.oplog/' suite.ini >longer.ini
run 2 "$REPRISE" regress longer.ini --target a=a --target b=b --baseline base.json
contains "$err" "has runs of another log"
[[ ! -e longer.ini.regress ]] || fail "a refused suite left a folder"
# A baseline of before does not say: it is compared with, and that is said.
python3 -c 'import json
base = json.load(open("base.json"))
for cell in base["cells"]: del cell["conditions"]
json.dump(base, open("old.json", "w"))'
run "0 1" "$REPRISE" regress suite.ini --target a=a --target b=b --runs 7 --baseline old.json "${wide[@]}"
contains "$out" "The baseline does not say with which options its runs were made"
suite=suite.ini

# A run that alone would end with 1 is a failed check, and no baseline: nothing is cold in memory.
if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs ]]; then
    memory=$(mktemp -d /dev/shm/reprise-test-XXXXXX)
    printf '[job passes]\nlog = job.oplog\nreplay = --pace afap --cache cold\n' >cold.ini
    cold() { run "$1" "$REPRISE" regress cold.ini --target a="$memory" --runs 6 "${@:2}"; }
    cold 1 --baseline none.json --json=cold.json --junit cold.xml
    equal "$(head -n 1 "$out")" "FAILED: 1 of 1 case"
    contains "$out" "runs: times: FAILED"
    contains "$out" "run 1: NOT MEASURED: the root is on tmpfs"
    contains "$out" "the baseline was NOT stored"
    contains cold.xml 'failures="1"'
    equal "$(python3 -c 'import json; r = json.load(open("cold.json")); print(r["passed"], [c["result"] for c in r["cases"][0]["checks"]])')" \
        "False ['ok', 'FAILED']"
    [[ ! -e none.json ]] || fail "what was not measured became a baseline"
    python3 - <<'END'
import json
rows = [json.loads(line) for line in open("cold.ini.regress/runs.jsonl")]
json.dump({"regress_baseline": 1, "cells": [{"job": "passes", "target": "a", "runs": [r["record"] for r in rows if "record" in r]}]},
          open("memory.json", "w"))
END
    cp memory.json before.json
    cold 1 --baseline memory.json --update-baseline "${wide[@]}"
    contains "$out" "the baseline was NOT stored"
    cmp -s memory.json before.json || fail "the baseline was replaced by runs that measured nothing"
    rm -rf "$memory"
else
    echo "/dev/shm is no tmpfs: runs that measure nothing are not tested"
fi

# What a target does to files is found in every run.
regress --runs 7 "${wide[@]}" || fail "before: $(cat "$out")"
touch a/passes/data/stray
regress --runs 8 "${wide[@]}" && fail "a stray file: exit code 0"
contains "$out" "run 8: 1 thing in files is not as it should be: /data/stray should not be there"
# A target that goes away, with the suite's runs on it.
"$REPRISE" regress suite.ini --target a=a --target b=b --runs 5000 -o long >"$out" 2>"$err" &
until [[ -e long/runs.jsonl && $(wc -l <long/runs.jsonl) -gt 2 ]]; do sleep 0.05; done
mv b gone && mkdir b
rc=0
wait $! || rc=$?
equal "$rc" 4
# For a moment there was none.
grep -qE "target b has disappeared: b is another file system than when the suite began|target b: b: No such" "$err" ||
    fail "a target that went away: $(cat "$err")"
rm -rf b
run 4 "$REPRISE" regress suite.ini --target a=a --target b=b
contains "$err" "target b: b: "
# Ctrl-C: what was measured stays.
"$REPRISE" regress suite.ini --target a=a --target b=gone --runs 5000 -o long -f >"$out" 2>"$err" &
until [[ $(wc -l <long/runs.jsonl) == 3 ]]; do sleep 0.02; done
kill -TERM $!
rc=0
wait $! || rc=$?
equal "$rc" 4
contains "$err" "interrupted; the same command goes on where it stopped"
[[ $(wc -l <long/runs.jsonl) -ge 3 && -z $(find long -name 'run.*') ]] || fail "left behind: $(ls long)"
finish
