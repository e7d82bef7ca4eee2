#!/usr/bin/env bash
# A read through a loop device counts once, whether the disk below or the page cache of its file serves it. Needs root,
# BPF, loop devices and a file system on a disk.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE" capture --check --json >check.json 2>/dev/null || skip "this machine cannot record"
truncate -s 96M image
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 image 2>"$err" || skip "no mkfs.ext4: $(head -n 1 "$err")"
device=$(losetup -f --show image 2>"$err") || skip "no loop device: $(head -n 1 "$err")"
trap 'umount "$tmp/mnt" 2>/dev/null; losetup -d "$device"; rm -rf "$tmp"' EXIT
mkdir mnt
mount "$device" mnt 2>"$err" || skip "it cannot be mounted: $(head -n 1 "$err")"
head -c 32M /dev/urandom >mnt/f
sync

# direct NAME: how much the devices read for each byte of a 32 MiB read
direct() {
    run 0 "$REPRISE" capture -q -f -o "$1.oplog" -- dd if=mnt/f of=/dev/null bs=1M iflag=direct
    run 0 "$REPRISE" analyze "$1.oplog" --no-what-if --json
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["logs"][0]["page_cache"]["read_amplification"])' "$out"
}
# Others on this machine may read meanwhile.
once() { python3 -c 'import sys; sys.exit(not 0.9 < float(sys.argv[1]) < 1.4)' "$1"; }

for where in disk memory; do
    for try in 1 2 3 4; do
        if [[ $where == disk ]]; then
            python3 -c 'import os; os.posix_fadvise(os.open("image", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)'
        else
            cat image >/dev/null
        fi
        amplification=$(direct "$where")
        once "$amplification" && break
        echo "from $where, try $try: $amplification bytes read for each asked for"
    done
    once "$amplification" || fail "from $where: the devices read $amplification bytes for each byte asked for"
done
finish
