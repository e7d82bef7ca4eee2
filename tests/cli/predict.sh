#!/usr/bin/env bash
# predict and calibrate --storage from outside: a model measured here, a recorded job in virtual time, what is refused.
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

run 0 "$REPRISE" calibrate --storage "$tmp" -o model.json
contains "$out" "parallel reads"
contains "$out" "requests per second"
for key in reads_per_s writes_per_s read_burst_ns read_step_ns read_ahead_bytes request_bytes dirty_background_bytes dirty_bytes dirty_expire_ns open_cold_ns close_ns ioctl_ns fstat_ns change_ns list_ns list_name_ns list_cold_ns write_part_ns write; do
    grep -q "^  \"$key\":" model.json || fail "model.json has no $key"
done
read_ahead=$(cat "/sys/class/bdi/$(mountpoint -d "$(df --output=target . | tail -n 1)")/read_ahead_kb" 2>/dev/null)
[[ -z $read_ahead ]] || grep -q "\"read_ahead_bytes\": $((read_ahead << 10))," model.json || fail "read-ahead: $(grep read_ahead model.json)"
grep -q '"storage_model": 2' model.json || fail "no model was written"
grep -qF "\"file_system\": \"$(df --output=fstype . | tail -n 1)\"" model.json || fail "the file system: $(grep file_system model.json)"
grep -qF "\"device\": \"$(df --output=source . | tail -n 1)\"" model.json || fail "the device: $(grep device model.json)"
contains "$out" ": $(df --output=fstype . | tail -n 1) on "
[[ -z $(find . -name 'reprise-storage-*') ]] || fail "calibrate left its folder behind"
# What a killed one leaves, the next one removes; not what another one uses, or what is somebody's own.
mkdir left left/reprise-storage-of-mine
"$REPRISE" calibrate --storage left >/dev/null 2>&1 &
killed=$!
for _ in $(seq 100); do compgen -G 'left/reprise-storage-??????' >/dev/null && break; sleep 0.05; done
kill -KILL $killed
wait $killed 2>/dev/null
behind=$(compgen -G 'left/reprise-storage-??????') || fail "nothing was left to remove"
mkdir left/reprise-storage-in_use
flock -F left/reprise-storage-in_use sleep 60 &
user=$!
for _ in $(seq 100); do flock -n left/reprise-storage-in_use true || break; sleep 0.05; done
"$REPRISE" calibrate --storage left -o left.json >/dev/null 2>&1 &
next=$!
for _ in $(seq 200); do [[ -e $behind ]] || break; sleep 0.05; done
sleep 0.5 # it has its own folder
run 4 "$REPRISE" calibrate --storage . -o left.json
contains "$err" "left.json is being written by another reprise"
kill $next
wait $next 2>/dev/null
equal "$(echo left/*)" "left/reprise-storage-in_use left/reprise-storage-of-mine"
[[ ! -e left.json ]] || fail "an interrupted calibrate wrote a model"
kill $user
wait $user 2>/dev/null
run 4 "$REPRISE" calibrate --storage "$tmp/none"
contains "$err" "no folder can be made there"

# Beside the machine of a recording.
run 0 "$REPRISE" calibrate -q --compare "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog"
grep -Eq '^one thread: [0-9]+\.[0-9]{3} x the speed of .+, \+/- [0-9]+ %$' "$out" || fail "no comparison: $(cat "$out")"

# What lives in memory is measured, and said to be memory.
mkdir memory
if [[ -n ${REPRISE_SANITIZE:-} ]]; then
    echo "with a sanitizer, no tmpfs is measured"
elif mount -t tmpfs -o size=600m tmpfs memory 2>/dev/null; then
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
for key in elapsed_s recorded_s ops async_depth au stall_s storage_reads touched_pages touches_hidden computing_s not_modelled took_s elapsed_interval_s critical_path; do
    grep -q "^  \"$key\":" result.json || fail "result.json has no $key"
done
run 0 "$REPRISE" info run.oplog
contains "$out" "source       predict"
# A recording of mapped files that were in memory cannot tell which pages were used.
touch_pages() { # in memory or not
    python3 - "$1" <<'END'
import os, sys
with open("mapped", "rb") as file:
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if sys.argv[1] == "warm":
        while file.read(1 << 20):
            pass
END
    run 0 "$REPRISE" capture -q -f -o mapped.oplog -- python3 -c 'import mmap, os
fd = os.open("mapped", os.O_RDONLY)
data = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
print(sum(data[at] for at in range(0, len(data), 65536)))'
    run 0 "$REPRISE" predict mapped.oplog --storage model.json --json=mapped.json -f
}
if can_record && [[ $(stat -f -c %T .) != tmpfs ]]; then
    head -c 16M /dev/urandom >mapped
    touch_pages warm
    contains "$out" "trust POOR: mapped files were in memory when recorded: not all their pages are known (record cold)"
    grep -q '"touches_hidden": true' mapped.json || fail "pages that are not known are not told"
    touch_pages cold
    contains "$out" " touched; simulated in "
    lacks "$out" "mapped files were in memory"
    grep -q '"touches_hidden": false' mapped.json || fail "pages that are known are not"
    touched=$(sed -n 's/.*"touched_pages": \([0-9]*\),.*/\1/p' mapped.json)
    [[ ${touched:-0} -ge 100 ]] || fail "pages that faulted: $touched"
    # Nor which pages of those that came with a fault, where they do not come with it.
    lacks "$out" "around page faults"
    run 0 "$REPRISE" predict mapped.oplog --storage model.json --read-ahead 4K
    contains "$out" "trust POOR: files are read 4.00 KiB ahead here, and at least "
    lacks "$out" "95 %"
    run 0 "$REPRISE" predict mapped.oplog --storage model.json --read-ahead 4K --cache warm
    lacks "$out" "around page faults"
    run 0 "$REPRISE" info --json mapped.oplog
    [[ ! -e /sys/class/bdi ]] || contains "$out" '"capture.read_ahead_bytes": '
else
    echo "no recording here: predictions of recorded page faults are not tested"
fi

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
# What the model measured in memory is not storage, and a prediction is not a run.
# Other tests may use the disk meanwhile.
sed -i 's/"disturbed": [0-9.]*/"disturbed": 0/' model.json
sed 's/"cold": [a-z]*/"cold": false/' model.json >in-memory.json
sed 's/"cold": [a-z]*/"cold": true/' model.json >on-storage.json
run 0 "$REPRISE" predict -q "$log" --storage in-memory.json --json=in-memory-result.json -o in-memory.oplog
head -n 2 "$out" | grep -qF "trust POOR: the storage model was measured in memory" || { fail "the first lines"; cat "$out"; }
contains in-memory-result.json '"storage_model_cold": false'
run 0 "$REPRISE" compare "$log" in-memory.oplog
head -n 1 "$out" | grep -q '^PREDICTION: B is a prediction, not a run; the storage model was measured in memory' || { fail "the first line"; cat "$out"; }
contains "$out" "trust       POOR  the storage model was measured in memory"
run 0 "$REPRISE" predict "$log" --storage on-storage.json -o on-storage.oplog
contains "$out" "trust GOOD: "
run 0 "$REPRISE" compare on-storage.oplog "$log"
equal "$(head -n 1 "$out")" "PREDICTION: A is a prediction, not a run."
# A slower device takes longer; nothing is fetched where all is cached.
elapsed() { sed -n 's/^  "elapsed_s": \([0-9.]*\),*/\1/p' "$1"; }
sed -E 's/"read_bytes_per_s": [^,]*/"read_bytes_per_s": 2e6/' model.json >slow.json
run 0 "$REPRISE" predict "$log" --storage slow.json --json=slow-result.json
awk "BEGIN { exit !($(elapsed slow-result.json) > $(elapsed result.json) + 10) }" || fail "a slow device changes nothing: $(elapsed slow-result.json) s, $(elapsed result.json) s"
run 0 "$REPRISE" predict "$log" --storage slow.json --cache warm
contains "$out" "storage: 0 reads, 0 B"
run 0 "$REPRISE" predict "$log" --storage model.json --cpu-speed 2 --time-scale 0.5 -o faster.oplog
equal "$(head -n 1 "$out")" "what-if: --time-scale 0.5 --cpu-speed 2; not the job as recorded"
run 0 "$REPRISE" compare "$log" faster.oplog --tolerance results=none
equal "$(head -n 1 "$out")" "what-if: --time-scale 0.5 --cpu-speed 2; not the job as recorded"

run 2 "$REPRISE" predict "$log"
contains "$err" "calibrate --storage"
run 2 "$REPRISE" predict "$log" --storage model.json --gpu-speed 0
run 2 "$REPRISE" predict run.oplog --storage model.json -o run.oplog
run 3 "$REPRISE" predict "$REPRISE_SOURCE_DIR/tests/golden/v1.oplog" --storage model.json
contains "$err" "--allow-loss"
# What is left out of this one has sizes beyond measure.
run 1 "$REPRISE" predict "$REPRISE_SOURCE_DIR/tests/golden/v1.oplog" --storage model.json --allow-loss
sed 's/"cold"/"warmth"/' model.json >bad.json
run 3 "$REPRISE" predict "$log" --storage bad.json
contains "$err" "bad.json:/cold"
run 3 "$REPRISE" predict "$log" --storage "$log"
finish
