#!/usr/bin/env bash
# `reprise import`: summary, JSON, refusals and what they leave behind.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

printf 'fio version 3 iolog\n1 /d/a add\n2 /d/a open\n30 /d/a read 0 4096\nnonsense\n' >job.log
run 1 "$REPRISE" import job.log -o job.oplog  # a line was lost, which is said first
head -n 1 "$err" | grep -q "^INCOMPLETE: the recording lost 1 event" || fail "the loss is not said first"
grep -q 'job.oplog: 2 ops of 1 task in 1 process over' "$out" || fail "no summary"
grep -q 'loss .* 1 .*malformed_lines .*job.log:5' "$out" || fail "the bad line is not told"
[[ -s job.oplog && ! -e job.oplog.partial ]] || fail "no log, or a .partial was left"
grep -aqP '\x06queues\x02' job.oplog || fail "the inferred queues are not kept in the log"

# A file that exists is not replaced unasked.
cp job.oplog before
run 2 "$REPRISE" import job.log -o job.oplog
grep -q -- '--force' "$err" || fail "no way out is named"
cmp -s job.oplog before || fail "the output was touched"
run 1 "$REPRISE" import job.log -o job.oplog --force --json
contains "$out" '"format": "fio"'
contains "$out" '"ops": 2'
contains "$out" '"name": "malformed_lines"'

# The output must not be an input, not even by another name or with --force.
cp job.log same.log
ln same.log other.name
run 2 "$REPRISE" import same.log -o other.name --force
cmp -s same.log job.log || fail "the input was overwritten"

# Packed, and named by hand.
gzip -k job.log
zstd -q job.log -o job.log.zst
for packed in job.log.gz job.log.zst; do
    run 1 "$REPRISE" import "$packed" -o "$packed.oplog" --from fio
    cmp -s "$packed.oplog" job.oplog || grep -q '2 ops' "$out" || fail "$packed came in differently"
done
head -c 60 job.log.gz >cut.gz
run 1 "$REPRISE" import cut.gz -o cut.oplog --from fio
grep -q 'loss .*inputs_cut' "$out" || fail "the cut is not told"

# A directory is its importable files.
mkdir logs && cp job.log logs/1 && cp job.log logs/2 && echo hello >logs/readme
run 1 "$REPRISE" import logs -o logs.oplog
grep -q '4 ops of 2 tasks' "$out" || fail "not both logs of the directory"

# Darshan: what its traces cannot tell is told, and every command takes the log.
dxt="$REPRISE_SOURCE_DIR/tests/fuzz/corpus/darshan/small.dxt.txt"
run 0 "$REPRISE" import "$dxt" -o dxt.oplog
for counter in metadata_calls_unseen causes_unseen mpiio_calls; do
    grep -q "warning .*$counter" "$out" || fail "$counter is no warning"
done
run 0 "$REPRISE" info dxt.oplog
contains "$out" "metadata_calls_unseen"
run 0 "$REPRISE" replay dxt.oplog --engine null --pace afap
sed 's|/data/train/a b.h5|/usr/lib/a.py|' "$dxt" >unread
run 0 "$REPRISE" import unread -o unread.oplog
grep -q 'warning .* 5 .*dataset_never_read.*names /data/train, where' "$out" || fail "the unread data set is not told"

# A full disk: what went wrong, and nothing of a file that is gone.
{
    echo "fio version 3 iolog"
    for i in $(seq 3000); do printf '%d /d/%x add\n%d /d/%x open\n' "$i" "$((i * 7919 * RANDOM))" "$i" "$((i * 104729 * RANDOM))"; done
} >names.log
echo "a key of more than 16 bytes" >key
mkdir full
if mount -t tmpfs -o size=4k tmpfs full 2>/dev/null; then
    run 0 "$REPRISE" import names.log -o names.oplog
    for command in "import names.log" "anonymize --key-file key names.oplog"; do
        # shellcheck disable=SC2086
        run 4 "$REPRISE" $command -o full/x.oplog
        contains "$err" "No space left on device"
        contains "$err" "free space"
        lacks "$err" "--recover"
        equal "$(ls -A full)" ""
    done
    umount full
else
    echo "no tmpfs can be mounted: the full disk is not tested"
fi

# Killed: it ends by the signal and leaves nothing.
awk 'BEGIN { print "fio version 3 iolog\n1 /d/a add\n1 /d/a open"
             for (i = 2; i < 3000000; i++) print i " /d/a read " (i % 65536) * 4096 " 4096" }' >long.log
for signal in INT TERM HUP; do
    env --default-signal="$signal" "$REPRISE" import long.log -o killed.oplog >"$out" 2>"$err" &
    job=$!
    # (With a sanitizer, the signal comes before anything is written.)
    for _ in $(seq 150); do [[ -e killed.oplog.partial ]] && break; sleep 0.01; done
    kill -"$signal" $job
    wait $job 2>/dev/null
    equal $? $((128 + $(kill -l "$signal")))
    [[ ! -e killed.oplog && ! -e killed.oplog.partial ]] || fail "SIG$signal leaves $(echo killed.oplog*)"
done
rm -f long.log

# Refusals: exit code 3, one message, nothing left.
: >empty
head -c 4096 /dev/urandom >garbage
for bad in empty garbage missing logs/readme /dev/null; do
    run 3 "$REPRISE" import "$bad" -o bad.oplog
    grep -q "$bad" "$err" || fail "$bad is not named"
    [[ ! -e bad.oplog && ! -e bad.oplog.partial ]] || fail "something was left of $bad"
done
run 2 "$REPRISE" import job.log -o bad.oplog --from nonsense
run 2 "$REPRISE" import job.log -o "$tmp"
run 2 "$REPRISE" import job.log
run 4 "$REPRISE" import job.log -o no/such/folder/x.oplog
finish
