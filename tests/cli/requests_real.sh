#!/usr/bin/env bash
# Asynchronous requests of a real program, recorded and replayed: the ring, its depth, and what stands in for it where
# the kernel makes none.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
for needed in fio python3; do command -v "$needed" >/dev/null || skip "no $needed"; done
"$REPRISE" capture --check >/dev/null 2>&1 || skip "this machine cannot record"
cd "$tmp" || exit 1
head -c 16M /dev/urandom >data
job() { # ENGINE
    echo fio --name=j --filename="$tmp/data" --rw=randread --bs=4k --iodepth=8 --ioengine="$1" --number_ios=2000 --thread
}
# Without these calls: io_uring_setup 425, io_setup 206 (x86-64).
without_queues() {
    python3 - "$@" <<'PY'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 1, 0, 425), (0x15, 0, 1, 206), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
PY
}

for engine in io_uring libaio; do
    # shellcheck disable=SC2046
    run 0 "$REPRISE" capture -q -o "$engine.oplog" -- $(job "$engine")
    grep -q "fio: .*io_uring.*not supported\|io_queue_init" "$err" && skip "fio: no $engine here"
    run 0 "$REPRISE" prepare -q "$engine.oplog" --root "root-$engine"
    run 0 "$REPRISE" replay "$engine.oplog" --root "root-$engine" --pace afap --json="$engine.json"
    contains "$out" "job         SAME"
    python3 - "$engine.json" <<'PY' || fail "$engine: what the result says of requests"
import json, sys
result = json.load(open(sys.argv[1], encoding="utf-8"))
here, recorded = (result["verdict"][side]["requests"] for side in ("here", "recorded"))
for side in (here, recorded):
    assert side["requests"] == 2000 and side["bytes_read"] == 2000 * 4096, side
    assert side["in_flight"]["max"] <= 8, side["in_flight"]
PY
    run 0 without_queues "$REPRISE" replay "$engine.oplog" --root "root-$engine" --pace afap -v
    contains "$out" "job         SAME"
    contains "$out" "threads made its requests"
done
finish
