#!/usr/bin/env bash
# usage: capture.sh PROGRAM: recorded by reprise capture, every field of every call is what the program says it did.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
need_capture
setup "$name"
record "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
[[ $failures == 0 ]] || finish
check "$tmp/expect" "$tmp/job.oplog"
check_records "$tmp/expect" "$tmp/job.raw"
finish
