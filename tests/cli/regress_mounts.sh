#!/usr/bin/env bash
# `reprise regress` where file systems come and go: a remount that is none, one made anew, one mounted in another way.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
[[ $EUID == 0 ]] || skip "loop devices and mounts require root"
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4"
truncate -s 64M image
mkdir disk
again() { mount -o loop image disk && mkdir -p disk/t; }
{ mkfs.ext4 -q image && again; } || skip "no loop device can be mounted here"
trap 'umount disk 2>/dev/null; rm -rf "$tmp"' EXIT

printf '[w]\nrw=write\nbs=4k\nsize=1m\n' >w.ini
run 0 "$REPRISE" generate -q w.ini -o w.oplog
suite() { printf '[suite]\nruns = 6\nwarm-up = 0\n[job w]\nlog = w.oplog\n[target a]\nfolder = disk/t\n%s\n' "$1" >suite.ini; }

# What unmounts nothing is no remount; what does is one.
not_mounted_anew() {
    suite "remount = $1"
    run 1 "$REPRISE" regress suite.ini --runs 1 --verify -f
    contains "$out" "content after a remount: FAILED"
    contains "$out" "the remount command unmounted nothing"
}
not_mounted_anew true
not_mounted_anew "mount -o remount $tmp/disk"
exec 7<disk/t # a file system in use stays, and what it has in memory
not_mounted_anew "umount -l $tmp/disk && mount -o loop $tmp/image $tmp/disk"
exec 7<&-
suite "remount = umount $tmp/disk && mount -o loop $tmp/image $tmp/disk"
run 0 "$REPRISE" regress suite.ini --runs 1 --verify -f
contains "$out" "content after a remount: ok (2 files, 1.00 MiB)"
# Mounted anew it is the same file system: the runs go on.
umount disk && again
run 0 "$REPRISE" regress suite.ini --runs 2
contains "$out" "1 of 2 runs were made by an earlier call"

# A baseline beside a mount of other options: new runs, and the difference is said.
run 0 "$REPRISE" regress suite.ini --baseline base.json -f
mount -o remount,sync disk
run 1 "$REPRISE" regress suite.ini --baseline base.json
contains "$out" "WORSE: elapsed"
contains "$out" "note: The file system differs: baseline ext4 (rw,relatime"
lacks "$out" "earlier call"
# Runs under these options do not go on under others, nor on another file system.
mount -o remount,async disk
run 2 "$REPRISE" regress suite.ini --runs 7
contains "$err" "has runs on another file system of target a"
contains "$err" "then: ext4 (rw,sync"
{ umount disk && mkfs.ext4 -q -F image && again; } || fail "no new file system"
cp suite.ini.regress/runs.before.jsonl suite.ini.regress/runs.jsonl
run 2 "$REPRISE" regress suite.ini
contains "$err" "has runs on another file system of target a"
run 0 "$REPRISE" regress suite.ini -f
finish
