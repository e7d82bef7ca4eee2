#!/usr/bin/env bash
# Files written by memory: as many pages are recorded as the device is written, whatever the size of the page cache's
# folios, and a replay on any file system writes them. Needs root, BPF, loop devices and mkfs.ext4; takes XFS and btrfs where there are any.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
if [[ $EUID != 0 ]] || ! can_record; then
    skip "this user cannot record"
fi

mounted=()
trap 'cd /; for name in "${mounted[@]}"; do umount "$tmp/$name" 2>/dev/null; done; rm -rf "$tmp"' EXIT
# make NAME: a file system of that kind at ./NAME; false: there is none here.
make() {
    mkdir "$1" && truncate -s 400M "$1.img" || return
    case $1 in
        tmpfs) mount -t tmpfs -o size=100m tmpfs tmpfs || return ;;
        ext4) mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 ext4.img && mount -o loop ext4.img ext4 || return ;;
        xfs | btrfs) "mkfs.$1" -q -f "$1.img" && mount -o loop "$1.img" "$1" || return ;;
    esac
    mounted+=("$1")
} >"$err" 2>&1
make ext4 || skip "no ext4 of a loop device: $(head -n 1 "$err")"
for name in xfs btrfs tmpfs; do
    make "$name" || echo "not tested: $name, $(head -n 1 "$err")"
done

size=$((32 << 20))
cat >job.py <<'EOF2'
import mmap, os, sys
path, how, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
fresh = how in ("whole", "pages", "few")
file = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if fresh else 0), 0o644)
if fresh:
    os.ftruncate(file, size)
data = mmap.mmap(file, size)
if how == "whole":
    for at in range(0, size, 1 << 20):
        data[at:at + (1 << 20)] = b"x" * (1 << 20)
elif how == "read":
    for at in range(0, size, 4096):
        data[at] = (data[at] + 1) % 256
else:  # one byte of each page, or of each 16th
    for at in range(0, size, 4096 if how in ("pages", "there") else 65536):
        data[at + 5] = 7
data.flush()
EOF2
# pages LOG FILE: how many different ones were written to
pages() {
    "$REPRISE" dump --json --only "$2" "$1" | python3 -c '
import json, sys
pages = set()
for line in sys.stdin:
    op = json.loads(line)
    if op["kind"] == "touch" and op.get("flags", 0) == 1:
        at, ranges = op["offset"], op.get("list") or [0, op["size"]]
        for skip, bytes in zip(ranges[::2], ranges[1::2]):
            at += skip
            pages.update(range(at // 4096, (at + bytes) // 4096))
            at += bytes
print(len(pages))'
}
# written NAME: KiB that its device has been written
written() {
    local device
    device=$(findmnt -n -o SOURCE "$tmp/$1")
    awk -v device="${device#/dev/}" '$3 == device { printf "%d\n", $10 / 2 }' /proc/diskstats
}
# near A B PERCENT: A is at least B, and not much more
near() { (($1 >= $2 && $1 * 100 <= $2 * (100 + $3))); }

for from in "${mounted[@]}"; do
    for how in whole pages few there read; do
        file=$tmp/$from/file
        [[ $from != tmpfs || $how != read ]] || continue # maps what is read for writing, too: counted as unseen
        case $how in
            there | read)
                head -c "$size" /dev/urandom >"$file"
                sync "$file"
                python3 -c 'import os, sys; os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' "$file"
                ;;
        esac
        run 0 "$REPRISE" capture -q -f -o job.oplog -- python3 job.py "$file" "$how" "$size"
        [[ $failures == 0 ]] || finish
        sync "$file"
        recorded=$(($(pages job.oplog "$file") * 4))
        case $how in
            few) # as much as was written, a folio for each byte; file systems have some blocks of their own besides
                disk=$(du -k "$file" | cut -f 1)
                near "$disk" "$recorded" 2 || fail "$from, $how: $recorded KiB recorded, $disk on disk"
                ;;
            *) equal "$recorded" $((size / 1024)) ;;
        esac
        rm "$file"
        for to in "${mounted[@]}"; do
            [[ $to != tmpfs ]] || continue
            mkdir "$to/root"
            run 0 "$REPRISE" prepare -q job.oplog --root "$to/root" --only "$file" --json
            # Folios of its own: the bytes here and there cost more where they are larger.
            most=5
            [[ $how != few ]] || most=$((100 * size / 1024 / recorded))
            sync
            before=$(written "$to")
            run 0 "$REPRISE" replay -q job.oplog --root "$to/root" --only "$file" --pace afap
            sync
            after=$(written "$to")
            # With room for the file system's own: the journal, trees, the files of the root.
            near "$((after - before))" "$recorded" "$((most + 200000 / recorded))" ||
                fail "recorded on $from, $how: $recorded KiB; the replay on $to wrote $((after - before))"
            rm -rf "$to/root"
        done
    done
done

# The room that it takes.
run 0 "$REPRISE" capture -q -f -o job.oplog -- python3 job.py "$tmp/ext4/file" whole "$size"
mkdir small && mount -t tmpfs -o size=16m tmpfs small && mounted+=(small)
mkdir small/root
run 4 "$REPRISE" prepare -q job.oplog --root small/root --only "$tmp/ext4/file"
contains "$err" "the replay does not fit on the file system of small/root: it writes $size bytes"
finish
