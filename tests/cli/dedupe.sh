#!/usr/bin/env bash
# An ioctl that is not recorded and takes pages out of the cache: its time belongs to no call before it. Needs root, BPF and
# XFS.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE" capture --check --json >check.json 2>/dev/null || skip "this machine cannot record"
truncate -s 400M xfs.img
mkfs.xfs -q xfs.img 2>"$err" || skip "no XFS can be made: $(head -n 1 "$err")"
mkdir xfs
mount -o loop xfs.img xfs 2>"$err" || skip "no XFS can be mounted: $(head -n 1 "$err")"
trap 'umount "$tmp/xfs" 2>/dev/null; rm -rf "$tmp"' EXIT
head -c 60M /dev/urandom >xfs/a
cp --reflink=never xfs/a xfs/b
sync
cat >dedupe.py <<'PYTHON'
import fcntl, os, struct
FIDEDUPERANGE = 0xC0189436
a, b = os.open("xfs/a", os.O_RDONLY), os.open("xfs/b", os.O_RDWR)
step, shared = 4 << 20, 0
for at in range(0, 60 << 20, step):
    ask = struct.pack("QQHHIqQQiI", at, step, 1, 0, 0, b, at, 0, 0, 0)
    shared += struct.unpack("QQHHIqQQiI", fcntl.ioctl(a, FIDEDUPERANGE, ask))[7]
assert shared == 60 << 20, shared
PYTHON
python3 -c 'import os
for name in ("xfs/a", "xfs/b"):
    os.posix_fadvise(os.open(name, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)'
run 0 "$REPRISE" capture -q -o job.oplog -- python3 dedupe.py
run 0 "$REPRISE" dump job.oplog
# Reading and comparing 120 MiB takes longer than opening a file.
longest=$(sed -n 's/.* duration=\([0-9]*\) .* open .*xfs\/b.*/\1/p' "$out" | sort -n | tail -n 1)
[[ -n $longest && $longest -lt 5000000 ]] || fail "the open took ${longest:-?} ns"
finish
