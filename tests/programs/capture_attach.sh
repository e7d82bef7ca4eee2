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
seeded() { [[ $("$REPRISE" __raw "$tmp/job.raw" | grep -c SEED_MAP) -gt 0 ]]; }
until_ seeded
mkdir "$tmp/other"
"$programs/c/pipes" "$tmp/other" --setup
record "$tmp/other.oplog" "$programs/c/pipes" "$tmp/other" "$tmp/expect.other"
rm "$tmp/root/hold"
wait "$job" || fail "the job failed"
wait "$recorder" || fail "the recorder failed: $(cat "$tmp/recorder.err")"
[[ $failures == 0 ]] || finish
check_records "$tmp/expect" "$tmp/job.raw"
check_records "$tmp/expect.other" "$tmp/other.raw"
finish
