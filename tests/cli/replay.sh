#!/usr/bin/env bash
# The replay command from outside: exit codes, the JSON result, Ctrl-C, and that no process stays behind.
# SPDX-License-Identifier: MIT
set -euo pipefail
: "${REPRISE:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
expect() { # expect CODE command...
    local wanted=$1 code=0
    shift
    "$@" >out.txt 2>err.txt || code=$?
    [ "$code" = "$wanted" ] || { cat out.txt err.txt >&2; fail "exit code $code, not $wanted: $*"; }
}

# One reader: an open, a read a second for a minute.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/in open"
    for second in $(seq 0 60); do echo "$((second * 1000000)) /data/in read $((second * 4096)) 4096"; done
    echo "60001000 /data/in close"
} >slow.log
expect 0 "$REPRISE" import slow.log -o slow.oplog
mkdir root
expect 0 "$REPRISE" prepare slow.oplog --root root

expect 0 "$REPRISE" replay slow.oplog --root root --pace afap --json run.json -o run.oplog
grep -q "replayed 63 ops" out.txt || { cat out.txt; fail "no summary"; }
for key in ops bytes elapsed_s ops_per_s errors mismatches au stall_s lateness_us unexplained_wait_share harness_ns_per_op device_bytes; do
    grep -q "^  \"$key\":" run.json || fail "run.json has no $key"
done
grep -q '"ended": "complete"' run.json || fail "not complete"
expect 0 "$REPRISE" info run.oplog
expect 0 "$REPRISE" replay slow.oplog --pace afap --engine null
expect 0 "$REPRISE" replay -q slow.oplog --root root --pace afap
[ ! -s out.txt ] || fail "-q prints"

expect 2 "$REPRISE" replay slow.oplog
expect 2 "$REPRISE" replay slow.oplog --root root --pace never
expect 2 "$REPRISE" replay slow.oplog --root root -o slow.oplog
expect 3 "$REPRISE" replay slow.log --root root
expect 3 "$REPRISE" replay missing.oplog --root root
expect 4 "$REPRISE" replay slow.oplog --root missing
grep -q "prepare" err.txt || { cat err.txt; fail "no advice for a missing root"; }

# Writes need the marker.
sed 's/ read / write /' slow.log >writes.log
expect 0 "$REPRISE" import writes.log -o writes.oplog
mkdir bare
expect 4 "$REPRISE" replay writes.oplog --root bare --pace afap
grep -q "reprise prepare" err.txt || { cat err.txt; fail "no advice where the marker is missing"; }
expect 0 "$REPRISE" replay writes.oplog --root bare --pace afap --read-only
[ -z "$(ls -A bare)" ] || fail "--read-only left something behind"

# Ctrl-C.
"$REPRISE" replay slow.oplog --root root -o cut.oplog --json cut.json >out.txt 2>err.txt &
pid=$!
sleep 2
workers=$(cat "/proc/$pid/task/$pid/children")
[ -n "$workers" ] || fail "no worker process"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 4 ] || fail "exit code $code after SIGINT"
grep -q '"ended": "interrupted: signal 2' cut.json || fail "the result does not say that it was interrupted"
expect 0 "$REPRISE" info cut.oplog
for worker in $workers; do
    [ ! -e "/proc/$worker" ] || fail "worker $worker is still there"
done

# The supervisor itself is killed: its workers die with it.
"$REPRISE" replay slow.oplog --root root >out.txt 2>err.txt &
pid=$!
sleep 2
workers=$(cat "/proc/$pid/task/$pid/children")
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
for _ in $(seq 50); do
    left=0
    for worker in $workers; do
        if [ -e "/proc/$worker" ] && ! grep -q '^State:.*Z' "/proc/$worker/status" 2>/dev/null; then left=1; fi
    done
    [ "$left" = 0 ] && break
    sleep 0.1
done
[ "$left" = 0 ] || fail "workers outlive a killed supervisor"
echo "replay: all good"
