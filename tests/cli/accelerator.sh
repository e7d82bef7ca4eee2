#!/usr/bin/env bash
# A job that plays its own accelerator, recorded and replayed faster: the span of its marks is the device's time. Needs
# root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
# A replay whose result is whole; exit code 1 says that a crowded machine could not keep the time.
replayed() {
    local rc=0
    "$@" >"$out" 2>"$err" || rc=$?
    [[ $rc -le 1 ]] || fail "exit code $rc: $*"
}
cd "$tmp" || exit 1

# What makes no sense is said in one sentence.
golden=$REPRISE_SOURCE_DIR/tests/golden/v1.oplog
for bad in "--gpus 0" "--gpus two" "--gpu-model 1s" "--pace causal --gpu-model gamma(1,1)" \
    "--pace causal --gpu-model normal(1)" "--pace causal --gpu-speed 0"; do
    # shellcheck disable=SC2086
    run 2 "$REPRISE" replay "$golden" --root "$tmp" --allow-loss $bad
    contains "$err" "--gpu"
done
run 2 "$REPRISE" prepare "$golden" --root "$tmp/x" --gpus 0
command -v python3 >/dev/null || skip "no python3"
can_record || skip "this machine cannot record"

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
    TMPDIR=$tmp/none replayed "$REPRISE" replay job.oplog --root root --pace causal --gpu-speed "$speed" --json="$speed.json" -o "$speed.oplog"
    [[ $speed == 1 ]] || head -n 1 "$out" | grep -qx "what-if: --gpu-speed $speed; not the job as recorded" || fail "the first line: $(head -n 1 "$out")"
    "$REPRISE" dump --json "$speed.oplog" >"$speed.dump" || fail "no dump of the run"
    "$REPRISE" info --json "$speed.oplog" >"$speed.info" || fail "no summary of the run"
done
# Busy for a second, half, a quarter of it, and nothing but the device is waited for. The shortest wait of five tells,
# as the machine may be crowded.
python3 - <<'END' || fail "the times of the replays"
import json
for speed in (1, 2, 4):
    run = json.load(open("%d.json" % speed))
    [device] = run["accelerators"]
    # What the run said as it went is what its log says.
    assert run["accelerators"] == json.load(open("%d.info" % speed))["summary"]["devices"], device
    busy = device["busy_ns"] * 1e-9
    assert 1.0 / speed <= busy < 2.0 / speed, (speed, busy)
    assert device["submits"] == 5 and device["steps"]["count"] == 5 and device["steps"]["by"] == "span", device
    assert abs(device["au"] - busy / run["elapsed_s"]) < 0.02, (device, run["elapsed_s"])
    assert device["steps"]["p50_ns"] >= 0.2e9 / speed, device
    assert run["au_mlperf"] >= run["au"], run["au"]
    ops = [json.loads(line) for line in open("%d.dump" % speed)]
    waits = [op["duration"] * 1e-9 for op in ops if op["kind"] == "gpu_wait"]
    print(speed, run["elapsed_s"], waits)
    assert len(waits) == 5 and 0.19 / speed <= min(waits) <= 0.3 / speed, waits
END
cat "$out"

# Two such ranks in step, each with another step time, and files of its own to write.
replayed "$REPRISE" replay job.oplog --root root --pace causal --gpus 2 --gpu-model "normal(20ms,10ms)" --json=two.json -q
lacks "$out" "note: "
# A root prepared for the copies is the recording's, whether one or two are replayed.
run 0 "$REPRISE" prepare job.oplog --root copies --gpus 2
replayed "$REPRISE" replay job.oplog --root copies --gpus 2 --json=copies.json
replayed "$REPRISE" replay job.oplog --root copies --json=copy.json
python3 - <<'END' || fail "two copies"
import json
run = json.load(open("two.json"))
assert len(run["accelerators"]) == 2 and run["gpus"] == "2", run["accelerators"]
assert len({device["busy_ns"] for device in run["accelerators"]}) == 2, run["accelerators"]
one = json.load(open("1.json"))
assert run["processes"] == 2 * one["processes"], run["processes"]
assert run["mismatches"] <= 2 * one["mismatches"], run["examples"]
assert any(counter["name"] == "steps_in_step" and counter["count"] == 5 for counter in run["counters"])
END
# A changed job has nothing recorded beside its accelerators; and where they took no time, there is no AU.
printf '[t]\nformat=npz\nsamples=40\nsample_size=100KiB\nbatch=8\nloader_workers=1\nepochs=2\ncompute=2ms\n' >ck.ini
run 0 "$REPRISE" generate ck.ini -q -o ck.oplog
run "0 1" "$REPRISE" replay ck.oplog --engine null --json=plain.json
run "0 1" "$REPRISE" replay ck.oplog --engine null --gpu-model 1ms --json=changed.json
run "0 1" "$REPRISE" replay ck.oplog --engine null --pace afap -o af.oplog
run 0 "$REPRISE" analyze af.oplog --no-what-if --json=af.json
run 0 "$REPRISE" analyze ck.oplog --no-what-if --json=ck.json
run 0 python3 - <<'END'
import json
plain, changed = (json.load(open(name))["verdict"] for name in ("plain.json", "changed.json"))
assert plain["recorded"]["au"] > 0.9 and plain["here"]["au"] is not None, plain
assert changed["recorded"]["au"] is None and changed["here"]["au"] is not None, changed
af, ck = (json.load(open(name))["logs"][0]["summary"]["au_mlperf"] for name in ("af.json", "ck.json"))
assert af is None and ck is not None, (af, ck)
END
finish
