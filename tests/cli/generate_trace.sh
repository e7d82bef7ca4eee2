#!/usr/bin/env bash
# A generated unet3d beside a trace of DLIO's: the same calls for each sample, with the same offsets and sizes; and, with
# the trace's service times, the same utilisation of the accelerators in each epoch.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
trace=$(trace dftracer/dlio_unet3d_hdf5_8ranks) || skip "no trace dftracer/dlio_unet3d_hdf5_8ranks; set REPRISE_TRACES"
cd "$tmp" || exit 1
cat >unet3d.ini <<'END'
[unet3d]
format=hdf5
samples=168
samples_per_file=1
sample_size=146579449
batch=4
gpus=8
loader_workers=6
epochs=5
shuffle=full
compute=1.3604s
END
run 0 "$REPRISE" generate -q unet3d.ini -o made.oplog
run 0 "$REPRISE" import -q "$trace"/*.pfw.gz -o dlio.oplog
for log in made dlio; do
    run 0 "$REPRISE" dump --json --only dataset "$log.oplog"
    cp "$out" "$log.json"
done
python3 - <<'END' || fail "the calls differ"
import collections, json
def samples(name):
    """How often each sequence of calls between an open and a close of a sample's file comes."""
    open_now, found = {}, collections.Counter()
    for line in open(name, encoding="utf-8"):
        op = json.loads(line)
        kind, task = op.get("kind") or op.get("op"), op["task"]
        if kind == "open":
            open_now[task] = []
        elif kind == "pread" and task in open_now:
            open_now[task].append((op["offset"], op["size"]))
        elif kind == "close" and open_now.get(task):
            found[tuple(open_now.pop(task))] += 1
    return found
made, dlio = samples("made.json"), samples("dlio.json")
assert sum(made.values()) == sum(dlio.values()) == 800, (sum(made.values()), sum(dlio.values()))
assert len(made) == 1, made
# Which of two headers is read first differs from open to open.
reads = sorted(next(iter(made)))
same = sum(count for each, count in dlio.items() if sorted(each) == reads)
assert same == 800, dlio.most_common(3)
END

# Utilisation, the first step of each epoch left out, in virtual time. First the trace with its own service times; then a job that
# does what the trace shows: each rank reads its files itself, in order, and takes 28.6 ms for each from the read to the close; then
# the job that is fitted to the trace.
cat >own.ini <<'END'
[unet3d]
format=hdf5
samples=160
samples_per_file=1
sample_size=146579449
batch=4
gpus=8
loader_workers=0
epochs=5
decode=28.6ms
compute=1.3618s
END
run 0 "$REPRISE" generate -q own.ini -o own.oplog
run 0 "$REPRISE" predict -q dlio.oplog --service recorded -o as-recorded.oplog
contains "$out" "service times: as recorded"
run 0 "$REPRISE" predict -q own.oplog --service dlio.oplog -o drawn.oplog
contains "$out" "service times: drawn from dlio.oplog"
run 0 "$REPRISE" fit dlio.oplog -o fitted.ini
grep -q '^decode=lognormal(29' fitted.ini || fail "time between the calls of a loader: $(grep decode fitted.ini)"
run 0 "$REPRISE" generate -q fitted.ini -o fitted.oplog
run 0 "$REPRISE" predict -q fitted.oplog --service dlio.oplog -o drawn-fitted.oplog
for log in as-recorded drawn drawn-fitted; do
    run 0 "$REPRISE" info --json "$log.oplog"
    cp "$out" "$log.json"
done
python3 - <<'END' || fail "the accelerators are not used as much"
import json
TRUE = (45.0, 66.2, 70.9, 71.0, 70.8)
for name, points in (("as-recorded", 0.1), ("drawn", 3.0), ("drawn-fitted", 3.0)):
    epochs = json.load(open(name + ".json"))["summary"]["devices"][0]["epochs"]
    found = [100 * epoch["au_mlperf"] for epoch in epochs]
    print(f"AU by epoch, {name}:", *(f"{au:.1f}" for au in found), "of", *TRUE)
    assert len(found) == 5 and all(abs(au - true) <= points for au, true in zip(found, TRUE)), (name, found)
END
finish
