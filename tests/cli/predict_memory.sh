#!/usr/bin/env bash
# predict --memory, --ratio, --page-cache: less memory in a prediction. predict --sweep: a grid of them, and its files.
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

cat >model.json <<'END'
{"storage_model": 1, "host": "", "directory": "/mnt", "file_system": "ext4", "device": "", "measured_unix_s": 0,
 "open_ns": 1000, "open_cold_ns": 1000, "stat_ns": 1000, "close_ns": 0, "ioctl_ns": 0, "fstat_ns": 0, "make_ns": 1000,
 "remove_ns": 1000, "call_ns": 200, "fsync_ns": 1000, "read": [{"bytes": 4096, "ns": 100000}, {"bytes": 131072, "ns":
 400000}], "write": [], "read_bytes_per_s": 100000000.0, "reads_per_s": 0, "read_burst_ns": 0, "parallelism": 4,
 "write_bytes_per_s": 100000000.0, "cached_bytes_per_s": 10000000000.0, "read_ahead_bytes": 131072, "request_bytes":
 131072, "dirty_background_bytes": 0, "dirty_bytes": 0, "dirty_expire_ns": 30000000000, "cold": true}
END
# Sixteen files of 4 MiB, three times in order.
# shellcheck disable=SC2046
passes_strace $(seq 0 15) $(seq 0 15) $(seq 0 15) >job.log
run 0 "$REPRISE" import -q job.log -o job.oplog
predict() { "$REPRISE" predict job.oplog --storage model.json "$@"; }
# value FILE EXPRESSION: of a result as r
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }

# Wrong uses.
wrong() {
    local text=$1
    shift
    run 2 predict "$@"
    contains "$err" "$text"
}
wrong "--memory and --ratio both say how much memory there is" --memory 1G --ratio 2
wrong "--ratio is '0', expected a number from 0.01 to 1000000" --ratio 0
wrong "--cache warm with a memory limit" --cache warm --ratio 2
wrong "--no-ballast without a memory limit" --no-ballast
wrong "'speed' is none of read, riops, ratio, memory, gpu-speed" --sweep speed=1
wrong "--sweep read names no values" --sweep read
wrong "--sweep ratio has one value twice: 2 and 2" --sweep ratio=1,2,2
wrong "--ratio is ''" --sweep ratio=1,,2
wrong "--sweep riops is '0', expected a number above 0" --sweep riops=0
wrong "--sweep read goes from 1G to 10M, expected the smaller one first" --sweep read=1G..10M
wrong "one or two different axes" --sweep read=1M --sweep read=2M
wrong "one or two different axes" --sweep read=1M --sweep riops=2 --sweep ratio=1
wrong "--sweep memory and ratio both say" --sweep ratio=1 --sweep memory=1G
wrong "--sweep ratio and a memory limit besides" --sweep ratio=1 --memory 1G
wrong "--cache warm with a memory limit" --sweep ratio=1 --cache warm
wrong "accelerator" --sweep gpu-speed=1,2

# In order nothing stays of twice the memory, by either list; with room for all of it the prediction is as without a limit.
for lists in two-lists lru; do
    run 0 predict --ratio 2 --page-cache $lists --json=half.json -f
    equal "$(head -n 1 "$out")" "what-if: --ratio 2; not the job as recorded"
    contains "$out" "memory: 32.0 MiB for 64.0 MiB of data (ratio 2.00), page cache $lists"
    contains "$out" "epochs: 1: 100.0 % from the device in"
    contains "$out" "the log does not say what memory the job held"
    equal "$(value half.json '[e["own_bytes"] >> 20 for e in r["by_epoch"]]')" "[64, 64, 64]"
    equal "$(value half.json 'r["memory"]["limit_bytes"] >> 20, r["memory"]["data_bytes"] >> 20, r["memory"]["page_cache"]')" "(32, 64, '$lists')"
    run 0 predict --memory 1G --page-cache $lists --json=all.json -f
    contains "$out" "epochs: 2 and 3 (of 3) never reached the storage"
    equal "$(value all.json '[e["own_bytes"] >> 20 for e in r["by_epoch"]]')" "[64, 0, 0]"
    run 0 predict --json=free.json -f
    equal "$(value free.json 'r["memory"], r["by_epoch"]')" "(None, [])"
    equal "$(value all.json 'r["elapsed_s"], r["storage_reads"]')" "$(value free.json 'r["elapsed_s"], r["storage_reads"]')"
    recorded=$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog
    run 0 "$REPRISE" predict -q "$recorded" --storage model.json -f -o free.oplog
    run 0 "$REPRISE" predict -q "$recorded" --storage model.json -f -o all.oplog --memory 1T --page-cache $lists
    "$REPRISE" dump free.oplog >free.dump
    "$REPRISE" dump all.oplog >all.dump
    equal "$(grep ^begin= all.dump | cmp - <(grep ^begin= free.dump))" ""
    [[ $(grep -c ^begin= all.dump) -gt 100 ]] || fail "no ops were compared"
done

# A sweep: a table, and the files of `reprise sweep`.
run 0 predict --sweep ratio=0.5,2 --sweep read=10M,1G -o out --json=sweep.json -f
contains "$out" "ratio  read"
contains "$out" "out/cells.csv, sweep.svg, sweep.png"
equal "$(head -n 1 out/cells.csv)" "ratio,read,elapsed_s,elapsed_s_low,elapsed_s_high,au_share,au_share_low,au_share_high,read_rate_bytes_per_s,read_rate_bytes_per_s_low,read_rate_bytes_per_s_high,read_p99_s,read_p99_s_low,read_p99_s_high,device_read_bytes,device_read_bytes_low,device_read_bytes_high,device_share_share,device_share_share_low,device_share_share_high,runs,trust,problem"
equal "$(wc -l <out/cells.csv)" 5
contains out/sweep.svg "</svg>"
equal "$(head -c 4 out/sweep.png | tail -c 3)" PNG
equal "$(value sweep.json '[c["ratio"] + " " + c["read"] for c in r["cells"]]')" "['0.5 10M', '0.5 1G', '2 10M', '2 1G']"
equal "$(value sweep.json '[round(c["device_read_bytes"]["median"]) >> 20 for c in r["cells"]]')" "[64, 64, 192, 192]"
equal "$(value sweep.json 'r["cells"][0]["elapsed_s"]["median"] > 5 * r["cells"][1]["elapsed_s"]["median"]')" True
# As a prediction of that cell alone.
run 0 predict --ratio 2 --json=one.json -f
run 0 predict --sweep ratio=2,4 --json=sweep.json -f
equal "$(value sweep.json 'r["cells"][0]["elapsed_s"]["median"]')" "$(value one.json 'r["elapsed_s"]')"
lacks "$out" "cells.csv"
run 0 predict --ratio 2 --no-ballast --json=one.json -f
run 0 predict --sweep ratio=2,4 --no-ballast --json=sweep.json -f
equal "$(value sweep.json 'r["cells"][0]["elapsed_s"]["median"]')" "$(value one.json 'r["elapsed_s"]')"
run 2 predict --sweep read=1G --no-ballast
contains "$err" "--no-ballast without a memory limit"
# What is there is not overwritten.
run 2 predict --sweep ratio=2 -o out
contains "$err" "out/cells.csv exists"
run 0 predict --sweep ratio=2 -o out -f
mkdir foreign
echo mine >foreign/sweep.svg
run 2 predict --sweep ratio=2 -o foreign
contains "$err" "foreign/sweep.svg exists"
equal "$(cat foreign/*)" mine
mkdir measured
touch measured/runs.jsonl
run 2 predict --sweep ratio=2 -o measured -f
contains "$err" "has the runs of a sweep"
# Ranges are geometric, with about eight round values, the ends as given.
values() {
    run 0 predict --sweep "$1" --json=range.json -f
    equal "$(value range.json "' '.join(c['${1%%=*}'] for c in r['cells'])")" "$2"
}
values read=10M..1G "10M 19M 38M 73M 140M 270M 530M 1G"
values ratio=0.5..4 "0.5 0.67 0.91 1.2 1.6 2.2 3 4"
values riops=100..10000 "100 190 370 720 1400 2700 5200 10000"
values memory=16M..17M "16M 17M"
# Cells that cannot be are named.
run 2 predict --sweep ratio=0.001,1
contains "$err" "expected a number from 0.01"
finish
