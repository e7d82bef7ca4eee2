#!/usr/bin/env bash
# usage: examples/checkpoint-interval.sh JOB.ini --storage MODEL.json [--every 10,30,100] [--shrink K]
# How often can a training job afford a checkpoint? Generates the job with each value of checkpoint_every= (steps) and
# predicts it on the storage of MODEL.json (reprise calibrate --storage): time, what checkpoints add to it, and how much
# work a failure loses in the mean. To prove a row, prepare and replay its log, which stays in build/checkpoint-interval.
# JOB.ini has one section with checkpoint_every=, which is replaced.
# SPDX-License-Identifier: MIT
set -euo pipefail

job='' storage='' every=10,30,100 shrink=1
here=$(cd "$(dirname "$0")/.." && pwd)
reprise=${REPRISE_BINARY:-$here/build/release/reprise}
work=${REPRISE_WORK:-$here/build/checkpoint-interval}
wrong() { echo "checkpoint-interval: $1" >&2; exit 2; }
while [[ $# != 0 ]]; do
    case $1 in
        --storage | --every | --shrink)
            [[ $# -ge 2 ]] || wrong "$1 requires a value"
            case $1 in
                --storage) storage=$2 ;;
                --every) every=$2 ;;
                --shrink) shrink=$2 ;;
            esac
            shift
            ;;
        -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
        -*) wrong "unknown option $1; --help lists them" ;;
        *) job=$1 ;;
    esac
    shift
done
[[ -n $job && -n $storage ]] || wrong "a job file and --storage are required; see --help"
[[ $every =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || wrong "--every is a list of numbers of steps, e.g. 10,30,100"
[[ $(grep -cE '^[[:space:]]*checkpoint_every[[:space:]]*=' "$job") == 1 ]] || wrong "$job must have exactly one line checkpoint_every="
[[ -x $reprise ]] || wrong "there is no $reprise; examples/quickstart.sh builds it"
mkdir -p "$work"
IFS=, read -ra values <<<"$every"

# predict VALUE: the job's log with that, and what is predicted of it
predict() {
    if [[ $1 == never ]]; then
        grep -vE '^[[:space:]]*checkpoint_' "$job" >"$work/$1.ini"
    else
        sed -E "s/^[[:space:]]*checkpoint_every[[:space:]]*=.*/checkpoint_every=$1/" "$job" >"$work/$1.ini"
    fi
    local shrunk=()
    [[ $shrink == 1 ]] || shrunk=(--shrink "$shrink")
    "$reprise" generate "$work/$1.ini" "${shrunk[@]}" -q -f -o "$work/$1.oplog" --json="$work/$1.job.json"
    "$reprise" predict "$work/$1.oplog" --storage "$storage" --json="$work/$1.json" >/dev/null
}
for value in never "${values[@]}"; do
    predict "$value"
done
python3 - "$work" "${values[@]}" <<'END'
import json
import sys
work, values = sys.argv[1], sys.argv[2:]
def load(name):
    with open(f"{work}/{name}.json", encoding="utf-8") as file:
        return json.load(file)
base = load("never")["elapsed_s"]
steps = sum(each["steps"] for each in load("never.job")["sections"])
print(f"without checkpoints: {base:.1f} s for {steps} steps")
print(f"{'every':>8}  {'time':>10}  {'added':>8}  {'lost by a failure':>17}  trust")
for value in values:
    run = load(value)
    time = run["elapsed_s"]
    lost = min(int(value), steps) / steps * time / 2
    print(f"{value:>8}  {time:>8.1f} s  {100 * (time / base - 1):>6.1f} %  {lost:>15.1f} s  {run['trust']}")
END
