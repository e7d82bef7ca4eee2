#!/usr/bin/env bash
# usage: capture_attach.sh attached: recorded by attaching to it, while another recorder records another program: each has
# what was there before, and nothing of the other's.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
attaches=yes
need_capture
setup "$name"
"$programs/c/$name" "$tmp/root" "$tmp/expect" &
job=$!
# until COMMAND...: succeeds, soon
until_() {
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "this did not come: $*"
}
until_ test -e "$tmp/root/ready"
until_ test -e "$tmp/root/ready.child"
"$REPRISE" capture -q --raw --pid "$job" -o "$tmp/job.oplog" 2>"$tmp/recorder.err" &
recorder=$!
# shellcheck disable=SC2317 # called by until_
seeded() { [[ $("$REPRISE" __raw "$tmp/job.raw" | grep -c SEED_MAP) -gt 0 ]]; }
until_ seeded
mkdir "$tmp/other"
"$programs/c/pipes" "$tmp/other" --setup
record "$tmp/other.oplog" "$programs/c/pipes" "$tmp/other" "$tmp/expect.other"
# Somebody else drops pages: of a file of the job, which is told, and of one that it has nothing to do with.
head -c 100000 /dev/zero >"$tmp/stranger"
sync "$tmp/stranger" "$tmp/root/data"
for file in "$tmp/stranger" "$tmp/root/data"; do
    dd if="$file" iflag=nocache count=0 status=none
done
inode() { stat -c %i "$1"; }
rm "$tmp/root/hold"
wait "$job" || fail "the job failed"
wait "$recorder" || fail "the recorder failed: $(cat "$tmp/recorder.err")"
[[ $failures == 0 ]] || finish
check_records "$tmp/expect" "$tmp/job.raw"
"$REPRISE" __raw "$tmp/job.raw" | grep ' 0/0 #0 evicted ' >"$tmp/evicted"
case $(stat -f -c %T "$tmp") in
    ext2/ext3 | xfs | btrfs) grep -q ":$(inode "$tmp/root/data") " "$tmp/evicted" || fail "pages of the job's file went untold" ;;
esac
! grep ":$(inode "$tmp/stranger") " "$tmp/evicted" || fail "pages of another file"
check_records "$tmp/expect.other" "$tmp/other.raw"
finish
