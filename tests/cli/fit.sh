#!/usr/bin/env bash
# reprise fit: a job file from a log, and back.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
recorded=$REPRISE_SOURCE_DIR/examples/recorded

cat >job.ini <<'END'
[demo]
directory=/data/demo
format=npz
samples=400
sample_size=120KiB
batch=4
gpus=2
ranks=2
loader_workers=2
prefetch=3
shuffle=full
epochs=2
compute=5ms
decode=1ms
checkpoint_every=20
checkpoint_size=2MiB
checkpoint_mode=sharded
checkpoint_bs=256KiB
END
run 0 "$REPRISE" generate -q job.ini -o job.oplog
run 0 "$REPRISE" fit job.oplog -o fitted.ini
contains "$out" "[demo]  data in /data/demo"
contains "$out" "Could not be seen"
contains "$out" "seed"

# What comes back is the same job.
run 0 "$REPRISE" generate job.ini --show
grep -v seed= "$out" | sort >want.txt
run 0 "$REPRISE" generate fitted.ini --show
grep -v seed= "$out" | sort >found.txt
cmp -s want.txt found.txt || { fail "the fitted job is another one"; diff want.txt found.txt; }

# And its log is performed.
run 0 "$REPRISE" generate -q fitted.ini -o again.oplog
run 0 "$REPRISE" prepare -q again.oplog --root root
run 0 "$REPRISE" replay again.oplog --root root --pace afap
contains "$out" "job         SAME"

# The output: not twice, not the log, and to standard output.
run 2 "$REPRISE" fit job.oplog -o fitted.ini
contains "$err" "exists"
run 0 "$REPRISE" fit -q job.oplog -o fitted.ini -f
empty "$out"
run 2 "$REPRISE" fit job.oplog -o job.oplog -f
contains "$err" "would overwrite job.oplog"
run 4 "$REPRISE" fit job.oplog -o nowhere/fitted.ini
run 0 "$REPRISE" fit job.oplog -o -
cmp -s "$out" fitted.ini || fail "-o - prints another file"

run 0 "$REPRISE" fit job.oplog --json
python3 - "$out" <<'END' || fail "--json"
import json, sys
job = json.load(open(sys.argv[1], encoding="utf-8"))
words = {word["word"]: word for word in job["words"]}
assert words["batch"]["value"] == "4" and words["prefetch"]["value"] == "3" and words["compute"]["value"] == "5ms", words
assert "seed" in [word["word"] for word in job["unseen"]] and job["name"] == "demo" and job["output"] is None, job
END

# A recorded job: guesses are comments.
run 0 "$REPRISE" fit "$recorded/resnet.oplog" -o resnet.ini
contains "$out" "compute_on"
grep -q '^checkpoint_mode=blocking  *; guessed: ' resnet.ini || { fail "checkpoint_mode= is not named as guessed"; cat resnet.ini; }
run 0 "$REPRISE" generate resnet.ini --shrink 100 -o small.oplog
contains "$out" "8 steps"

# What does not train is refused with the reason.
printf '[scan]\nrw=randread\nsize=1m\n' >io.ini
run 0 "$REPRISE" generate -q io.ini -o io.oplog
run 3 "$REPRISE" fit io.oplog -o io2.ini
contains "$err" "no training loop is seen"
[[ ! -e io2.ini ]] || fail "a file was written for a refused log"
cat >kv.ini <<'END'
[kv]
workload=kv-cache
num_hidden_layers=8
num_key_value_heads=4
block_tokens=256
kv_capacity=512MiB
prompt_tokens=lognormal(1500,1600)
output_tokens=lognormal(210,100)
request_rate=4
runtime=15
prefill=50us
decode_step=5ms
END
run 0 "$REPRISE" generate -q kv.ini -o kv.oplog
run 3 "$REPRISE" fit kv.oplog -o kv2.ini
contains "$err" "requests that arrive when they are due: serving, no training"
[[ ! -e kv2.ini ]] || fail "a file was written for a log of a service"
# Reads that feed no rank are none of the job.
printf '[t]\nformat=none\nsteps=50\ncompute=5ms\n[scan]\nrw=read\nsize=8m\n' >apart.ini
run 0 "$REPRISE" generate -q apart.ini -o apart.oplog
run 1 "$REPRISE" fit apart.oplog -o apart2.ini
contains "$out" "the fitted job reads no data, the recording 8.00 MiB, by tasks that feed no rank"
run 3 "$REPRISE" fit "$recorded/pytorch_resnet18_strace.oplog"
contains "$err" "capture --torch"
run 3 "$REPRISE" fit job.ini
run 2 "$REPRISE" fit

# A log that was cut is refused, or fitted as far as it goes.
head -c $(($(stat -c %s job.oplog) * 2 / 3)) job.oplog >cut.oplog
run 3 "$REPRISE" fit cut.oplog
contains "$err" "--recover"

finish
