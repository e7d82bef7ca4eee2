#!/usr/bin/env bash
# Asynchronous requests: what info, replay, compare, analyze and the timeline say of a log whose truth is known.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || skip "no python3"
cd "$tmp" || exit 1

# 200 reads, four in flight for all but the last 300 us: (197 x 4 + 3 + 2 + 1) / 200 = 3.97
"$REPRISE_BUILD_DIR/programs/sample_log" requests a.oplog
run 0 "$REPRISE" info a.oplog
contains "$out" "read         800 KiB, written 0 B"
contains "$out" "requests     read 200; 3.97 in flight (p50 4, max 4), latency p50 400 us, p99 400 us"
contains "$out" "io_uring, fd 5  100       200       3.97"
run 0 "$REPRISE" info --json=info.json a.oplog

run 0 "$REPRISE" prepare -q a.oplog --root root
run 0 "$REPRISE" replay a.oplog --root root -o run.oplog --json=run.json --pace afap
grep -q '^requests    200, .* in flight (recorded 3.97), latency p50 .* (recorded 400 us), p99 ' "$out" || fail "no line of requests: $(cat "$out")"
contains "$out" "bytes       read 800 KiB, wrote 0 B (as recorded)"
run 0 "$REPRISE" replay -v a.oplog --root root --pace afap
contains "$out" "asynchronous requests by ring"
contains "$out" "time by requests in flight"

run 0 "$REPRISE" compare -v a.oplog a.oplog
contains "$out" "requests    200, 3.97 in flight (A 3.97), latency p50 400 us (A 400 us), p99 400 us (A 400 us)"
contains "$out" "Asynchronous requests by ring"
run 0 "$REPRISE" compare a.oplog run.oplog --json=compare.json
run 0 "$REPRISE" analyze a.oplog --no-what-if
contains "$out" "800 KiB in 200 asynchronous requests"
contains "$out" "3.97 in flight (p50 4, max 4), latency p50 400 us"
run 0 "$REPRISE" analyze a.oplog --no-what-if --json=analyze.json
run 0 "$REPRISE" export a.oplog --to perfetto -o a.json

python3 - <<'PYTHON' || fail "the JSON says something else than the log holds"
import json
def load(name):
    with open(name) as file:
        return json.load(file)
def check(requests, exact):
    assert requests["requests"] == requests["reads"] == 200, requests
    assert requests["bytes_read"] == 200 * 4096 and requests["unfinished"] == 0, requests
    assert requests["by_kind"] == {"read": 200}, requests
    assert len(requests["over_time"]["mean_in_flight"]) == 120
    assert [(ring["interface"], ring["fd"], ring["requests"]) for ring in requests["rings"]] == [("io_uring", 5, 200)], requests
    depth = requests["in_flight"]
    assert abs(sum(part["share"] for part in depth["time"]) - 1) < 1e-9, depth
    if exact:
        assert abs(depth["mean"] - 3.97) < 1e-9 and depth["p50"] == 4 and depth["max"] == 4, depth
        assert [(part["from"], part["to"], round(part["share"], 6)) for part in depth["time"]] == [
            (1, 1, 0.005), (2, 2, 0.005), (3, 3, 0.005), (4, 4, 0.985)], depth
        assert requests["latency_ns"]["min"] == 100_000 and requests["latency_ns"]["max"] == 400_000, requests
check(load("info.json")["summary"]["requests"], True)
check(load("analyze.json")["logs"][0]["summary"]["requests"], True)
run, compared = load("run.json"), load("compare.json")
for one in (run, compared):
    check(one["verdict"]["recorded"]["requests"], True)
    check(one["verdict"]["here"]["requests"], False)
def area(requests):
    return requests["in_flight"]["mean"] * requests["in_flight"]["busy_s"]
# The log of the run is in the order of its task: results count from when the task got to them, or later.
said, logged = (each["verdict"]["here"]["requests"] for each in (run, compared))
assert area(said) <= area(logged) + 1e-9, (said, logged)
assert said["in_flight"]["max"] <= 4, said
assert said["latency_ns"]["p50"] <= logged["latency_ns"]["p50"], (said, logged)
assert run["bytes_read"] == 200 * 4096, run["bytes_read"]
sizes = load("analyze.json")["logs"][0]["reads_by_size"]
assert [(row["up_to_bytes"], row["requests"], row["request_p50_ns"]) for row in sizes] == [(4096, 200, 400_000)], sizes
events = load("a.json")["traceEvents"]
assert sum(event["ph"] == "b" and event["name"] == "io_uring, fd 5" for event in events) == 200
depth = [event["args"]["requests"] for event in events if event["ph"] == "C" and event["name"] == "in flight, io_uring, fd 5"]
assert max(depth) == 4 and depth[-1] == 0, depth
PYTHON
finish
