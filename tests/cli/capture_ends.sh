#!/usr/bin/env bash
# `reprise capture`: what is said of pages that were dropped and came again, of how the job ended, and where a signal ends the making
# of the op log. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"

# What is dropped and read again comes from the device again, however warm it was at first.
if [[ $(stat -f -c %T .) != tmpfs ]] && command -v python3 >/dev/null; then
    head -c 8388608 /dev/urandom >dropped && sync dropped && cat dropped >/dev/null
    run 0 "$REPRISE" capture -q -f -o dropped.oplog -- python3 -c '
import os
fd = os.open("dropped", os.O_RDONLY)
for _ in range(3):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.lseek(fd, 0, os.SEEK_SET)
    while os.read(fd, 1 << 20):
        pass'
    run 0 "$REPRISE" analyze dropped.oplog --only "$tmp/dropped" --no-what-if --json
    fetched=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["logs"][0]["page_cache"]["fetched_bytes"])' "$out")
    [[ $fetched == 25165824 ]] || fail "8 MiB dropped and read three times: $fetched bytes fetched"
    run 0 "$REPRISE" info dropped.oplog --only "$tmp/dropped"
    contains "$out" "24.0 MiB"
fi

# The memory that the job held, and not the recorder's, which its process had before it became the job's.
if command -v python3 >/dev/null; then
    run 0 "$REPRISE" capture -q -f -o held.oplog -- python3 -c 'held = b"x" * (100 << 20)'
    run 0 "$REPRISE" dump --tables --no-ops held.oplog
    held=$(grep -o 'peak_memory_bytes"="[0-9]*' "$out" | grep -o '[0-9]*$')
    if [[ -n $held ]]; then # Linux before 6.16 does not tell
        ((held > 100 << 20 && held < 120 << 20)) || fail "100 MiB held: $held"
        run 0 "$REPRISE" capture -q -f -o held.oplog -- sh -c 'exit 0'
        run 0 "$REPRISE" dump --tables --no-ops held.oplog
        held=$(grep -o 'peak_memory_bytes"="[0-9]*' "$out" | grep -o '[0-9]*$')
        ((${held:-0} < 8 << 20)) || fail "a shell that ends held $held"
    fi
fi

# How the job ended is in the log, and said of a replay.
for how in 'exit 3' 'kill -9 $$'; do
    rc=0
    "$REPRISE" capture -q -f -o ended.oplog -- sh -c "echo >>ended.txt; $how" >/dev/null 2>&1 || rc=$?
    ((rc != 0)) || fail "capture of a job that fails: 0"
    said="exit code 3"
    [[ $how == exit* ]] || said="signal 9"
    run 0 "$REPRISE" info ended.oplog
    grep -qE "^  ended +$said$" "$out" || fail "$how: $(grep ended "$out")"
    rm -rf ended.root
    run 0 "$REPRISE" prepare ended.oplog --root ended.root
    run "0 1" "$REPRISE" replay ended.oplog --root ended.root -v
    contains "$out" "The recorded job ended with $said"
done
run 0 "$REPRISE" capture -q -f -o ended.oplog -- sh -c 'echo >>ended.txt'
run 0 "$REPRISE" info ended.oplog
grep -q "^  ended" "$out" && fail "a job that ended well: $(grep "^  ended" "$out")"

# A signal while the op log is made, the job being over: what is left and what to do is said, and no half log stays.
"$REPRISE" capture -f -o cut.oplog -- dd if=/dev/zero of=/dev/null bs=1 count=300000 2>cut.err &
recorder=$!
for _ in $(seq 6000); do [[ -e cut.oplog.partial ]] && break; sleep 0.01; done
kill -TERM $recorder
rc=0
wait $recorder || rc=$?
equal "$rc" 143
contains cut.err "reprise: interrupted while the op log was made"
contains cut.err "the raw records are in cut.raw; retry with: reprise import cut.raw -o cut.oplog"
[[ ! -e cut.oplog && ! -e cut.oplog.partial ]] || fail "an interrupted assembly left a log"
run 0 "$REPRISE" import -q cut.raw -o cut.oplog
rm -f cut.raw cut.oplog
finish
