#!/usr/bin/env bash
# Job files with workload=: a key-value cache in open loop, loading a model, pre-processing; each prepared, replayed and
# predicted.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

cat >kv.ini <<'END'
[global]
workload=kv-cache
num_hidden_layers=2
num_key_value_heads=1
head_dim=64
block_tokens=16
kv_capacity=1MiB
prompt_tokens=uniform(32,400)
output_tokens=20
request_rate=100
requests=60
prefill=5us
decode_step=500us
concurrency=4
[slots]
[files]
kv_layout=files
ioengine=io_uring
iodepth=8
save_decode_cache=1
END
cat >load.ini <<'END'
[global]
workload=model-load
model_size=3m
model_files=2
tensors=5
[mmap]
[read]
load_by=read
bs=64k
load_split=slices
ranks=2
[eager]
load_by=eager
load_split=files
ranks=2
stonewall
END
cat >prep.ini <<'END'
[global]
samples=20
sample_size=lognormal(20k,10k)
workers=3
bs=16k
[convert]
workload=convert
samples_per_file=6
shuffle=full
end_fsync=1
[tokenize]
workload=tokenize
samples_per_file=7
output_ratio=50
[keep]
workload=decode-cache
output_ratio=300
epochs=3
END
storage_model model.json
for job in kv load prep; do
    run 0 "$REPRISE" generate $job.ini -o $job.oplog --json=$job.json
    run 0 "$REPRISE" prepare -q $job.oplog --root $job.root
    run "0 1" "$REPRISE" replay $job.oplog --root $job.root --json=$job.run.json
    contains "$out" "job         SAME"
    run 0 "$REPRISE" predict $job.oplog --storage model.json --json=$job.predicted.json
    run 0 "$REPRISE" info $job.oplog
    run 0 "$REPRISE" generate $job.ini --shrink 100 -o small.oplog -f
    contains "$out" "is shrunk"
    run 0 "$REPRISE" generate $job.ini --show
    cp "$out" shown.ini
    run 0 "$REPRISE" generate shown.ini --show
    cmp -s "$out" shown.ini || fail "$job: --show of what --show printed differs"
    run 0 "$REPRISE" generate $job.ini --diagram $job.svg
done
python3 - <<'END' || fail "what the jobs did"
import json
def load(name):
    return json.load(open(name, encoding="utf-8"))
for name in ("kv.run.json", "kv.predicted.json"):
    loops = {each["name"]: each for each in load(name)["open_loops"]}
    assert sorted(loops) == ["files", "slots"], loops
    for each in loops.values():
        assert each["requests"] == 60 and each["not_done"] == 0, each
        assert each["from_due_us"]["p50"] >= each["from_begin_us"]["p50"], each
kv = {each["name"]: each for each in load("kv.json")["sections"]}
block = 2 * 2 * 1 * 64 * 2 * 16
assert kv["slots"]["file_bytes"] == kv["files"]["file_bytes"] == (1 << 20) // block * block, kv
assert kv["slots"]["files"] == 1 and kv["files"]["files"] == (1 << 20) // block, kv
run = load("kv.run.json")
assert run["bytes_read"] % block == 0 and run["bytes_written"] % block == 0, run
prep = load("prep.json")
assert [each["files"] for each in prep["sections"]] == [20, 20, 20], prep
END

printf '[k]\nworkload=kv-cash\n' >wrong.ini
run 3 "$REPRISE" generate wrong.ini -o x.oplog
contains "$err" "workload= cannot be 'kv-cash'; did you mean kv-cache"
finish
