#!/usr/bin/env bash
# usage: capture_raw.sh PROGRAM: as capture.sh, with raw tracepoints, as where tp_btf programs are refused.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/record.bash"
name=$1
export REPRISE_CAPTURE_RAW_TRACEPOINTS=1
need_capture
contains "$out" "with raw tracepoints"
setup "$name"
record "$tmp/job.oplog" "$programs/c/$name" "$tmp/root" "$tmp/expect"
[[ $failures == 0 ]] || finish
check "$tmp/expect" "$tmp/job.oplog"
check_records "$tmp/expect" "$tmp/job.raw"
finish
