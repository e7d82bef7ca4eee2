#!/usr/bin/env bash
# A job that plays its own accelerator, recorded and replayed faster: the span of its marks is the device's time. Needs
# root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
command -v python3 >/dev/null || skip "no python3"
"$REPRISE" capture --check >/dev/null 2>&1 || skip "this machine cannot record"

head -c 65536 /dev/zero >data
cat >job.py <<'END'
import sys, time
import reprise  # capture --torch leads to it
file = open("data", "rb", buffering=0)
for step in range(5):
    file.read(4096)
    reprise.begin("accelerator", step)
    time.sleep(0.2)
    reprise.end("accelerator", step)
END
run 0 "$REPRISE" capture --torch -o job.oplog -- python3 job.py
run 0 "$REPRISE" dump job.oplog
equal "$(grep -c gpu_submit "$out")" 5
equal "$(grep -c gpu_wait "$out")" 5
run 0 "$REPRISE" info job.oplog --json
cp "$out" info.json
python3 - info.json <<'END' || fail "what info says of the accelerator"
import json, sys
row = json.load(open(sys.argv[1]))["summary"]["devices"]
assert len(row) == 1, row
assert 1.0 <= row[0]["busy_ns"] * 1e-9 < 2.0, row
END
run 0 "$REPRISE" prepare job.oplog --root root
for speed in 1 2 4; do
    run 0 "$REPRISE" replay job.oplog --root root --pace causal --gpu-speed "$speed" --json "$speed.json"
done
# Busy for a second, half, a quarter of it; the rest of the job is the same in all three. Loose: the machine is crowded.
python3 - <<'END' || fail "the times of the replays"
import json
took = {s: json.load(open("%d.json" % s))["elapsed_s"] for s in (1, 2, 4)}
print(took)
assert took[1] >= 1.0, took
assert took[1] - took[2] > 0.25, took
assert took[2] - took[4] > 0.12, took
for speed in took:
    run = json.load(open("%d.json" % speed))
    [device] = run["accelerators"]
    assert device["submits"] == 5 and device["steps"]["count"] == 5 and device["steps"]["by"] == "span", device
    assert abs(device["au"] - device["busy_ns"] * 1e-9 / run["elapsed_s"]) < 0.02, (device, run["elapsed_s"])
    assert device["steps"]["p50_ns"] >= 0.2e9 / speed, device
    assert run["au_mlperf"] >= run["au"], run["au"]
END
cat "$out"
finish
