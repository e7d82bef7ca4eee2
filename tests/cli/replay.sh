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

expect 0 "$REPRISE" replay slow.oplog --root root --pace afap --json=run.json -o run.oplog
grep -qx "job         SAME: 63 I/O ops as recorded + 0 differ + 0 left out = 63 recorded" out.txt || { cat out.txt; fail "no summary"; }
for key in ops bytes elapsed_s ops_per_s errors mismatches au stall_s lateness_us unexplained_wait_share harness_ns_per_op device_bytes; do
    grep -q "^  \"$key\":" run.json || fail "run.json has no $key"
done
grep -q '"ended": "complete"' run.json || fail "not complete"
expect 0 "$REPRISE" info run.oplog
expect 0 "$REPRISE" replay slow.oplog --pace afap --engine null
expect 0 "$REPRISE" replay -q slow.oplog --root root --pace afap
grep -q "^job         SAME: 63 I/O ops" out.txt || fail "-q hides the result"

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
expect 1 "$REPRISE" replay writes.oplog --root bare --pace afap --read-only --json=bare.json
head -n 1 out.txt | grep -q "^NOT THE SAME JOB: 2 of 2 I/O ops (100 %) have another result" || { cat out.txt; fail "a replay of nothing"; }
grep -q '"same_job": false' bare.json || fail "bare.json does not say that it is not the same job"
expect 0 "$REPRISE" replay writes.oplog --root bare --pace afap --read-only --tolerance-results 2
expect 0 "$REPRISE" replay writes.oplog --root bare --pace afap --read-only --tolerance-results 100%
expect 2 "$REPRISE" replay writes.oplog --root bare --pace afap --read-only --tolerance-results most
grep -q "or a share such as 5%$" err.txt || { cat err.txt; fail "a hint at what --tolerance-results does not take"; }
[ -z "$(ls -A bare)" ] || fail "--read-only left something behind"

# Whether this machine kept the time: a read every 20 ms, and a worker that is stopped for most of it.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/in open"
    for step in $(seq 0 99); do echo "$((step * 20000)) /data/in read $((step % 60 * 4096)) 4096"; done
    echo "2000000 /data/in close"
} >steady.log
expect 0 "$REPRISE" import steady.log -o steady.oplog
expect 0 "$REPRISE" prepare steady.oplog --root steady
kept=no
for _ in 1 2 3; do # a crowded machine may fail to
    if "$REPRISE" replay steady.oplog --root steady -f --json=kept.json >out.txt 2>err.txt; then kept=yes; break; fi
done
[ "$kept" = yes ] || { cat out.txt; fail "two seconds of reads could not be kept in three tries"; }
grep -q '"kept_up": true' kept.json || fail "the result does not say that the time was kept"
"$REPRISE" replay steady.oplog --root steady -o late.oplog --json=late.json >out.txt 2>err.txt &
pid=$!
sleep 0.5
worker=$(cat "/proc/$pid/task/$pid/children")
# shellcheck disable=SC2086
kill -STOP $worker
sleep 2
# shellcheck disable=SC2086
kill -CONT $worker
code=0
wait "$pid" || code=$?
[ "$code" = 1 ] || { cat out.txt; fail "exit code $code of a run that was two seconds late"; }
grep -q "This machine could not keep up: p99 lateness of ops is" out.txt || fail "no sentence says that it was late"
grep -q '"kept_up": false' late.json || fail "late.json does not say that it was late"
expect 1 "$REPRISE" compare steady.oplog late.oplog
head -n 2 out.txt | grep -q "^NOT FAITHFUL: B: p99 lateness of ops is .*\.$" || { cat out.txt; fail "compare does not begin with what is wrong with the run"; }

# Ctrl-C.
"$REPRISE" replay slow.oplog --root root -o cut.oplog --json=cut.json >out.txt 2>err.txt &
pid=$!
sleep 2
workers=$(cat "/proc/$pid/task/$pid/children")
[ -n "$workers" ] || fail "no worker process"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 4 ] || fail "exit code $code after SIGINT"
[ "$(head -n 1 out.txt)" = "INCOMPLETE: interrupted: signal 2 (Interrupt)" ] || fail "the first line: $(head -n 1 out.txt)"
grep -q '^job  *INCOMPLETE: ' out.txt || fail "an interrupted run is called the same job"
"$REPRISE" compare slow.oplog cut.oplog >out.txt && fail "compare: exit code 0 for a run that was cut"
[ "$(head -n 1 out.txt)" = "INCOMPLETE: interrupted: signal 2 (Interrupt)" ] || fail "the first line: $(head -n 1 out.txt)"
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
