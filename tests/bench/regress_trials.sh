#!/usr/bin/env bash
# usage: tests/bench/regress_trials.sh [TRIALS [RUNS]]     [20 10]
# How often `regress` finds storage whose throughput is 5 % less, and how often it flags storage that is alike: each trial runs
# a job that reads 96 MiB cold from three ext4 on loop devices, two limited to 50 MB/s and one to 47.5 MB/s, RUNS times each,
# interleaved. (The kernel hands out its budget every 100 ms: runs of less than 2 s cannot differ by 5 %.) Root, control groups
# version 1. A trial of 10 runs takes about 75 s. Prints a line a trial, the sums, and the change of the medians of all runs,
# which is what was planted. FIRST: number of the first trial.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../.."
trials=${1:-20} runs=${2:-10} first=${FIRST:-1}
reprise=$(realpath "${REPRISE:-build/release/reprise}")
controller=/sys/fs/cgroup/blkio
[[ $EUID == 0 ]] || { echo "regress_trials: requires root" >&2; exit 4; }
[[ -e $controller/cgroup.procs ]] || { echo "regress_trials: no blkio controller of version 1" >&2; exit 4; }

work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-trials-XXXXXX")
devices=() group=$controller/reprise-trials-$$
clean_up() {
    local one
    echo $$ >"$controller/cgroup.procs" || true
    for one in a b c; do ! mountpoint -q "$work/$one" || umount "$work/$one" || umount -l "$work/$one"; done
    for one in ${devices[@]+"${devices[@]}"}; do losetup -d "$one" || true; done
    rmdir "$group" || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$group"
for one in a b c; do
    truncate -s 192M "$work/$one.img"
    device=$(losetup --find --show --direct-io=on "$work/$one.img")
    devices+=("$device")
    mkfs.ext4 -q -F "$device"
    mkdir "$work/$one"
    mount "$device" "$work/$one"
    rate=50000000
    [[ $one != c ]] || rate=47500000
    echo "$(lsblk -dno MAJ:MIN "$device" | tr -d ' ') $rate" >"$group/blkio.throttle.read_bps_device"
done
{
    echo "fio version 3 iolog"
    at=0
    for file in $(seq 24); do
        printf '%s /data/%s add\n%s /data/%s open\n' "$at" "$file" "$at" "$file"
        for ((offset = 0; offset < 4194304; offset += 131072)); do echo "$at /data/$file read $offset 131072"; done
        echo "$at /data/$file close"
        at=$((at + 10))
    done
} >"$work/job.log"
"$reprise" import "$work/job.log" -o "$work/job.oplog" >"$work/out" 2>&1

echo $$ >"$group/cgroup.procs"
found=0 clean=0
for ((trial = first; trial < first + trials; ++trial)); do
    rc=0
    printf '[suite]\nseed = %s\n[job reads]\nlog = job.oplog\nreplay = --cache cold --delay sleep\n' "$trial" >"$work/suite.ini"
    "$reprise" regress "$work/suite.ini" --target a="$work/a" --target b="$work/b" --target c="$work/c" --runs "$runs" \
        -f -o "$work/runs" --json="$work/regress.json" >"$work/out" 2>&1 || rc=$?
    [[ $rc == 0 || $rc == 1 ]] || { cat "$work/out"; exit "$rc"; }
    read -r alike slower detail < <(python3 - "$work/regress.json" <<'END'
import json, sys
cases = {case["target"]: case for case in json.load(open(sys.argv[1]))["cases"]}
flagged = lambda target: [m["metric"] for m in cases[target]["comparisons"][0]["metrics"] if m["finding"] in ("worse", "better")]
change = lambda target: next(m for m in cases[target]["comparisons"][0]["metrics"] if m["metric"] == "throughput")
say = lambda m: "%+.2f%%[%+.2f,%+.2f]" % tuple(100 * m["change"][k] for k in ("median", "low", "high"))
worse = change("c")["finding"] == "worse"
print(int(not flagged("b")), int(worse), "alike", say(change("b")), ",".join(flagged("b")) or "-", "slower", say(change("c")), "shows", "%.2f%%" % (100 * change("c")["detectable"]))
END
    )
    cat "$work/regress.json" >>"$work/all.json"
    clean=$((clean + alike)) found=$((found + slower))
    echo "trial $trial: $detail"
done
echo "slower by 5 %: found in $found of $trials; alike: nothing flagged in $clean of $trials"
python3 - "$work/all.json" <<'END'
import json, statistics, sys
text, runs, decoder = open(sys.argv[1]).read(), {}, json.JSONDecoder()
while text.strip():
    one, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    for case in one["cases"]:
        runs.setdefault(case["target"], []).extend(run["bytes"] / run["elapsed_s"] for run in case["runs"])
median = {target: statistics.median(values) for target, values in runs.items()}
spread = statistics.stdev(runs["a"]) / median["a"]
print("planted: throughput %+.2f %%; runs of one side vary by %.2f %% (standard deviation)" % (100 * (median["c"] / median["a"] - 1), 100 * spread))
END
