#!/usr/bin/env bash
# A library that holds Python's interpreter lock while it reads makes all other threads of Python wait as long as the
# storage takes; one that gives it back does not. Recorded in memory, predicted where reads take their time.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"
head -c 256M /dev/zero >data
storage_model model.json
sed -i 's/"read_bytes_per_s": 1e9/"read_bytes_per_s": 1e8/' model.json

cat >job.py <<'EOF_PY'
import ctypes, os, sys, threading, time

library = {"held": ctypes.PyDLL, "given-back": ctypes.CDLL}[sys.argv[1]](None)
library.pread.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long
size, reads = 8 << 20, 32

def read():
    fd, buffer = os.open("data", os.O_RDONLY), ctypes.create_string_buffer(size)
    for number in range(reads):
        library.pread(fd, buffer, size, number * size)
        time.sleep(0.02)  # without the lock

thread = threading.Thread(target=read)
thread.start()
for _ in range(400):  # a second of computing, on any machine
    end = time.thread_time() + 0.0025
    while time.thread_time() < end:
        for _ in range(1000):
            pass
    time.sleep(0.0005)
time.sleep(1)  # needs no lock, but comes after what does
thread.join()
EOF_PY
cat >look.py <<'EOF_PY'
import re, sys
found = {"1": [0, 0], "5": [0, 0]}
for line in open("dump"):
    if wait := re.search(r" wait result=0 arg=([15])\b", line):
        found[wait[1]][0] += 1
        found[wait[1]][1] += "edges=[wake:" in line
if not found["5"][0]:  # then they are waits for who signals, and the prediction below shows whether that is right
    sys.stderr.write(f"{sys.argv[1]}: nothing showed which wait is for the lock\n")
print(*(found["5"] if found["5"][0] else found["1"] if sys.argv[1] == "held" else (0, 0)))
EOF_PY

for way in held given-back; do
    run 0 "$REPRISE" capture -q -o $way.oplog -- python3 job.py $way
    run 0 "$REPRISE" dump $way.oplog
    cp "$out" dump
    read -r waits causes < <(python3 look.py "$way")
    if [[ $way == held ]]; then
        ((causes >= 10)) || fail "of $waits waits for the lock, $causes have a cause: each of 32 reads made the other thread wait; all waits: $(grep -o ' wait result=[-0-9]* arg=[0-9]*' dump | sort | uniq -c | tr -s '\n ' ' '); Python: $(python3 -VV | tr '\n' ' ')"
    else
        ((causes <= 3)) || fail "of $waits waits for the lock, $causes have a cause, and nobody held it while reading"
    fi
    run 0 "$REPRISE" predict $way.oplog --storage model.json --cache cold --json=$way.json
done
# 32 reads of 84 ms. Where they hold the lock, the other thread computes between them alone, and sleeps after that.
python3 - <<'EOF_PY' || fail "predicted, s: held $(python3 -c 'import json; print(json.load(open("held.json"))["elapsed_s"])'), given back $(python3 -c 'import json; print(json.load(open("given-back.json"))["elapsed_s"])')"
import json, sys
held, given_back = (json.load(open(way + ".json"))["elapsed_s"] for way in ("held", "given-back"))
sys.exit(not (held > given_back + 0.5 and given_back > 2.6))
EOF_PY
finish
