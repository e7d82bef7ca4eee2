#!/usr/bin/env bash
# usage: capture.sh PROGRAM: recorded by reprise capture, every field of every call is what the program says it did; a
# replay of it, recorded as well, has the same ops.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
need_capture
setup "$name"
record "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
[[ $failures == 0 ]] || finish
check "$tmp/expect" "$tmp/job.oplog"
check_records "$tmp/expect" "$tmp/job.raw"
[[ $failures == 0 ]] || finish
case $name in
    parts) skip "checked, but for the round trip: only its raw records are looked at" ;;
    uring_polled) skip "checked, but for the round trip: the replay has a thread for the kernel's polling thread, and that one its own" ;;
esac
mkdir "$tmp/copy"
run 0 "$REPRISE" prepare -q "$tmp/job.oplog" --root "$tmp/copy" --map "$tmp/root=job" --allow-empty
[[ $failures == 0 ]] || finish
record "$tmp/again.oplog" "$REPRISE" replay -q "$tmp/job.oplog" --root "$tmp/copy" --pace afap -o "$tmp/run.oplog"
[[ $failures == 0 ]] || finish
same "$tmp/job.oplog" "$tmp/again.oplog"
finish
