#!/usr/bin/env bash
# capture --gpu with a made-up CUPTI and management library in place of NVIDIA's. Needs root, BPF and a C++ compiler.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# What cannot be is said before anything runs.
run 2 "$REPRISE" capture --gpu --pid $$ -o job.oplog
contains "$err" "--gpu requires a command"
REPRISE_CUPTI_LIBRARY=$tmp/nowhere.so run 4 "$REPRISE" capture --gpu -o job.oplog -- touch ran
contains "$err" "the collector libreprise_cupti.so was not found"
contains "$err" "reprise graft"
[[ ! -e ran && ! -e job.oplog.gpu ]] || fail "something was done without the collector"

can_record || skip "this machine cannot record"
fakes=$REPRISE_SOURCE_DIR/tests/capture/fake_cupti
cxx=$(command -v g++ || command -v clang++) || skip "no C++ compiler"
cc=$(command -v gcc || command -v clang) || skip "no C compiler"
warn=(-Wall -Wextra -Werror -O1 -fPIC -shared)
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    run 0 "$compiler" -std=c++20 "${warn[@]}" -I "$fakes" -I "$REPRISE_SOURCE_DIR" -o "collector-$compiler.so" \
        "$REPRISE_SOURCE_DIR/capture/gpu/cupti_collector.cpp" "$fakes/fake_cupti.cpp"
done
run 0 "$cc" "${warn[@]}" -o nvml.so "$fakes/fake_nvml.c"
run 0 "$cc" -Wall -Wextra -Werror -o job "$fakes/job.c" -ldl
REPRISE_CUPTI_LIBRARY=$tmp/collector-$(basename "$cxx").so
export REPRISE_CUPTI_LIBRARY REPRISE_NVML_LIBRARY=$tmp/nvml.so

head -c 8192 /dev/zero >data
# The made-up CUPTI drops one record: what was lost is said first, and the exit code says so, too.
run 1 "$REPRISE" capture --gpu -o job.oplog -- ./job data
head -n 1 "$err" | grep -qF "INCOMPLETE: the recording lost 1 event (1 work_lost)" || fail "lost work is not said first"
contains "$err" "gpu: NVML: device 0 utilisation "
lacks "$err" "device 1"
contains "$err" "gpu: 1 GPU submission and 1 wait in 1 process, clock residual "
contains "$err" "gpu: collected: device 0 busy "
[[ ! -e job.oplog.gpu ]] || fail "the folder of the collector stayed"
grep -aqP '\x06queues\x02' job.oplog || fail "the inferred queues are not kept in the log"
run 0 "$REPRISE" dump --json job.oplog
cp "$out" ops.json
run 0 "$REPRISE" info job.oplog --json
cp "$out" info.json
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "what the log says"
import json
ops = [json.loads(line) for line in open("ops.json")]
[submit] = [op for op in ops if op["kind"] == "gpu_submit"]
[wait] = [op for op in ops if op["kind"] == "gpu_wait"]
[read] = [op for op in ops if op["kind"] == "read" and op.get("size") == 8192]
assert submit["size"] == 30_000_000 - 2000, submit
assert wait["duration"] == 30_000_500 - 5000 and wait["begin"] - submit["begin"] == 5000, wait
assert submit["task"] == wait["task"] == read["task"], (submit, read)
# Launched 40 ms before the job's end, which comes 60 ms after it has read.
assert submit["begin"] > read["begin"], (submit, read)
info = json.load(open("info.json"))
extra = info["header"]["extra"]
assert extra["accelerator.source"] == "cupti" and extra["accelerator.by"] == "clock", extra
assert 0 <= int(extra["accelerator.residual_ns"]) < 1_000_000_000, extra
assert extra["accelerator.clock"].startswith("monotonic"), extra
assert "accelerator.nvml.0" in extra and "accelerator.nvml.1" not in extra, extra
assert [c["value"] for c in info["counters"] if c["name"] == "work_lost"] == [1], info["counters"]
assert len(info["summary"]["devices"]) == 1, info["summary"]
END
fi
# What the collector wrote is none of the job's: no replay makes it.
run 0 "$REPRISE" info job.oplog --files
grep -F ".gpu/" "$out" >collected
[[ -s collected ]] || fail "the collector's file is not in the log"
equal "$(grep -vcw system collected)" 0

# Without NVML, in JSON; and a job that uses no accelerator.
REPRISE_NVML_LIBRARY=$tmp/nowhere.so run 1 "$REPRISE" capture --gpu --json=summary.json -f -o job.oplog -- ./job data
contains summary.json "NVML not available: NVIDIA's management library was not found"
if command -v python3 >/dev/null; then
    run 0 python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["gpu"]) == 3' summary.json
fi
FAKE_NVML=refuse run 0 "$REPRISE" capture --gpu -f -o job.oplog -- cat data
contains "$err" "NVML not available: NVIDIA's management library does not start: error 9"
contains "$err" "gpu: no process loaded CUDA"
run 0 "$REPRISE" dump job.oplog
lacks "$out" gpu_submit
[[ ! -e job.oplog.gpu ]] || fail "the folder of the collector stayed"
# The job's own failure stays the job's.
run 7 "$REPRISE" capture --gpu -f -o job.oplog -- sh -c 'exit 7'
# Another client of CUPTI in the job: said, and the job goes on.
FAKE_CUPTI=taken run 0 "$REPRISE" capture --gpu -f -o job.oplog -- ./job data
contains "$err" "CUPTI has another client"
contains "$err" "gpu: CUDA did no work"
# What the collector left cannot be read.
run 0 "$REPRISE" capture --gpu -f -o job.oplog -- sh -c 'echo this is none >"$REPRISE_GPU_DIR/1.1.gpu"'
contains "$err" "gpu: cannot read the GPU events; first error at byte 0 of 1.1.gpu"
finish
