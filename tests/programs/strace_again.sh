#!/usr/bin/env bash
# usage: strace_again.sh PROGRAM: recorded by strace, replayed, and the replay recorded by strace: the same ops.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
command -v strace >/dev/null || skip "strace is not installed"
no_strace_for "$name"
setup "$name"
record_strace "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
mkdir "$tmp/copy"
run 0 "$REPRISE" prepare -q "$tmp/job.oplog" --root "$tmp/copy" --map "$tmp/root=job" --allow-empty
[[ $failures == 0 ]] || finish
record_strace "$tmp/again.oplog" "$REPRISE" replay -q "$tmp/job.oplog" --root "$tmp/copy" --pace afap -o "$tmp/run.oplog"
[[ $failures == 0 ]] || finish
same "$tmp/job.oplog" "$tmp/again.oplog" --no-touch
finish
