#!/usr/bin/env bash
# Replays and predictions with another access to the same files: what they say, and what is refused.
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# A file of 1 MB read in pieces that are no blocks, and one written.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/in open"
    for i in $(seq 0 99); do echo "$((i * 10)) /data/in read $((i * 10000)) 10000"; done
    echo "2000 /data/in close"
} >reads.log
{
    cat reads.log
    echo "3000 /data/out add"
    echo "3000 /data/out open"
    for i in $(seq 0 9); do echo "$((3000 + i)) /data/out write $((i * 10000)) 10000"; done
    echo "4000 /data/out close"
} >both.log
mkdir reads both
for name in reads both; do
    run 0 "$REPRISE" import $name.log -o $name.oplog
    run 0 "$REPRISE" prepare -q $name.oplog --root $name
done
replay() { "$REPRISE" replay "$1.oplog" --root "$1" --pace afap "${@:2}"; }

run 0 replay reads --direct --json=direct.json
contains "$out" "what-if: --direct; not the job as recorded"
contains "$out" "job         SAME: 102 I/O ops as recorded"
contains "$out" "with O_DIRECT, "
contains direct.json '"direct": true'
contains direct.json '"direct_reads": '
python3 - <<'END' || fail "the counts of direct.json: $(grep -A 20 '"access"' direct.json)"
import json
access = json.load(open("direct.json"))["access"]
assert access["direct_reads"] + access["buffered_reads"] == 100
assert access["direct_refused_opens"] == 1 or access["direct_fetched_bytes"] > access["direct_asked_bytes"] == 1_000_000
END

run 0 replay reads --read-as-mmap
contains "$out" "100 reads of 977 KiB as page faults"
run 0 replay reads --prefetch -v
contains "$out" "1 file of 977 KiB asked for when opened"
run 0 replay both --sync-writes --json=sync.json
contains "$out" "10 writes of 97.7 KiB with O_DSYNC"
contains sync.json '"sync_writes": true'
# As it was: nothing is said.
run 0 replay reads --json=as-is.json
lacks "$out" "what-if"
lacks "$out" "access "
contains as-is.json '"access": null'
contains as-is.json '"direct": false'
contains as-is.json '"mmap_as_read": null'

# What would change nothing.
run 2 replay reads --mmap-as-read
contains "$err" "--mmap-as-read: reads.oplog touches no mapped data file"
run 2 replay reads --sync-writes
contains "$err" "--sync-writes: reads.oplog writes no data"
run 2 replay reads --direct --only /data/none --allow-empty
contains "$err" "reads no data through the page cache"
run 2 "$REPRISE" replay reads.oplog --engine null --pace afap --direct
contains "$err" "--engine null performs nothing that --direct could change"
# What contradicts itself, and what is no size.
run 2 replay reads --direct --read-as-mmap
contains "$err" "--read-as-mmap contradicts --direct: page faults go through the page cache"
run 2 replay reads --direct --prefetch
contains "$err" "--prefetch contradicts --direct"
run 2 replay reads --mmap-as-read=16 --read-as-mmap
contains "$err" "--mmap-as-read is '16', expected a size from 4KiB to 1GiB"
run 2 replay reads --mmap-as-read=large
contains "$err" "--mmap-as-read"
# Read-ahead is the mount's: left alone.
run 2 replay reads --read-ahead 12MiB
contains "$err" "--read-ahead: a replay does not change it"

# The option without a value takes none of the words behind it.
run 2 "$REPRISE" replay --mmap-as-read reads.oplog --root reads --pace afap
contains "$err" "touches no mapped data file"

# In virtual time.
storage_model model.json
reads_of() { # OPTION...: requests to the modelled storage
    "$REPRISE" predict reads.oplog --storage model.json --json "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["storage_reads"])'
}
run 0 "$REPRISE" predict reads.oplog --storage model.json --direct
contains "$out" "what-if: --direct; not the job as recorded"
equal "$(reads_of --direct)" 100
equal "$(reads_of --direct --cache warm)" 100
[[ $(reads_of) -lt 20 && $(reads_of --read-ahead 1MiB) -lt $(reads_of) ]] || fail "$(reads_of) requests, with more read-ahead $(reads_of --read-ahead 1MiB)"
run 2 "$REPRISE" predict reads.oplog --storage model.json --mmap-as-read
contains "$err" "touches no mapped data file"

# A model file that was mapped, as recorded here.
if can_record; then
    load=$REPRISE_SOURCE_DIR/tests/bench/mmap_load/load.py
    python3 "$load" make model.safetensors --bytes 8000000
    python3 -c 'import os, sys; os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' model.safetensors
    run 0 "$REPRISE" capture -q -o mapped.oplog -- python3 "$load" mmap "$tmp/model.safetensors"
    mkdir mapped
    run 0 "$REPRISE" prepare -q mapped.oplog --root mapped
    run 0 replay mapped --mmap-as-read=256KiB --json=mapped.json
    contains "$out" "what-if: --mmap-as-read=256KiB; not the job as recorded"
    contains "$out" " in place of "
    contains mapped.json '"mmap_as_read": 262144'
    python3 - <<'END' || fail "the counts of mapped.json: $(grep -A 20 '"access"' mapped.json)"
import json
access = json.load(open("mapped.json"))["access"]
assert 7_500_000 < access["mmap_as_read_bytes"] < 8_100_000 and 30 <= access["mmap_as_reads"] <= 40
END
    run 0 "$REPRISE" predict mapped.oplog --storage model.json --mmap-as-read --direct --json=predicted.json
    contains "$out" "what-if: --direct --mmap-as-read=1MiB"
    run 0 replay mapped --prefetch
    contains "$out" "1 file of 7.63 MiB asked for when opened"
else
    echo "this machine cannot record: a mapped model file is not tested"
fi

finish
