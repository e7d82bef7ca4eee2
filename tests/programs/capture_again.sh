#!/usr/bin/env bash
# usage: capture_again.sh PROGRAM: recorded by reprise capture, replayed, and the replay recorded: the same ops.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
need_capture
[[ $name != parts ]] || skip "only its raw records are looked at"
[[ $name != uring_polled ]] || skip "the replay has a thread for the kernel's polling thread, and that one has its own"
setup "$name"
record "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
mkdir "$tmp/copy"
run 0 "$REPRISE" prepare -q "$tmp/job.oplog" --root "$tmp/copy" --map "$tmp/root=job" --allow-empty
[[ $failures == 0 ]] || finish
record "$tmp/again.oplog" "$REPRISE" replay -q "$tmp/job.oplog" --root "$tmp/copy" --pace afap -o "$tmp/run.oplog"
[[ $failures == 0 ]] || finish
same "$tmp/job.oplog" "$tmp/again.oplog"
finish
