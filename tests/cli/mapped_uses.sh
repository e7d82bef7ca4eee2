#!/usr/bin/env bash
# capture --with mapped-uses: pages of a mapping that are used again are in the log, and a replay with less memory fetches them again.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
if [[ $EUID != 0 ]] || ! can_record; then
    skip "this user cannot record"
fi

# Three passes over 16 MiB in one process; a pass takes longer than the time between two samples.
cat >job.py <<'EOF2'
import mmap, os, random, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
pages = list(range(os.fstat(file).st_size // 4096))
data = mmap.mmap(file, 0, prot=mmap.PROT_READ)
for epoch in range(3):
    random.Random(epoch).shuffle(pages)
    for number, page in enumerate(pages):
        data[page * 4096]
        if number % 128 == 127:
            end = time.thread_time() + 0.002
            while time.thread_time() < end:
                pass
            time.sleep(0.01)
EOF2
head -c 16M /dev/urandom >data
cold() {
    sync data
    python3 -c 'import os; os.posix_fadvise(os.open("data", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)'
}
# first or again: pages of all touches of the file
pages() {
    "$REPRISE" dump --json --only "$tmp/data" "$1" | python3 -c '
import json, sys
sums = {0: 0, 2: 0}
for line in sys.stdin:
    op = json.loads(line)
    if op["kind"] == "touch":
        sums[op.get("flags", 0)] += (sum(op["list"][1::2]) if op.get("list") else op["size"]) // 4096
print(sums[0 if sys.argv[1] == "first" else 2])' "$2"
}

cold
run 0 "$REPRISE" capture -q -o plain.oplog -- python3 job.py "$tmp/data"
equal "$(pages plain.oplog again)" 0
cold
rc=0
"$REPRISE" capture -q --with mapped-uses -o job.oplog -- python3 job.py "$tmp/data" >"$out" 2>"$err" || rc=$?
if [[ $rc == 4 ]] && grep -q -e "--with mapped-uses: " "$err"; then
    skip "$(head -n 1 "$err")"
fi
equal "$rc" 0
! grep -q "huge pages" "$err" || skip "the page cache has this file in huge pages"
first=$(pages job.oplog first) again=$(pages job.oplog again)
# 4096 pages, three times; several uses within a sample are one, and a busy machine takes fewer samples.
((first > 0 && again >= 1024 && first + again <= 3 * 4096)) || fail "$first pages touched first, $again again"
run 0 "$REPRISE" info --scaling --json job.oplog
equal "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["scaling"]["obstacle"])' "$out")" None

# Pages that a limit takes back are read again; samples are no proof, so the doubt stays.
run 0 "$REPRISE" prepare -q job.oplog --root root
rc=0
"$REPRISE" replay job.oplog --root root --memory 20M --no-ballast --json=run.json >"$out" 2>"$err" || rc=$?
if grep -q "control group\|controller" "$err"; then
    skip "no control group can be made here: $(head -n 1 "$err")"
fi
finish
