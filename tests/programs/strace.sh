#!/usr/bin/env bash
# usage: strace.sh PROGRAM: recorded by strace and imported, every field of every call is what the program says it did.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
no_strace_for "$name"
command -v strace >/dev/null || skip "strace is not installed"
setup "$name"
record_strace "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
[[ $failures == 0 ]] || finish
# Page faults are no calls.
check "$tmp/expect" "$tmp/job.oplog" --no-touch
finish
