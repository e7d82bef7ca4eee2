#!/usr/bin/env bash
# Files that are not as large on the device as they seem: holes, preallocated blocks, several names of one. The replay's
# are like them. Needs root, BPF and a file system with holes and extents.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE" capture --check --json >check.json 2>/dev/null || skip "this machine cannot record"
mkdir d
python3 - <<'PYTHON'
import os
with open("d/holes", "wb") as file:
    for i in range(10):  # 45 % of it
        file.seek(i * 2000 * 1024)
        file.write(os.urandom(1100 * 1024))
    file.truncate(10 * 2000 * 1024)
PYTHON
fallocate -l 20M d/preallocated 2>"$err" || skip "this file system preallocates nothing: $(head -n 1 "$err")"
head -c 5M /dev/urandom >d/a
ln d/a d/b
sync
[[ $(stat -c %b d/holes) -lt 30000 ]] || skip "this file system has no holes"

drop() {
    python3 -c 'import os, sys
for name in sys.argv[1:]:
    os.posix_fadvise(os.open(name, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' d/*
}
drop
run 0 "$REPRISE" capture -q -o job.oplog -- md5sum d/holes d/preallocated d/a d/b
run 0 "$REPRISE" prepare job.oplog --root root --only dataset
# Data of d/holes and d/a; holes of d/holes, and all of d/preallocated.
contains "$out" " entries, 15.7 MiB at "
contains "$out" ", holes of 28.8 MiB, in "
equal "$(stat -c %h "$(find root -name b)")" 2
[[ $(stat -c %b "$(find root -name preallocated)") -lt 100 ]] || fail "what was preallocated is data"
there=$(stat -c %b "$(find root -name holes)")
was=$(stat -c %b d/holes)
((there >= was - 64 && there <= was + 64)) || fail "the holes are data: $there blocks, $was in the recording"
run 0 "$REPRISE" replay job.oplog --root root --only dataset --pace afap
# 10.7 MiB of one file, 5 of the other, which has two names.
contains "$out" "the recording fetched 15.7 MiB of 15.7 MiB"
run 0 "$REPRISE" replay job.oplog --root root --only dataset --pace afap -v
contains "$out" "have no blocks on the device"

# Sparse when it is read, and then filled, or removed: the device is asked for as little, here and by a prediction.
for after in 'dd if=/dev/zero of=d/later bs=1M count=32 conv=notrunc status=none; sync' 'rm d/later'; do
    rm -f d/later
    truncate -s 32M d/later
    head -c 1M /dev/urandom | dd of=d/later bs=1M seek=7 conv=notrunc status=none
    sync
    python3 -c 'import os
os.posix_fadvise(os.open("d/later", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)'
    run 0 "$REPRISE" capture -q -f -o later.oplog -- sh -c "cat d/later >/dev/null; sleep 0.2; $after"
    rm -rf later
    run 0 "$REPRISE" prepare later.oplog --root later --only "$tmp/d"
    contains "$out" ", holes of 31.0 MiB, in "
    run 0 "$REPRISE" replay later.oplog --root later --only "$tmp/d" --pace afap
    contains "$out" "the recording fetched 1.00 MiB of 1.00 MiB"
done
storage_model model.json
run 0 "$REPRISE" predict later.oplog --storage model.json --only "$tmp/d" --json
device=$(sed -n 's/.*"storage_bytes": \([0-9]*\).*/\1/p' "$out")
[[ -n $device && $device -lt $((2 << 20)) ]] || fail "the prediction reads $device bytes of a file with 1 MiB of data"
run 0 "$REPRISE" predict job.oplog --storage model.json --only dataset --json
device=$(sed -n 's/.*"storage_bytes": \([0-9]*\).*/\1/p' "$out")
[[ -n $device && $device -lt $((17 << 20)) ]] || fail "the prediction reads $device bytes"
finish
