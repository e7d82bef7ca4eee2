#!/usr/bin/env bash
# analyze: figures with known answers, what it says is not there, several logs, pages that it does not overwrite.
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE_BUILD_DIR/programs/sample_log" sample sample.oplog
run 0 "$REPRISE" analyze sample.oplog --no-what-if
contains "$out" "INCOMPLETE: the recording lost 2 events"
contains "$out" "not recorded"
run 0 "$REPRISE" analyze sample.oplog
contains "$out" "not computed: the recording lost 2 events, so that causes may be missing"

# One screen, in 120 columns.
for log in resnet bert py_loader_4workers; do
    run 0 "$REPRISE" analyze "$REPRISE_SOURCE_DIR/examples/recorded/$log.oplog" --no-what-if
    [[ $(wc -L <"$out") -le 120 ]] || { fail "$log is $(wc -L <"$out") columns wide"; awk 'length > 120' "$out"; }
    [[ $(wc -l <"$out") -le 60 ]] || fail "$log takes $(wc -l <"$out") lines"
done

# The page: written once, not over something else.
run 0 "$REPRISE" analyze sample.oplog --html a.html
contains "$err" "page: a.html"
head -c 15 a.html | grep -q '^<!doctype html>' || fail "a.html is no page"
[[ $(wc -c <a.html) -lt 5000000 ]] || fail "a.html is too large"
! grep -qE '(src|href)="?https?:' a.html || fail "the page asks the network"
cp a.html before.html
run 2 "$REPRISE" analyze sample.oplog --html a.html
cmp -s a.html before.html || fail "a.html was overwritten"
run 0 "$REPRISE" analyze sample.oplog -o a.html -f
run 2 "$REPRISE" analyze sample.oplog -f -o sample.oplog
run 2 "$REPRISE" analyze sample.oplog --json -o -
run 2 "$REPRISE" analyze sample.oplog -o both --json=both
run 4 "$REPRISE" analyze sample.oplog -o none/a.html
run 0 "$REPRISE" analyze sample.oplog -o -
head -c 15 "$out" | grep -q '^<!doctype html>' || fail "-o - prints no page"
run 2 "$REPRISE" analyze
run 2 "$REPRISE" analyze sample.oplog --hot many
run 3 "$REPRISE" analyze a.html
run 2 "$REPRISE" analyze sample.oplog --only /nowhere
head -c 500 sample.oplog >cut.oplog
run 3 "$REPRISE" analyze cut.oplog

# Side by side; equal names are told apart.
mkdir other && cp sample.oplog other/
run 0 "$REPRISE" analyze sample.oplog other/sample.oplog --no-what-if
contains "$out" "other/sample.oplog"
contains "$out" "elapsed"

command -v python3 >/dev/null || skip "no python3: the JSON was not tried"
# Two files read in order, one after the other, twice: known order, re-use and epochs.
{
    echo "fio version 3 iolog"
    at=0
    for _ in 1 2; do
        for file in a b; do
            echo "$at /data/$file add"; echo "$at /data/$file open"
            for ((i = 0; i < 100; i++)); do echo "$at /data/$file read $((i * 8192)) 8192"; at=$((at + 1)); done
            echo "$at /data/$file close"
        done
    done
} >passes.log
run 0 "$REPRISE" import passes.log -o passes.oplog
run 0 "$REPRISE" analyze passes.oplog --json
cp "$out" passes.json
python3 - <<'END' || fail "the JSON of two passes"
import json
log = json.load(open("passes.json"))["logs"][0]
assert sum(log["over_time"]["read_bytes"]) == log["summary"]["bytes_read"] == 2 * 2 * 100 * 8192
order = log["access_order"]
assert (order["sequential"], order["strided"], order["random"]) == (400, 0, 0), order
reuse = log["reuse"]
assert reuse["first_bytes"] == reuse["again_bytes"] == 2 * 100 * 8192, reuse
assert reuse["longest_distance_bytes"] == (2 * 100 - 1) * 8192, reuse
epochs = log["epochs"]
assert epochs["by"] == "samples" and [row["samples"] for row in epochs["epochs"]] == [200, 200], epochs
assert epochs["epochs"][0]["records"]["order"] == "in order" and epochs["epochs"][1]["as_before"] is True, epochs
assert [row["path"] for row in log["hot_files"]] == ["/data/a", "/data/b"]
assert log["page_cache"]["fetched_bytes"] is None and log["context"] is None and log["memory"] is None
assert any("page cache" in one for one in log["not_recorded"]), log["not_recorded"]
assert len(log["findings"]) <= 3
END

# A recording with a device, accelerators and memory.
run 0 "$REPRISE" analyze "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" --json
cp "$out" resnet.json
run 0 "$REPRISE" info "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" --json
cp "$out" info.json
python3 - <<'END' || fail "the JSON of a recording"
import json
log, info = json.load(open("resnet.json"))["logs"][0], json.load(open("info.json"))
assert log["summary"] == info["summary"]
bounds = log["bounds"]
assert bounds["why_none"] is None
path = bounds["path"]
assert abs(sum(path.values()) - bounds["modelled"]["elapsed_ns"]) < 1e6, bounds
for what in ("infinitely_fast_storage", "infinitely_fast_processor"):
    assert 0 < bounds[what]["elapsed_ns"] < 1.01 * bounds["modelled"]["elapsed_ns"], bounds
assert abs(bounds["modelled"]["elapsed_ns"] / bounds["recorded_ns"] - 1) < 0.1, bounds
assert len(log["findings"]) == 3, log["findings"]
assert log["page_cache"]["read_amplification"] > 0
assert log["epochs"]["epochs"][0]["files"]["order"] == "shuffled", log["epochs"]
END

# The device does not tell files apart: of some of them there is no amplification.
run 0 "$REPRISE" analyze "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" --only dataset --no-what-if --json
equal "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["logs"][0]["page_cache"]["read_amplification"])' <"$out")" None
run 0 "$REPRISE" analyze "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" --only dataset --no-what-if
contains "$out" "read amplification unknown of a part of the files: the device read "

# Published figures.
path=$(trace dftracer/dlio_unet3d_hdf5_8ranks) || skip "no trace dftracer/dlio_unet3d_hdf5_8ranks; set REPRISE_TRACES"
run 0 "$REPRISE" import "$path"/* -o unet3d.oplog
run 0 "$REPRISE" analyze unet3d.oplog --no-what-if --json
cp "$out" unet3d.json
python3 - <<'END' || fail "the Unet3D trace"
import json
log = json.load(open("unet3d.json"))["logs"][0]
reads = [row for row in log["calls"] if row["op"] == "pread"]
assert sum(row["calls"] for row in reads) == 7200, reads
assert sum(row["bytes"] for row in reads) == 117265568800, reads
assert len(log["epochs"]["epochs"]) == 5 and log["epochs"]["by"] == "marks", log["epochs"]
END
finish
