#!/usr/bin/env bash
# predict --gpus, --hosts, --network, --sweep gpus: many accelerators in virtual time.
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

cat >model.json <<'END'
{"storage_model": 2, "host": "", "directory": "/mnt", "file_system": "", "device": "", "measured_unix_s": 0,
 "open_ns": 200000, "stat_ns": 50000, "make_ns": 200000, "remove_ns": 200000, "call_ns": 300, "fsync_ns": 1000000,
 "read": [{"bytes": 4096, "ns": 200000}, {"bytes": 1048576, "ns": 500000}], "read_bytes_per_s": 4e9, "parallelism": 4096,
 "write_bytes_per_s": 1e9, "cached_bytes_per_s": 1e10, "read_ahead_bytes": 1048576, "request_bytes": 1048576,
 "cold": true, "shared": {"read_bytes_per_s": 20e9}}
END
samples=400 most=1000
[[ -z ${REPRISE_SANITIZE:-} ]] || samples=200 most=100 # a sanitizer takes ten times as long
cat >job.ini <<END
[train]
format=npz
samples=$samples
sample_size=8MiB
batch=4
loader_workers=4
compute=50ms
END
run 0 "$REPRISE" generate -q job.ini -o job.oplog
predict() { "$REPRISE" predict job.oplog --storage model.json "$@"; }
# value FILE EXPRESSION: of a result as r
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }

# Wrong uses.
wrong() {
    local code=$1 text=$2
    shift 2
    run "$code" predict "$@"
    contains "$err" "$text"
}
wrong 2 "--gpus 10 do not divide evenly over --hosts 4" --gpus 10 --hosts 4
wrong 2 "--gpus is '0', expected a whole number from 1" --gpus 0
wrong 2 "--gpus is '2000000', expected a whole number from 1" --gpus 2000000
wrong 2 "--hosts is 'x', expected a whole number from 1" --gpus 8 --hosts x
wrong 2 "--sweep gpus goes from 8 to 2, expected the smaller one first" --sweep gpus=8..2
wrong 2 "--sweep gpus is ''" --gpus 8 --sweep gpus=
wrong 2 "--sweep gpus goes with no other axis" --sweep gpus=1..8 --sweep ratio=1,2
wrong 2 "--ratio does not go with --gpus" --gpus 8 --ratio 2
wrong 2 "-o with --gpus writes curves" --gpus 8 -o x.oplog
wrong 2 "--scatter" --gpus 8 --scatter some
echo '{"network_model": 1, "latency": 5}' >bad.json
wrong 3 "did you mean latency_us" --gpus 8 --network bad.json
wrong 3 "cannot be read as a network model" --gpus 8 --network none.json
sed 's/"shared": {"read/"shared": {"raed/' model.json >typo.json
run 3 "$REPRISE" predict job.oplog --storage typo.json --gpus 8
contains "$err" "did you mean read_bytes_per_s"
# A job without accelerator, one with asynchronous requests.
sed 's/^compute=.*//' job.ini >idle.ini
run 0 "$REPRISE" generate -q idle.ini -o idle.oplog
printf '[scan]\nrw=randread\nsize=4m\nbs=64k\nioengine=io_uring\niodepth=8\n' | cat job.ini - >both.ini
run 0 "$REPRISE" generate -q both.ini -o both.oplog
run 3 "$REPRISE" predict both.oplog --storage model.json --gpus 8
contains "$err" "asynchronous requests"

# 32 MiB a step in 50 ms is 671 MB/s: 20 GB/s feed 29 accelerators, 4 GB/s a host feed 5.
run 0 predict --gpus 2 --hosts 2
contains "$out" "bound by accelerators"
contains "$out" "trust FAIR: 2 copies are simulated"
contains "$out" "guess: "
run 0 predict --gpus 8 --hosts 1
contains "$out" "bound by storage client of a host"
run 0 predict --gpus 200 --hosts 100 --json=two.json
contains "$out" "bound by storage bandwidth"
equal "$(value two.json 'round(r["points"][0]["read_bytes_per_s"] / 1e9)')" 20
equal "$(value two.json 'r["points"][0]["bound"], r["simulated"], r["trust"]')" "('storage bandwidth', True, 'fair')"
run 0 predict --gpus 200:free --hosts 100 --json
equal "$(value "$out" 'round(r["points"][0]["read_bytes_per_s"] / 1e9)')" 20
run 0 predict --gpus 16 --hosts 8 --network "$REPRISE_SOURCE_DIR/examples/network.json" --json
equal "$(value "$out" 'r["points"][0]["all_reduce_s"] > 0, r["network"].endswith("network.json")')" "(True, True)"

# A curve with its files; what is there is not replaced.
run 0 predict --gpus 4 --hosts 2 --sweep gpus=1..$most -o curve --json=curve.json
contains "$out" "AU falls below 90 % between"
contains "$out" "storage bandwidth"
for file in cluster.csv cluster.svg cluster.png; do
    [[ -s curve/$file ]] || fail "no curve/$file"
done
equal "$(wc -l <curve/cluster.csv)" "$(value curve.json 'len(r["points"]) + 1')"
equal "$(value curve.json 'all(p["hosts"] == max(1, p["accelerators"] // 2) for p in r["points"])')" True
equal "$(value curve.json 'all(a["au"] >= b["au"] - 0.01 for a, b in zip(r["points"], r["points"][1:]))')" True
run 2 predict --gpus 4 --hosts 2 --sweep gpus=1..$most -o curve
contains "$err" "cluster.csv exists"
run 0 predict --gpus 4 --hosts 2 --sweep gpus=2,4 -o curve -f
equal "$(wc -l <curve/cluster.csv)" 3
# The same seed, the same figures.
run 0 predict --gpus 40 --hosts 4 --json=a.json
run 0 predict --gpus 40 --hosts 4 --json=b.json
equal "$(value a.json 'r["points"]')" "$(value b.json 'r["points"]')"

# The script of published results, on made-up ones.
cat >published.csv <<'END'
path,submitter,workload,accel,num_accelerators,num_hosts,au_mean,throughput_samples_s
Closed/Made/results/up/a,Closed/Made,unet3d,h100,4,1,93.0,80
Closed/Made/results/up/b,Closed/Made,unet3d,h100,2,1,97.0,42
END
run 0 python3 "$REPRISE_SOURCE_DIR/tests/bench/cluster/mlperf.py" published.csv --reprise "$REPRISE"
contains "$out" "| Made up | unet3d H100, 4 on 1 | unet3d H100, 2 on 1 | 97.0 %"
contains "$out" "| same workload and accelerator | 1 |"
finish
