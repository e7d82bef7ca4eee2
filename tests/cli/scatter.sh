#!/usr/bin/env bash
# A job that opens few files of a large directory: prepare gives these files inodes that lie as far apart as in the
# recording. On an ext4 of its own, as other file systems number files otherwise. Needs root, BPF and a loop device.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE" capture --check --json >check.json 2>/dev/null || skip "this machine cannot record"
[[ $(id -u) == 0 ]] || skip "needs root for a loop device"
truncate -s 64M image
mkfs.ext4 -q -F -N 16384 image 2>"$err" || skip "no mkfs.ext4: $(head -n 1 "$err")"
mkdir mnt
mount -o loop image mnt 2>"$err" || skip "no loop device: $(head -n 1 "$err")"
trap 'umount mnt; rm -rf "$tmp"' EXIT

mkdir mnt/d
(cd mnt/d && seq -f image-%05g.jpg 0 3999 | while read -r name; do echo data >"$name"; done)
cat >job.py <<'END'
import random
random.seed(3)
for n in random.sample(range(4000), 100):
    open(f"mnt/d/image-{n:05d}.jpg", "rb").read()
END
run 0 "$REPRISE" capture -q -o job.oplog -- python3 job.py

# numbers FOLDER: the named files in the order of their inodes, each with the distance to the one before
numbers() {
    python3 - "$1" named <<'END'
import os, sys
folder, named = sys.argv[1], set(open(sys.argv[2]).read().split())
before = 0
for entry in sorted(os.scandir(folder), key=lambda entry: entry.inode()):
    if entry.name in named:
        print(entry.name, entry.inode() - before if before else "first")
        before = entry.inode()
END
}
python3 -c 'import random
random.seed(3)
print(*(f"image-{n:05d}.jpg" for n in random.sample(range(4000), 100)), sep="\n")' >named
numbers mnt/d >recorded
equal "$(wc -l <recorded)" 100

run 0 "$REPRISE" prepare job.oplog --root mnt/root --map "$tmp/mnt=." --only dataset
contains "$out" "listing entries to create"
contains "$out" "stand for files beside those that ops name: recorded inode numbers leave room for them"
numbers mnt/root/d >prepared
equal "$(cut -d' ' -f1 prepared)" "$(cut -d' ' -f1 recorded)"
# Some numbers are those of directories and of the marker.
paste recorded prepared | awk 'NR > 1 && ($2 - $4 > 3 || $4 - $2 > 3)' >differ
empty differ
entries=$(find mnt/root/d -type f | wc -l)
((entries > 3800 && entries < 4200)) || fail "$entries files, 4000 in the recording"

run 0 "$REPRISE" replay job.oplog --root mnt/root --only dataset --pace afap
run 0 "$REPRISE" prepare job.oplog --root mnt/root --reset
equal "$(find mnt/root/d -type f | wc -l)" "$entries"
run 0 "$REPRISE" prepare job.oplog --root mnt/root --reset --no-listing-entries
equal "$(find mnt/root/d -type f | wc -l)" 100
run 0 "$REPRISE" prepare job.oplog --root mnt/root --json
contains "$out" '"listing_entries": 0'

# Beside the job's own files, none are needed.
run 0 "$REPRISE" prepare job.oplog --root mnt --map "$tmp/mnt=." --only dataset --dry-run
contains "$out" "no empty files are added"
finish
