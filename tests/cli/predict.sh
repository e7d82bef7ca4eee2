#!/usr/bin/env bash
# predict and calibrate --storage from outside: a model measured here, a recorded job in virtual time, what is refused.
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

run 0 "$REPRISE" calibrate --storage "$tmp" -o model.json
contains "$out" "parallel reads"
grep -q '"storage_model": 1' model.json || fail "no model was written"
grep -qF "\"file_system\": \"$(df --output=fstype . | tail -n 1)\"" model.json || fail "the file system: $(grep file_system model.json)"
grep -qF "\"device\": \"$(df --output=source . | tail -n 1)\"" model.json || fail "the device: $(grep device model.json)"
contains "$out" ": $(df --output=fstype . | tail -n 1) on "
[[ -z $(find . -name 'reprise-storage-*') ]] || fail "calibrate left its folder behind"
run 4 "$REPRISE" calibrate --storage "$tmp/none"
contains "$err" "no folder can be made there"

# Beside the machine of a recording.
run 0 "$REPRISE" calibrate -q --compare "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog"
grep -Eq '^one thread: [0-9]+\.[0-9]{3} x the speed of .+, \+/- [0-9]+ %$' "$out" || fail "no comparison: $(cat "$out")"

# What lives in memory is measured, and said to be memory.
mkdir memory
if mount -t tmpfs -o size=600m tmpfs memory 2>/dev/null; then
    run 0 "$REPRISE" calibrate --storage memory -o memory.json
    contains "$err" "warning: memory served the reads, not storage"
    contains "$err" "is tmpfs"
    grep -q '"cold": false' memory.json || fail "a tmpfs is taken for storage"
    umount memory
else
    echo "no tmpfs can be mounted: what memory serves is not tested"
fi

log=$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog
run 0 "$REPRISE" predict "$log" --storage model.json --json=result.json -o run.oplog
contains "$out" "predicted "
for key in elapsed_s recorded_s ops au stall_s storage_reads computing_s took_s; do
    grep -q "^  \"$key\":" result.json || fail "result.json has no $key"
done
run 0 "$REPRISE" info run.oplog
contains "$out" "source       predict"
# No log is written where none is asked for, and the accelerators are those of the log.
"$REPRISE_BUILD_DIR/programs/sample_log" sample gpu.oplog
run 0 "$REPRISE" predict gpu.oplog --allow-loss --storage model.json --json=with.json -o gpu-run.oplog
TMPDIR=$tmp/none run 0 "$REPRISE" predict gpu.oplog --allow-loss --storage model.json --json=without.json
if command -v python3 >/dev/null; then
    run 0 "$REPRISE" info --json gpu-run.oplog
    cp "$out" run.json
    python3 - <<'END' || fail "what predict says of the accelerators is not what its log says"
import json
devices = json.load(open("run.json"))["summary"]["devices"]
assert devices
for name in ("with.json", "without.json"):
    result = json.load(open(name))
    assert result["stall_s"] == sum(device["stall_ns"] for device in devices) / 1e9, (result, devices)
    busy = sum(device["busy_ns"] for device in devices)
    elapsed = sum(device["end_ns"] - device["begin_ns"] for device in devices)
    assert abs(result["au"] - busy / elapsed) < 1e-12, (result, devices)
END
fi
# A slower device takes longer; nothing is fetched where all is cached.
elapsed() { sed -n 's/^  "elapsed_s": \([0-9.]*\),*/\1/p' "$1"; }
sed -E 's/"read_bytes_per_s": [^,]*/"read_bytes_per_s": 2e6/' model.json >slow.json
run 0 "$REPRISE" predict "$log" --storage slow.json --json=slow-result.json
awk "BEGIN { exit !($(elapsed slow-result.json) > 3 * $(elapsed result.json)) }" || fail "a slow device changes nothing"
run 0 "$REPRISE" predict "$log" --storage slow.json --cache warm
contains "$out" "storage: 0 reads, 0 B"

run 2 "$REPRISE" predict "$log"
contains "$err" "calibrate --storage"
run 2 "$REPRISE" predict "$log" --storage model.json --gpu-speed 0
run 2 "$REPRISE" predict run.oplog --storage model.json -o run.oplog
run 3 "$REPRISE" predict "$REPRISE_SOURCE_DIR/tests/golden/v1.oplog" --storage model.json
contains "$err" "--allow-loss"
run 0 "$REPRISE" predict "$REPRISE_SOURCE_DIR/tests/golden/v1.oplog" --storage model.json --allow-loss
sed 's/"cold"/"warmth"/' model.json >bad.json
run 3 "$REPRISE" predict "$log" --storage bad.json
contains "$err" "bad.json:/cold"
run 3 "$REPRISE" predict "$log" --storage "$log"
finish
