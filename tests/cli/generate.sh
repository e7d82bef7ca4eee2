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
    # All that its tasks wait for is kept.
    case $job in
        */llama3-1t* | */llama3-405b*) ;;  # as the smaller ones, with many processes
        *)
            run "0 1" "$REPRISE" replay one.oplog --engine null --pace afap
            lacks "$out" "edges_against_time"
            lacks "$err" "edges_against_time"
            contains "$out" "job         SAME"
            ;;
    esac
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
# Computed times are those of memory.
if grep -q '^time .*, computed [^;]*%' "$out"; then fail "a percentage beside a computed time"; fi
run 0 "$REPRISE" info job.oplog
contains "$out" "AU (MLPerf)"
run 0 "$REPRISE" analyze job.oplog --no-what-if
storage_model model.json
run 0 "$REPRISE" predict job.oplog --storage model.json
run 0 "$REPRISE" compare job.oplog run.oplog

# Ranks that read and feed nobody are so by the job file.
printf '[load]\nworkload=model-load\nmodel_size=32MiB\nmodel_files=4\ntensors=20\nload_by=read\nload_split=slices\nranks=4\nbs=1MiB\n' >load.ini
run 0 "$REPRISE" generate -q load.ini -o load.oplog
run 0 "$REPRISE" info load.oplog
lacks "$out" "no consumer was found"

run 0 "$REPRISE" generate job.ini --diagram job.svg
python3 - <<'END' || fail "job.svg"
import xml.etree.ElementTree as tree
words = [each.text for each in tree.parse("job.svg").iter("{http://www.w3.org/2000/svg}text")]
for wanted in ("[train]", "40 files", "2 loader threads, each rank", "2 accelerators, 2 ranks", "checkpoint 1.00 MiB", "8 requests in flight"):
    assert wanted in words, (wanted, words)
END
# Words stay within their boxes.
printf '[t]\nformat=npz\ndirectory=/a/folder/that/lies/deeper/than/most/others\nsamples=4096\nsample_size=1k\ngpus=1024\naccelerator=H100\ncompute.H100=1ms\n' >wide.ini
run 0 "$REPRISE" generate wide.ini --diagram wide.svg
python3 - <<'END' || fail "wide.svg"
import xml.etree.ElementTree as tree
top = tree.parse("wide.svg").getroot()
space = "{http://www.w3.org/2000/svg}"
boxes = [[int(each.get(name)) for name in ("x", "y", "width", "height")] for each in top.iter(space + "rect")]
inside = 0
for text in top.iter(space + "text"):
    x, y = int(text.get("x")), int(text.get("y"))
    for left, upper, width, height in boxes:
        if text.get("class") in ("title", "line") and left <= x < left + width and upper <= y < upper + height:
            inside += 1
            assert x + len(text.text) * (8 if text.get("class") == "title" else 6.6) <= left + width, text.text
    assert text.get("class") != "on" or not any(other.get("class") == "name" and abs(int(other.get("y")) - y) < 12 for other in top.iter(space + "text"))
words = [each.text for each in top.iter(space + "text")]
assert inside > 8 and "1,024 accelerators (H100), 1,024 ranks" in words, words
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
contains "$err" "twice.oplog is being written by another reprise"
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
