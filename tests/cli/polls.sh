#!/usr/bin/env bash
# Waits whose time-out runs out until somebody wakes the task are one wait; a time-out that the program acts on stays.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
"$REPRISE" capture --check >/dev/null 2>&1 || skip "this machine cannot record"
polls=$REPRISE_BUILD_DIR/programs/polls

# joined LOG: waits that a replay of it joins with the one that was ended
joined() {
    # On a busy machine the run may be late, and exit 1.
    "$REPRISE" replay "$1" --engine null -f --json=run.json >/dev/null 2>&1
    python3 -c 'import json; print(sum(c["count"] for c in json.load(open("run.json"))["counters"] if c["name"] == "waits_joined"))'
}

run 0 "$REPRISE" capture -q -o c.oplog -- "$polls"
equal "$(joined c.oplog)" 3
run 0 "$REPRISE" capture -q -o acts.oplog -- "$polls" lines
equal "$(joined acts.oplog)" 0

# The same with Python's Condition.wait(timeout).
cat >polls.py <<'EOF'
import sys, threading, time
told, end = threading.Condition(), False
lines = open(sys.argv[1], "w") if len(sys.argv) > 1 else None
def helper():
    with told:
        for wait in 0.02, 0.04, 0.08, None:
            if told.wait(wait):
                return
            if lines:
                print("still here", file=lines, flush=True)
thread = threading.Thread(target=helper)
thread.start()
time.sleep(0.3)
with told:
    end = True
    told.notify()
thread.join()
EOF
run 0 "$REPRISE" capture -q -o python.oplog -- python3 polls.py
equal "$(joined python.oplog)" 3
run 0 "$REPRISE" capture -q -o python-acts.oplog -- python3 polls.py lines
equal "$(joined python-acts.oplog)" 0

# An event loop waits until its next timer, again and again: its log says for how long.
cat >loop.py <<'END'
import asyncio, os, sys
async def main():
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    loop.add_reader(reader, lambda: os.read(reader, 1))
    def tell():
        import time
        for _ in range(3):
            time.sleep(0.03)
            os.write(writer, b"x")
    told = loop.run_in_executor(None, tell)
    await asyncio.sleep(0.2)
    await told
asyncio.run(main())
END
run 0 "$REPRISE" capture -q -o loop.oplog -- python3 loop.py
run 0 "$REPRISE" dump loop.oplog
timeouts=$(sed -n 's/.* wait result=[01] arg=\([0-9]*\).*/\1/p' "$out" | awk '$1 > 256 && $1 % 256 == 7 { print int($1 / 256) }' | tr '\n' ' ')
[[ $(wc -w <<<"$timeouts") -ge 3 ]] || { fail "time-outs of the event loop: '$timeouts'"; grep ' wait ' "$out"; }
# It is woken at 30, 60 and 90 ms, and each time-out is shorter than the one before.
[[ $(tr ' ' '\n' <<<"$timeouts" | sed '/^$/d' | sort -nr | tr '\n' ' ') == "$timeouts" ]] || fail "not in order: $timeouts"
finish
