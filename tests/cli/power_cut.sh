#!/usr/bin/env bash
# `regress --verify` with power cuts: nothing is found on a file system that keeps its promises; each of some synced writes
# that the disk loses is. REPRISE_LOST: how many [3].
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
[[ $EUID == 0 ]] || skip "loop devices and mounts require root"
[[ -e /dev/fuse && -e /dev/loop-control ]] || skip "no FUSE or no loop devices here"
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4"
losetup --find >/dev/null 2>&1 || skip "no loop device is free"

# A job that saves: writes, syncs, renames.
{
    echo '100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>'
    for i in $(seq 10 33); do
        cat <<END
100 17000010$i.000000 openat(AT_FDCWD, "/out/model.tmp", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000050>
100 17000010$i.001000 write(3, ""..., 40000) = 40000 <0.000100>
100 17000010$i.002000 write(3, ""..., 30000) = 30000 <0.000100>
100 17000010$i.003000 fsync(3) = 0 <0.001000>
100 17000010$i.005000 close(3) = 0 <0.000010>
100 17000010$i.006000 rename("/out/model.tmp", "/out/model.$i") = 0 <0.000050>
END
    done
    echo '100 1700001040.000000 +++ exited with 0 +++'
} >job.strace
run 0 "$REPRISE" import -q job.strace -o job.oplog
mkdir target
printf '[suite]\nwarm-up = 0\ncuts = 6\n[job save]\nlog = job.oplog\nreplay = --pace afap\n[target t]\nfolder = target\nmake = mkfs.ext4 -q -F -b 4096\nsize = 64M\n' >suite.ini
loops() { losetup --list --noheadings 2>/dev/null | grep -c "$tmp"; }

REPRISE_KEEP_CUTS=1 run 0 "$REPRISE" regress suite.ini --runs 1 --verify
contains "$out" "synced data after power cuts: ok"
equal "$(loops)" 0
grep -q "$tmp" /proc/mounts && fail "left mounted: $(grep "$tmp" /proc/mounts)"
run 0 "$REPRISE_BUILD_DIR/programs/lose_synced" suite.ini.regress/cut job.oplog save "${REPRISE_LOST:-3}"
grep -E "lost writes found|NOT FOUND" "$out"
contains "$out" "${REPRISE_LOST:-3} of ${REPRISE_LOST:-3} lost writes found"
contains "$out" "synced by op"
# Files of others in the folder of the images stay.
rm -r suite.ini.regress/cut
mkdir suite.ini.regress/cut
echo mine >suite.ini.regress/cut/mine
run 2 "$REPRISE" regress suite.ini --runs 1 --verify -f
contains "$err" "suite.ini.regress/cut/mine is in the way"
equal "$(cat suite.ini.regress/cut/mine)" mine
rm suite.ini.regress/cut/mine
# A command that makes nothing is said.
sed -i 's/^make = .*/make = false/' suite.ini
run 4 "$REPRISE" regress suite.ini --runs 1 --verify -f
contains "$err" "failed"
equal "$(loops)" 0
finish
