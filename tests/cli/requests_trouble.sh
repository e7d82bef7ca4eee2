#!/usr/bin/env bash
# Asynchronous requests where something is in the way: no queues of the kernel, no memory to lock, a job that already runs, a run that is
# killed. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
for needed in fio python3 setpriv prlimit; do command -v "$needed" >/dev/null || skip "no $needed"; done
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
head -c 16M /dev/urandom >data
fio=(fio --name=j --filename="$tmp/data" --rw=randread --bs=4k --iodepth=8 --ioengine=io_uring --thread)
run 0 "$REPRISE" capture -q -o a.oplog -- "${fio[@]}" --number_ios=4000 --fixedbufs
[[ $failures == 0 ]] || finish
grep -q "fio: .*io_uring.*not supported" "$err" && skip "fio: no io_uring here"
run 0 "$REPRISE" prepare -q a.oplog --root root

# Registered buffers count against RLIMIT_MEMLOCK, unless the user may lock what it likes: their reads are plain ones then.
run 0 prlimit --memlock=0 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    "$REPRISE" replay a.oplog --root root --pace afap --json=locked.json
contains "$out" "job         SAME"
lacks "$out" "threads made its requests"

# Calls on names, by threads in place of the ring.
programs=${REPRISE_BUILD_DIR:-$(dirname "$REPRISE")}/programs/c
mkdir names
if "$programs/uring_names" "$tmp/names" --setup 2>"$err"; then
    run 0 "$REPRISE" capture -q -o names.oplog -- "$programs/uring_names" "$tmp/names" expect
    for how in ring threads; do
        run 0 "$REPRISE" prepare -q names.oplog --root "root-$how" --map "$tmp/names=job"
        without=()
        [[ $how == ring ]] || without=(python3 "$REPRISE_SOURCE_DIR/tests/cli/without_queues.py")
        run 0 "${without[@]}" "$REPRISE" replay -v names.oplog --root "root-$how" --pace afap --json="$how.json"
        contains "$out" "job         SAME"
        python3 - "$how.json" <<'PY' || fail "$how: what the result says of calls on names"
import json, sys
verdict = json.load(open(sys.argv[1], encoding="utf-8"))["verdict"]
here, recorded = verdict["here"]["requests"], verdict["recorded"]["requests"]
for side in (here, recorded):
    kinds = side["by_kind"]
    assert kinds["statx"] == 2 and kinds["mkdir, link"] == 4 and kinds["unlink, rename"] == 5, kinds
    assert kinds["open"] >= 6 and kinds["close"] >= 3, kinds
    assert side["latency_ns"]["min"] > 0, side["latency_ns"]
assert here["by_kind"] == recorded["by_kind"] and here["requests"] == recorded["requests"], verdict
PY
    done
    contains "$out" "threads made its requests"
    diff -r --no-dereference root-ring/job root-threads/job >"$out" || fail "threads leave other files than a ring: $(head -n 5 "$out")"
fi

# Attached to late: what was in flight by then has no submission, and a replay waits for nothing that it did not make.
"${fio[@]}" --time_based --runtime=8 --rate_iops=2000 >/dev/null 2>&1 &
job=$!
for _ in $(seq 100); do [[ -n $(find /proc/$job/fd -lname '*io_uring*' 2>/dev/null) ]] && break; sleep 0.05; done
sleep 0.5
timeout -s INT 3 "$REPRISE" capture -q -o late.oplog --pid $job >"$out" 2>"$err"
kill $job 2>/dev/null
wait $job
[[ -s late.oplog ]] || fail "no log of a job that was attached to: $(cat "$err")"
run 0 "$REPRISE" info late.oplog
contains "$out" "requests     read "
run 0 "$REPRISE" prepare -q late.oplog --root root-late
run 0 "$REPRISE" replay late.oplog --root root-late --pace afap
contains "$out" "job         SAME"

# Killed at any point: no process, no half log and no lock stays; ended by a signal, it says what it did.
run 0 "$REPRISE" capture -q -o slow.oplog -- "${fio[@]}" --number_ios=1500 --rate_iops=500
run 0 "$REPRISE" prepare -q slow.oplog --root root-slow
for signal in TERM KILL; do
    for after in 0.05 0.3 1; do
        setsid "$REPRISE" replay slow.oplog --root root-slow -o run.oplog --json=run.json >"$out" 2>"$err" &
        replay=$!
        sleep "$after"
        kill -"$signal" $replay
        { wait $replay; } 2>/dev/null
        for _ in $(seq 100); do [[ -z $(pgrep -s $replay) ]] && break; sleep 0.05; done
        [[ -z $(pgrep -s $replay) ]] || fail "SIG$signal after $after s: processes stay"
        [[ ! -e run.oplog ]] || run 0 "$REPRISE" info run.oplog
        rm -f run.oplog run.oplog.partial run.json
    done
done
run "0 1" "$REPRISE" replay slow.oplog --root root-slow
contains "$out" "job         SAME"
finish
