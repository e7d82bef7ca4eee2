#!/usr/bin/env bash
# Job files: what generate says, and what prepare, replay, predict, analyze and sweep make of its logs.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
jobs=$REPRISE_SOURCE_DIR/examples/jobs

run 0 "$REPRISE" generate --words --markdown
cmp -s "$out" "$REPRISE_SOURCE_DIR/docs/job-words.md" ||
    fail "docs/job-words.md is not current: reprise generate --words --markdown > docs/job-words.md"

# Every job of the library, small.
for job in "$jobs"/*.ini; do
    run 0 "$REPRISE" generate "$job" --shrink 1000000 -o one.oplog -f
    contains "$out" "is shrunk"
    run 0 "$REPRISE" generate "$job" --show
    cp "$out" shown.ini
    run 0 "$REPRISE" generate shown.ini --show
    cmp -s "$out" shown.ini || fail "$job: --show of what --show printed differs"
done

cat >job.ini <<'END'
[train]
format=npz
samples=40
sample_size=uniform(20k,60k)
batch=2
gpus=2
loader_workers=2
shuffle=full
epochs=2
compute=2ms
checkpoint_every=1epoch
checkpoint_size=1m

[other]
rw=randread
size=1m
ioengine=io_uring
iodepth=8
END
run 0 "$REPRISE" generate job.ini -o job.oplog --json=job.json
contains "$out" "[train]  40 files"
contains "$out" "20 steps"
python3 - <<'END' || fail "job.json"
import json
job = json.load(open("job.json", encoding="utf-8"))
train, other = job["sections"]
assert train["steps"] == 20 and train["files"] == 40 and other["steps"] == 0, job
assert job["bytes_read"] == 2 * train["file_bytes"] + (1 << 20) and job["bytes_written"] == 2 << 20, job
END
# Figures of several accelerators.
run 0 "$REPRISE" generate "$jobs/unet3d.ini" --show
contains "$out" "compute=323ms"
contains "$out" "batch=7"
run 0 "$REPRISE" generate "$jobs/unet3d.ini" --accelerator V100 --show
contains "$out" "accelerator=V100"
contains "$out" "compute=1.3604s"
contains "$out" "batch=4"
run 3 "$REPRISE" generate "$jobs/unet3d.ini" --accelerator H10 --show
contains "$err" "has no figures of --accelerator H10; did you mean H100"
run 3 "$REPRISE" generate job.ini --accelerator H100 --show
contains "$err" "job.ini: has no figures of an accelerator"
run 2 "$REPRISE" generate job.ini --accelerator "" --show

# What prints and stops writes nothing: -o beside it is a mistake.
for option in --show --words; do
    run 2 "$REPRISE" generate job.ini $option -o shown.oplog
    contains "$err" "$option prints and stops: nothing would be written to shown.oplog"
    run 2 "$REPRISE" generate job.ini $option --diagram shown.svg
done
# What becomes another distribution is refused; little of it is said, as is a checkpoint that is never due.
printf '[t]\nformat=npz\nsamples=1000\nsample_size=normal(1k,10k)\nbatch=10\n' >clipped.ini
run 3 "$REPRISE" generate clipped.ini -o clipped.oplog
contains "$err" "clipped.ini:4: sample_size=normal(1k,10k) is below 1 in 46.0 % of all draws, which would become 1"
[[ ! -e clipped.oplog ]] || fail "a log was written"
printf '[t]\nformat=npz\nsamples=1000\nsample_size=normal(10k,5k)\nbatch=10\ncheckpoint_every=101\ncheckpoint_size=1m\n' >clipped.ini
run 0 "$REPRISE" generate clipped.ini -o clipped.oplog --json=clipped.json
contains "$out" " of 1,000 draws were below 1 and became 1."
contains "$out" "note: [t] writes no checkpoint: checkpoint_every=101, and the job has 100 steps."
python3 -c 'import json; assert len(json.load(open("clipped.json"))["notes"]) == 2' || fail "notes of clipped.json"

run 0 "$REPRISE" prepare -q job.oplog --root root
run 0 "$REPRISE" replay job.oplog --root root -o run.oplog
contains "$out" "job         SAME"
contains "$out" ", computed "
run 0 "$REPRISE" info job.oplog
contains "$out" "AU (MLPerf)"
run 0 "$REPRISE" analyze job.oplog --no-what-if
storage_model model.json
run 0 "$REPRISE" predict job.oplog --storage model.json
run 0 "$REPRISE" compare job.oplog run.oplog

run 0 "$REPRISE" generate job.ini --diagram job.svg
python3 - <<'END' || fail "job.svg"
import xml.etree.ElementTree as tree
words = [each.text for each in tree.parse("job.svg").iter("{http://www.w3.org/2000/svg}text")]
for wanted in ("[train]", "40 files", "2 loader threads, each rank", "2 accelerators, 2 ranks", "checkpoint 1.00 MiB", "8 requests in flight"):
    assert wanted in words, (wanted, words)
END
run 2 "$REPRISE" generate job.ini --diagram job.svg
contains "$err" "exists"
run 2 "$REPRISE" generate job.ini --diagram other.svg -o job.oplog
contains "$err" "job.oplog exists"
[[ ! -e other.svg ]] || fail "a picture was drawn for a log that is not written"

# The same job, the same log.
run 0 "$REPRISE" generate job.ini -o again.oplog -q
run 0 "$REPRISE" dump job.oplog
cp "$out" one.txt
run 0 "$REPRISE" dump again.oplog
cmp -s "$out" one.txt || fail "a second log of the same job differs"

# Mistakes.
run 2 "$REPRISE" generate job.ini
contains "$err" "-o is required"
run 2 "$REPRISE" generate
contains "$err" "no job file"
run 2 "$REPRISE" generate job.ini -o job.oplog
contains "$err" "exists"
run 2 "$REPRISE" generate job.ini --shrink 0.5 -o x.oplog
contains "$err" "--shrink must be 1 or more"
run 3 "$REPRISE" generate missing.ini -o x.oplog
contains "$err" "cannot be read"
run 3 "$REPRISE" generate . -o x.oplog
contains "$err" "cannot be read: Is a directory"
run 3 "$REPRISE" generate /dev/zero -o x.oplog
contains "$err" "is no job file: it is too large"
printf '[r]\nrw=randread\nsize=40g\n' >long.ini
"$REPRISE" generate -q long.ini -o twice.oplog &
first=$!
for _ in $(seq 100); do [[ -s twice.oplog.partial ]] && break; sleep 0.02; done
run 4 "$REPRISE" generate -q long.ini -o twice.oplog -f
contains "$err" "twice.oplog.partial is being written by another reprise"
wait "$first" || fail "the first of two writers ended with $?"
if [[ $(id -u) == 0 ]] && mkdir full && mount -t tmpfs -o size=256k tmpfs full 2>/dev/null; then
    run 4 "$REPRISE" generate long.ini -o full/x.oplog
    contains "$err" "No space left"
    [[ -z $(ls full) ]] || fail "left on a full disk: $(ls full)"
    umount full
fi
printf '[s]\nrw=read\nsise=1m\n' >wrong.ini
run 3 "$REPRISE" generate wrong.ini -o x.oplog
contains "$err" "wrong.ini:3: 'sise' is not known; did you mean size"
[[ ! -e x.oplog && ! -e x.oplog.partial ]] || fail "a log of a wrong job file"
finish
