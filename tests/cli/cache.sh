#!/usr/bin/env bash
# replay --cache: what is in memory when the run begins, what the device reads, and what the result says of both.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# number FILE KEY: of "cache" or the result itself in JSON
number() { sed -n "s/^ *\"$2\": \([0-9]*\|null\),\{0,1\}$/\1/p" "$1" | head -n 1; }

# Three files of 1 MiB, read in pieces of 64 KiB; the last one only to its half.
size=$((1 << 20)) part=$((64 << 10))
read_bytes=$((2 * size + size / 2))
{
    echo "fio version 3 iolog"
    for file in a b c; do
        echo "0 /data/$file add"
        echo "0 /data/$file open"
        until=$([[ $file == c ]] && echo $((size / 2)) || echo $size)
        for ((at = 0; at < until; at += part)); do echo "0 /data/$file read $at $part"; done
        echo "0 /data/$file close"
    done
} >job.log
run 0 "$REPRISE" import job.log -o job.oplog

# Wrong uses.
run 2 "$REPRISE" replay job.oplog --root root --cache hot
head -n 1 "$err" >first
contains first "--cache"
contains first "hot"
for choice in cold warm recorded as-is; do contains "$err" "$choice"; done
run 2 "$REPRISE" replay job.oplog --engine null --pace afap --cache cold
contains "$err" "--cache with --engine null, which reads no files"
run 2 "$REPRISE" replay job.oplog --root root --drop-caches --cache as-is
contains "$err" "--drop-caches contradicts --cache as-is"

# replays ROOT REGIME...: its JSON is in run.json.
replays() {
    local root=$1 want=0
    shift
    [[ $root != below && $root != "${memory:-none}"/* ]] || want=1 # no storage is measured there
    if [[ $root == holes ]]; then
        want=1
        # Where others read from the device meanwhile, it cannot be told that the run did not: then once more.
        for _ in 1 2 3 4 5; do
            local rc=0
            "$REPRISE" replay job.oplog --root holes --pace afap -f --json=run.json "$@" >"$out" 2>"$err" || rc=$?
            [[ $rc != 1 ]] || return 0
            sleep 1
        done
    fi
    run "$want" "$REPRISE" replay job.oplog --root "$root" --pace afap -f --json=run.json "$@"
}

# resident BYTES COMMAND...: a machine that pages out by itself may take some back before the run; then once more.
resident() {
    local want=$1
    shift
    for _ in 1 2 3 4 5; do
        "$@"
        [[ $(number run.json resident_before_bytes) != "$want" ]] || return 0
    done
    fail "$(number run.json resident_before_bytes) bytes in memory before, expected $want: $*"
}

# On tmpfs nothing is cold.
if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs ]]; then
    memory=$(mktemp -d /dev/shm/reprise-test-XXXXXX)
    trap 'rm -rf "$tmp" "$memory"' EXIT
    run 0 "$REPRISE" prepare job.oplog --root "$memory/root"
    resident "$read_bytes" replays "$memory/root" --cache cold
    contains "$out" "NOT MEASURED: the root is on tmpfs, which is memory: no regime is cold there, and no storage was measured."
    equal "$(number run.json memory_files)" 3
    rm -rf "$memory"
else
    echo "SKIPPED: /dev/shm is no tmpfs"
fi

run 0 "$REPRISE" prepare job.oplog --root root
[[ $(stat -f -c %T root) != tmpfs ]] || skip "the temporary directory is a tmpfs; set TMPDIR to a real disk"

replays root --cache cold
contains "$out" "cold (as asked); 0 B of 2.50 MiB in memory before, "
head -n 4 "$out" | grep -q "^cache  *cold" || { fail "the regime is not in the first lines"; cat "$out"; }
equal "$(number run.json resident_before_bytes)" 0
[[ $(number run.json resident_after_bytes) -ge $((read_bytes - size / 4)) ]] || fail "what was read is not in memory"
grep -q '"regime": "cold"' run.json || fail "run.json does not name the regime"
resident "$read_bytes" replays root --cache warm
contains "$out" "warm (as asked); 2.50 MiB of 2.50 MiB in memory before, 2."
resident "$read_bytes" replays root --cache as-is

# Files without data on the device: what is read comes neither from there nor from memory.
run 0 "$REPRISE" prepare job.oplog --root holes --content sparse
replays holes --cache cold -o holes.oplog
contains "$out" "NOT MEASURED: no data on the device"
contains "$out" "POOR"
contains "$out" "NOT MEASURED: 3 of 3 files that are read have no data on the device: neither storage nor memory was measured."
replays holes --cache cold -v
contains "$out" "note: 2.50 MiB of what is read of 3 files have no blocks on the device"
equal "$(number run.json sparse_files)" 3
run 1 "$REPRISE" compare job.oplog holes.oplog
contains "$out" "NOT MEASURED: no data on the device"

# An import says nothing of its page cache: left alone by default, and where the recorded regime was asked for.
replays root
contains "$out" "as-is (default: the log does not say what was in memory); "
replays root --cache recorded
contains "$out" "as-is (not recorded: the log does not say what was in memory); "
grep -q '"asked": "recorded"' run.json || fail "run.json does not say what was asked for"
grep -q '"regime": "as-is"' run.json || fail "run.json does not say what was done"

# Somebody who may not empty the machine's caches.
if command -v setpriv >/dev/null && [[ $EUID == 0 ]]; then
    chmod 755 "$tmp"
    run 4 setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap --drop-caches --read-only
    contains "$err" "cannot empty the caches of the machine"
    contains "$err" "run as root"
fi

# A tmpfs below a root that is on something else: that is what is named.
mkdir -p below/data
if mount -t tmpfs -o size=16m tmpfs below/data 2>/dev/null; then
    trap 'umount below/data 2>/dev/null; rm -rf "$tmp"' EXIT
    run 0 "$REPRISE" prepare job.oplog --root below
    replays below --cache cold -v
    contains "$out" "All files that are read are on a tmpfs, which is memory and not the root's $(df --output=fstype below | tail -n 1): "
    lacks "$out" "The root is on"
    contains "$out" "NOT MEASURED: 2.50 MiB of the 2.50 MiB that are read are on a tmpfs, which is memory: no regime is cold there"
    umount below/data
fi

# A loop device: what its counter says.
if [[ $EUID == 0 ]] && truncate -s 64M image && mkfs.ext4 -q -F -O ^has_journal image 2>/dev/null &&
    mkdir mnt && mount -o loop,noatime image mnt 2>/dev/null; then
    trap 'umount mnt 2>/dev/null; rm -rf "$tmp"' EXIT
    run 0 "$REPRISE" prepare job.oplog --root mnt/root
    replays mnt/root --cache cold
    [[ $(number run.json device_counter_read_bytes) -ge $read_bytes ]] || fail "cold, and the device read only $(number run.json device_counter_read_bytes) bytes"
    resident "$read_bytes" replays mnt/root --cache warm
    [[ $(number run.json device_counter_read_bytes) -lt $part ]] || fail "warm, and the device read $(number run.json device_counter_read_bytes) bytes"
    resident "$read_bytes" replays mnt/root --cache warm --drop-caches
    equal "$(number run.json found_bytes)" 0
    contains "$out" "warm (as asked; all caches dropped)"
    replays mnt/root --drop-caches
    equal "$(number run.json resident_before_bytes)" 0
    [[ $(number run.json device_counter_read_bytes) -ge $read_bytes ]] || fail "caches dropped, and the device read only $(number run.json device_counter_read_bytes) bytes"

    # A job that looks many files up and reads back the page that it wrote: the device has none of its data. A page
    # that was there before is little of what the device reads.
    for words in no little; do
        {
            echo "fio version 3 iolog"
            for ((i = 0; i < 400; ++i)); do echo "0 /data/look/$i add"; done
            for ((i = 0; i < 400; ++i)); do printf '0 /data/look/%s open\n0 /data/look/%s close\n' $i $i; done
            echo "0 /data/own add"
            echo "0 /data/own open"
            printf '0 /data/own %s 0 4096\n' write read
            [[ $words == no ]] || echo "0 /data/own read 8192 4096"
            echo "0 /data/own close"
        } >look.log
        run 0 "$REPRISE" import look.log -f -o look.oplog
        run 0 "$REPRISE" prepare look.oplog --root "mnt/look-$words"
        run 0 "$REPRISE" replay look.oplog --root "mnt/look-$words" --pace afap --drop-caches -f -o looked.oplog --json=run.json
        contains "$out" "METADATA: the device read names, $words data"
        grep -q '"cache": "metadata"' run.json || fail "run.json does not say that the device read metadata"
        run 0 "$REPRISE" compare look.oplog looked.oplog
        contains "$out" "METADATA: the device read names, $words data"
    done

    # What a recording found in memory: all of a, nothing of b and c.
    if can_record; then
        job() { run 0 "$REPRISE" capture -o "$@" -- sh -c 'cat mnt/job/a mnt/job/b mnt/job/c >/dev/null'; }
        mkdir mnt/job
        for file in a b c; do head -c $size /dev/urandom >mnt/job/$file; done
        # By the kernel's leave: a machine that pages out by itself may take a little of a back meanwhile.
        forget() { python3 -c 'import os, sys
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY); os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$@"; }
        forget mnt/job/b mnt/job/c
        cat mnt/job/a >/dev/null
        job real.oplog
        only=(--only "$PWD/mnt/job")
        run 0 "$REPRISE" prepare real.oplog --root mnt/again "${only[@]}"
        run 0 "$REPRISE" replay real.oplog --root mnt/again "${only[@]}" --pace afap --cache recorded -f --json=run.json
        contains "$out" "recorded (as asked); "
        fetched=$(number run.json recorded_fetched_bytes)
        [[ $fetched -ge $((2 * size)) && $fetched -le $((2 * size + size / 8)) ]] || fail "fetched $fetched"
        resident $((3 * size - fetched)) run 0 "$REPRISE" replay real.oplog --root mnt/again "${only[@]}" --pace afap --cache recorded -f --json=run.json
        resident $((3 * size - fetched)) run 0 "$REPRISE" replay real.oplog --root mnt/again "${only[@]}" --pace afap -f --json=run.json
        contains "$out" "recorded (default: the recording fetched 2."
        contains "$out" " of 3.00 MiB in memory before"
        # The same job cold: so is the replay.
        forget mnt/job/a mnt/job/b mnt/job/c
        job cold.oplog
        run 0 "$REPRISE" prepare cold.oplog --root mnt/cold "${only[@]}"
        run 0 "$REPRISE" replay cold.oplog --root mnt/cold "${only[@]}" --pace afap -f --json=run.json
        contains "$out" "cold (default: the recording fetched 3.00 MiB of 3.00 MiB); 0 B of 3.00 MiB in memory before"
        [[ $(number run.json device_counter_read_bytes) -ge $((3 * size)) ]] || fail "the default is not cold"
        rm -rf mnt/cold
        # The same job warm: so is the replay, though prepare may write past the page cache, or long ago.
        for _ in 1 2 3; do
            cat mnt/job/* >/dev/null
            rm -f warm.oplog
            job warm.oplog
            rm -rf mnt/warm
            run 0 "$REPRISE" prepare warm.oplog --root mnt/warm "${only[@]}"
            forget mnt/warm
            run 0 "$REPRISE" replay warm.oplog --root mnt/warm "${only[@]}" --pace afap -f --json=run.json
            grep -q "fetched only" "$out" && break
        done
        contains "$out" "recorded (default: the recording fetched only "
        contains "$out" "3.00 MiB of 3.00 MiB in memory before"
        # What is made of a recording knows it, too.
        run 0 "$REPRISE" anonymize real.oplog -o nobody.oplog
        run 0 "$REPRISE" prepare nobody.oplog --root mnt/nobody
        run 0 "$REPRISE" replay nobody.oplog --root mnt/nobody --pace afap -f --json=run.json
        equal "$(number run.json recorded_fetched_bytes)" "$fetched"
        # Without the page cache's events it still knows what was there when the files were opened.
        forget mnt/job/b mnt/job/c
        cat mnt/job/a >/dev/null
        head -c 65536 mnt/job/c >/dev/null
        job blind.oplog --without pagecache,block
        run 0 "$REPRISE" info blind.oplog "${only[@]}"
        contains "$out" "cached at open  fetched"
        run 0 "$REPRISE" info --json blind.oplog "${only[@]}"
        part=$(($(number "$out" bytes_cached) - size))
        [[ $part -ge 65536 && $part -lt $size ]] || fail "$part bytes of c were in memory"
        grep -q '"bytes_fetched": null' "$out" || fail "bytes_fetched without events"
        run 0 "$REPRISE" prepare blind.oplog --root mnt/blind "${only[@]}"
        resident $((size + part)) run 0 "$REPRISE" replay blind.oplog --root mnt/blind "${only[@]}" --pace afap --cache recorded -f --json=run.json
        contains "$out" "recorded (as asked); "
        # The machine may have taken a page of a out meanwhile.
        grep -qE "^note: Of (1 file|2 files) the recording says how much was in memory, but not which part" "$out" ||
            { fail "the note on guessed parts is missing"; cat "$out"; }
    else
        echo "SKIPPED: this machine cannot record, so no recording knows its page cache"
    fi
else
    echo "SKIPPED: a loop device with ext4 needs root and mkfs.ext4"
fi

# Ended while it prepares the page cache, or later: the root can be used again.
for after in 0.02 0.1; do
    "$REPRISE" replay job.oplog --root root --pace afap --cache cold >/dev/null 2>&1 &
    replay=$!
    sleep $after
    kill -TERM $replay 2>/dev/null
    wait $replay 2>/dev/null
done
replays root --cache warm
equal "$(number run.json resident_before_bytes)" "$read_bytes"
finish
