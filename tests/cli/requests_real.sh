#!/usr/bin/env bash
# Asynchronous requests of a real program, recorded and replayed: the ring, its depth, and what stands in for it where
# the kernel makes none.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
for needed in fio python3; do command -v "$needed" >/dev/null || skip "no $needed"; done
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
head -c 16M /dev/urandom >data
job() { # ENGINE
    echo fio --name=j --filename="$tmp/data" --rw=randread --bs=4k --iodepth=8 --ioengine="$1" --number_ios=2000 --thread
}
for engine in io_uring libaio; do
    # shellcheck disable=SC2046
    run 0 "$REPRISE" capture -q -o "$engine.oplog" -- $(job "$engine")
    grep -q "fio: .*io_uring.*not supported\|io_queue_init" "$err" && skip "fio: no $engine here"
    run 0 "$REPRISE" prepare -q "$engine.oplog" --root "root-$engine"
    run 0 "$REPRISE" replay "$engine.oplog" --root "root-$engine" --pace afap --json="$engine.json"
    contains "$out" "job         SAME"
    python3 - "$engine.json" "$engine" <<'PY' || fail "$engine: what the result says of requests"
import json, sys
result = json.load(open(sys.argv[1], encoding="utf-8"))
here, recorded = (result["verdict"][side]["requests"] for side in ("here", "recorded"))
for side in (here, recorded):
    assert side["requests"] == 2000 and side["bytes_read"] == 2000 * 4096, side
    assert side["in_flight"]["max"] <= 8, side["in_flight"]
if sys.argv[2] == "libaio":  # until the job took the result, on both sides
    assert 2 * here["in_flight"]["mean"] > recorded["in_flight"]["mean"] > 2, (here["in_flight"], recorded["in_flight"])
PY
    run 0 python3 "$REPRISE_SOURCE_DIR/tests/cli/without_queues.py" "$REPRISE" replay "$engine.oplog" --root "root-$engine" --pace afap -v
    contains "$out" "job         SAME"
    contains "$out" "threads made its requests"
done
finish
