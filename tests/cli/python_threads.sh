#!/usr/bin/env bash
# Threads of Python compute one at a time, also where they meet: short reads, and milliseconds of computing for each.
# Computing that releases the interpreter lock goes on beside it. Predicted from the recordings alone.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"
(($(nproc) > 1)) || skip "one CPU: threads compute one at a time anyway"
mkdir d
for i in $(seq 300); do head -c 20000 /dev/urandom >"d/$i"; done

cat >job.py <<'EOF_PY'
import glob, hashlib, queue, sys, threading

files = sorted(glob.glob("d/*"))
blob = bytes(1 << 20)

def parse(data):  # holds the lock
    total = 0
    for byte in data:
        total = (total * 31 + byte) & 0xffffffff
    return total

def two_threads(work):
    def run(which):
        for name in files[which::2]:
            with open(name, "rb") as file:
                work(file.read())
    threads = [threading.Thread(target=run, args=(which,)) for which in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

def through_a_queue():
    parsed = queue.Queue(8)
    def read():
        for name in files:
            with open(name, "rb") as file:
                parsed.put(parse(file.read()))
        parsed.put(None)
    threading.Thread(target=read).start()
    while parsed.get() is not None:
        parse(blob[:15000])

{"parse": lambda: two_threads(parse),
 "queue": through_a_queue,
 "hash": lambda: two_threads(lambda data: [hashlib.sha256(blob).digest() for _ in range(4)])}[sys.argv[1]]()
EOF_PY

# Sets `share`: how long it takes, in percent of what both threads compute.
measure() {
    run 0 "$REPRISE" capture -q -f -o "$1.oplog" -- python3 job.py "$1"
    run 0 "$REPRISE" predict "$1.oplog" --service recorded --only all -f --json="$1.json"
    share=$(python3 -c 'import json, sys; p = json.load(open(sys.argv[1])); print(round(100 * p["elapsed_s"] / p["computing_s"]))' "$1.json")
}
# Where other programs have the processors a recording may not tell: up to three are made.
for way in parse queue hash; do
    for try in 1 2 3; do
        measure $way
        if [[ $way == hash ]]; then
            found="$way: the time is $share % of what both threads compute, and they compute at once"
            ((share <= 85)) && continue 2
        else
            found="$way: the time is $share % of what both threads compute, and they compute one at a time"
            ((share >= 95)) && continue 2
        fi
        echo "recording $try: $found" >&2
    done
    fail "$found"
done
finish
