#!/usr/bin/env bash
# A chain of forks, each process waiting for the one that it forked: replayed whole, and ended by a signal.
# The limits are for a replay that takes n^2 times as long as one fork, or that a signal does not end.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

bash "$REPRISE_SOURCE_DIR/tests/bench/fork_chain.sh" --strace 400 0 >chain.strace
run 0 "$REPRISE" import chain.strace -o chain.oplog
contains "$out" "in 400 processes"
run 0 "$REPRISE" prepare chain.oplog --root root
run 0 timeout 45 "$REPRISE" replay chain.oplog --root root --pace afap

# members GROUP: how many processes it has.
members() { cat /proc/[0-9]*/stat 2>/dev/null | awk -v group="$1" '$5 == group { n++ } END { print n + 0 }'; }

# All of them have begun, and the last one waits: the chain is alive while the signal comes.
bash "$REPRISE_SOURCE_DIR/tests/bench/fork_chain.sh" --strace 400 60 >sleeps.strace
run 0 "$REPRISE" import sleeps.strace -o sleeps.oplog
run 0 "$REPRISE" prepare sleeps.oplog --root sleeps
for signal in TERM INT HUP; do
    env --default-signal="$signal" "$REPRISE" replay sleeps.oplog --root sleeps --pace timed >"$out" 2>"$err" &
    job=$!
    for _ in $(seq 300); do
        [[ $(members "$(cut -d' ' -f1 "/proc/$job/task/$job/children")") -ge 400 ]] && break
        sleep 0.1
    done
    kill -"$signal" $job
    for _ in $(seq 100); do kill -0 $job 2>/dev/null || break; sleep 0.1; done
    if kill -0 $job 2>/dev/null; then fail "SIG$signal does not end the run within 10 s"; kill -KILL $job; fi
    wait $job
    equal $? 4
    cat "$out" "$err" >said
    contains said "interrupted: signal"
done

# Each process has a descriptor in the supervisor, of as many as may be had at all.
limited() { bash -c "ulimit $1 && exec \"\${@:2}\"" bash "$@"; }
run 0 limited "-S -n 100" timeout 45 "$REPRISE" replay chain.oplog --root root --pace afap
run 4 limited "-n 100" timeout 45 "$REPRISE" replay chain.oplog --root root --pace afap
contains "$out" "INCOMPLETE: interrupted: limit of open descriptors (ulimit -n 100): too low for the 400 processes of this log; raise"
finish
