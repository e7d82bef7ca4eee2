#!/usr/bin/env bash
# Who waits for another task waits for it in a replay, too, however it is told: by signals, inside PID namespaces, by
# stops, queues of messages, sockets, terminals and locks.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"
waits=$REPRISE_BUILD_DIR/programs/waits
storage_model model.json

# Way, op of the waiting task, class of the wait, edge, op of the child that it comes from (of calls without an op, such
# as kill, the one before: any).
ways='
sigsuspend        wait    0 lifecycle exit
kill-sigsuspend   wait    0 wake      any
ppoll             wait    2 lifecycle exit
pselect           wait    2 lifecycle exit
kill-pselect      wait    2 wake      any
epoll             wait    7 lifecycle exit
kill-epoll        wait    7 wake      any
sigwait           wait    0 wake      exit
kill-sigwait      wait    0 wake      any
signalfd          receive - wake      exit
kill-signalfd     receive - wake      any
kill-restart      wait    0 wake      any
sleep             wait    3 lifecycle exit
sleep-on          wait    3 -         -
inside            join    - lifecycle exit
inside-twice      join    - lifecycle exit
inside-waitid     join    - lifecycle exit
inside-reparented join    - lifecycle exit
msgrcv            wait    0 message   any
mq                wait    0 message   any
semop             wait    1 wake      any
stop              wait    4 wake      any
stop-wait4        wait    4 wake      any
continue          wait    0 wake      any
udp               receive - wake      send
tcp               receive - message   send
tcp-poll          wait    2 wake      send
accept            wait    0 wake      any
accept-poll       wait    2 wake      any
lock              wait    0 wake      fcntl
lock-ofd          wait    0 wake      fcntl
pty               wait    0 wake      write
'
cat >look.py <<'EOF_PY'
import json, re, sys
way, kind, cls, edge, source = sys.argv[1:6]
ops = {}
for line in open("dump"):
    m = re.match(r"begin=\d+ duration=(\d+) task=(\d+) op=(\d+) (\w+) (.*)", line)
    if m:
        arg = re.search(r"\barg=(\d+)", m[5])
        edges = re.findall(r"(\w+):(\d+)#(\d+):\d+", (re.search(r"edges=\[(.*?)\]", m[5]) or [0, ""])[1])
        ops[int(m[2]), int(m[3])] = (int(m[1]), m[4], int(arg[1]) % 256 if arg else None, edges)
# The innermost task that waits for who computes: all that wait for it wait as long.
blocked = [(at, op) for at, op in ops.items()
           if op[0] > 40e6 and op[1] == kind and cls in ("-", str(op[2]))]
assert blocked, f"nobody waits in {kind} {cls}"
for at, (_, _, _, edges) in blocked:
    if edge == "-":
        assert not edges, f"{at} depends on {edges}"
        continue
    # The same call may be seen twice, as what was sent and as what woke.
    assert len({e[1:] for e in edges}) == 1 and edge in (e[0] for e in edges), f"{at} depends on {edges}"
    what = ops[int(edges[0][1]), int(edges[0][2])][1]
    assert int(edges[0][1]) != at[0] and source in ("any", what), f"{at} depends on {what} of {edges}"
# On a processor ten times as fast, in virtual time, what waited for a computing task waits no longer than that. (How
# long the start of a program takes is another matter.)
result = json.load(open("predicted.json"))
predicted, recorded = result["elapsed_s"], result["recorded_s"]
if way == "sleep-on":
    assert predicted > 0.9, f"slept to the end in {predicted} s"
else:
    waited = min(op[0] for _, op in blocked) / 1e9
    assert predicted < recorded - 0.6 * waited, f"{predicted} s, recorded {recorded} s, of which it waits for {waited} s"
EOF_PY
turn=0
while read -r way kind class edge source; do
    [[ $way ]] || continue
    if [[ -n $REPRISE_SANITIZE ]] && ((turn++ % 3 != 0)); then
        echo "left out: $way: with a sanitizer, every third way runs"
        continue
    fi
    # (A leak check cannot run in the namespaces that it makes.)
    if ! ASAN_OPTIONS=detect_leaks=0 "$waits" "$way" 2>"$err"; then
        echo "left out: $way: $(cat "$err")"
        continue
    fi
    run 0 "$REPRISE" capture -q -f -o job.oplog -- env ASAN_OPTIONS=detect_leaks=0 "$waits" "$way"
    run 0 "$REPRISE" dump job.oplog
    cp "$out" dump
    run 0 "$REPRISE" predict job.oplog --storage model.json --only all --cpu-speed 10 -q -f --json=predicted.json
    python3 look.py "$way" "$kind" "$class" "$edge" "$source" 2>"$err" || fail "$way: $(tail -n 1 "$err")"
done <<<"$ways"

# Some kernels hide tasks (the agent of a virtual machine), and trace no switch from one of them. A task that ran right
# after one had computed in the log for as long as it had slept.
cat >polls.py <<'EOF_PY'
import select, threading
def polls():
    for _ in range(1000):
        select.select([], [], [], 0.002)
threads = [threading.Thread(target=polls) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
EOF_PY
run 0 "$REPRISE" capture -q -f -o polls.oplog -- python3 polls.py
"$REPRISE" dump polls.oplog >dump
found=$(grep -cE 'duration=([2-9]|[1-9][0-9]+)[0-9]{6} .* wait .*\barg=2\b' dump)
[ "$found" = 8000 ] || fail "of 8000 polls of 2 ms, $found are waits"
finish
