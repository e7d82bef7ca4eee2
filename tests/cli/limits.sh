#!/usr/bin/env bash
# replay --memory, --ratio, --io-limit: limits, what is said of them, and that no group stays behind, whatever happens.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# Sixteen files of 4 MiB, twice.
# shellcheck disable=SC2046
passes_log $(seq 0 15) $(seq 0 15) >job.log
run 0 "$REPRISE" import -q job.log -o job.oplog
run 0 "$REPRISE" prepare -q job.oplog --root root

# Wrong uses.
wrong() {
    local text=$1
    shift
    run 2 "$REPRISE" replay job.oplog "$@"
    contains "$err" "$text"
}
wrong "--ratio is '0', expected a number from 0.01 to 1000000" --root root --ratio 0
wrong "--ratio is 'four'" --root root --ratio four
wrong "--memory is" --root root --memory much
wrong "--memory and --ratio both say how much memory there is" --root root --memory 100M --ratio 2
wrong "--no-ballast without a memory limit" --root root --no-ballast
wrong "--cache as-is with a memory limit" --root root --memory 100M --cache as-is
wrong "a memory or I/O limit with --engine null, which reads no files" --engine null --memory 100M
wrong "'speed=5' is none of read=SIZE, write=SIZE, riops=N, wiops=N" --root root --io-limit speed=5
wrong "--io-limit names read twice" --root root --io-limit read=5M,read=6M
wrong "--io-limit riops is '1k', expected a number of requests" --root root --io-limit riops=1k
wrong "--io-limit read is 0" --root root --io-limit read=0
wrong "--io-limit names no limit" --root root --io-limit ""

# limited [OPTION]...: replays, and no group of it stays behind.
job=
own() { find /sys/fs/cgroup -maxdepth 6 -type d -name "reprise-*-$job-*" 2>/dev/null; }
limited() {
    "$REPRISE" replay job.oplog --json=run.json -f "$@" >"$out" 2>"$err" &
    job=$!
    wait $job
    local rc=$?
    equal "$(own)" ""
    return $rc
}

# Somebody who may make no group.
if command -v setpriv >/dev/null && [[ $EUID == 0 ]]; then
    chmod -R a+rX "$tmp"
    chmod 755 "$tmp"
    run 4 setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap --read-only --memory 50M
    grep -qE "cannot make the control group|cannot be handed on|is mounted here|cannot hand its" "$err" || fail "no reason: $(cat "$err")"
    contains "$err" "--direct"
fi

if ! "$REPRISE" replay -q job.oplog --root root --pace afap --memory 200M >"$out" 2>"$err" && grep -q "control group\|in memory (tmpfs)" "$err"; then
    skip "nothing can be limited here: $(head -n 1 "$err")"
fi

# value EXPRESSION: of run.json as r
value() { python3 -c 'import json, sys; r = json.load(open("run.json")); print(eval(sys.argv[1]))' "$1"; }

run 4 "$REPRISE" replay job.oplog --root root --memory 4M
contains "$err" "a memory limit of 4.00 MiB is less than the replay itself needs"

# Half of the data fits: the second pass reads it again.
limited --root root --ratio 2 -v
contains "$out" "what-if: --ratio 2; not the job as recorded"
contains "$out" "memory      32.0 MiB for 64.0 MiB of data (ratio 2.00), full "
contains "$out" "cold (as asked); 0 B of 64.0 MiB in memory before"
equal "$(value 'r["memory"]["limit_bytes"]')" $((32 << 20))
equal "$(value '0.95 * r["memory"]["limit_bytes"] <= r["memory"]["peak_bytes"] <= r["memory"]["limit_bytes"]')" True
equal "$(value 'r["memory"]["killed"]')" 0
equal "$(value 'r["memory"]["limit_reached"] > 0')" True
equal "$(value 'r["memory"]["job_peak_bytes"]')" None
contains "$out" "the log does not say how long its calls took"
# The proof for each epoch: the device served both.
contains "$out" "for the run  read/asked  in memory before"
equal "$(value '[e["epoch"] for e in r["by_epoch"]]')" "[1, 2]"
equal "$(value '[e["asked_bytes"] >> 20 for e in r["by_epoch"]]')" "[64, 64]"
equal "$(value 'sum(e["own_bytes"] for e in r["by_epoch"]) > 90 << 20')" True
equal "$(value 'r["by_epoch"][0]["resident_before_share"]')" 0.0
equal "$(value 'r["by_epoch"][1]["resident_after_share"] < 0.5')" True
# All of it fits.
limited --root root --memory 200M
contains "$out" "never full"
# What memory holds at the start is brought in under the limit.
limited --root root --memory 40M --cache warm
equal "$(value 'r["cache"]["resident_before_bytes"] < 40 << 20')" True
equal "$(value 'r["cache"]["resident_before_bytes"] > 10 << 20')" True

# Interrupted, and killed: the next one removes what that left.
"$REPRISE" replay -q job.oplog --root root --memory 200M --runs 500 >"$out" 2>"$err" &
job=$!
sleep 1
kill -INT $job
wait $job
equal "$(own)" ""
# Whatever it does at that time: plan, bring files in under the limit, run, sum up.
for wait in 0.03 0.08 0.13 0.18 0.25 0.33 0.41 0.5; do
    "$REPRISE" replay -q job.oplog --root root --memory 200M --cache warm --runs 500 >"$out" 2>"$err" &
    job=$!
    sleep $wait
    kill -TERM $job
    wait $job
    equal "$(own)" ""
done
"$REPRISE" replay -q job.oplog --root root --memory 200M --runs 500 >"$out" 2>"$err" &
job=$!
for _ in $(seq 200); do [[ -z $(own) ]] || break; sleep 0.02; done
[[ -n $(own) ]] || fail "no group of the run was seen"
kill -KILL $job
wait $job 2>/dev/null
# What it started may take a while to die.
for _ in $(seq 40); do
    sleep 0.5
    "$REPRISE" replay -q job.oplog --root root --memory 200M >"$out" 2>"$err"
    [[ -n $(own) ]] || break
done
equal "$(own)" ""

# The device: a loop device of this test's own, so that nobody else is slowed down.
if [[ $EUID == 0 ]] && truncate -s 200M image && mkfs.ext4 -q image && mkdir slow && mount -o loop image slow 2>/dev/null; then
    trap 'umount slow 2>/dev/null; rm -rf "$tmp"' EXIT
    run 0 "$REPRISE" prepare -q job.oplog --root slow
    if limited --root slow --cache cold --io-limit read=32M || [[ $? == 1 ]]; then
        contains "$out" "what-if: --io-limit read=32.0 MiB"
        equal "$(value '1.5 < r["elapsed_s"] < 10')" True
        equal "$(value 'r["io_limits"]["read_bytes_per_s"]')" $((32 << 20))
        # Memory holds it all: the second pass never gets there.
        contains "$out" "epochs      2 (of 2) never reached the storage: the device read "
        equal "$(value 'r["by_epoch"][0]["elapsed_ns"] > 1e9 > r["by_epoch"][1]["elapsed_ns"]')" True
    else
        cat "$err"
    fi
    # What the job kept in /dev/shm is in memory here, too, and no other disk.
    cat >shared.strace <<'END'
100 1700000000.000000 openat(AT_FDCWD, "/data/batches", O_RDONLY) = 3</data/batches> <0.000100>
100 1700000000.001000 openat(AT_FDCWD, "/dev/shm/batch", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</dev/shm/batch> <0.000100>
100 1700000000.002000 pread64(3</data/batches>, "\0"..., 262144, 0) = 262144 <0.002000>
100 1700000000.005000 pwrite64(4</dev/shm/batch>, "\0"..., 262144, 0) = 262144 <0.000100>
100 1700000000.006000 +++ exited with 0 +++
END
    run 0 "$REPRISE" import -q shared.strace -o shared.oplog
    run 0 "$REPRISE" prepare -q shared.oplog --root slow/shared
    rc=0
    "$REPRISE" replay shared.oplog --root slow/shared --io-limit read=32M >"$out" 2>"$err" || rc=$?
    [[ $rc == [01] ]] || fail "exit code $rc: $(cat "$err")"
    contains "$out" "what-if: --io-limit read=32.0 MiB"
    # Its data on something else.
    mkdir -p slow/nest/data
    if mount -t tmpfs -o size=100m tmpfs slow/nest/data; then
        trap 'umount slow/nest/data slow 2>/dev/null; rm -rf "$tmp"' EXIT
        run 0 "$REPRISE" prepare -q job.oplog --root slow/nest
        run 4 "$REPRISE" replay job.oplog --root slow/nest --io-limit read=32M
        contains "$err" "slow/nest/data, on another disk than the root, has files of the job; the kernel limits each disk alone"
        umount slow/nest/data
    fi
    umount slow
fi
# The throttle of the group that this is in, where groups throttle each for itself (version 1): a run in a group of its
# own keeps it.
blkio=$(awk '$3 == "cgroup" && $4 ~ /(^|,)blkio(,|$)/ { print $2; exit }' /proc/mounts)
if [[ $EUID == 0 && -n $blkio ]] && mkdir -p throttled && mount -o loop image throttled 2>/dev/null; then
    group=$blkio/reprise_limits_test.$$
    trap 'umount throttled 2>/dev/null; rmdir "$group/below" "$group" 2>/dev/null; rm -rf "$tmp"' EXIT
    mkdir "$group" "$group/below"
    disk=$(cat "/sys/class/block/$(basename "$(findmnt -no SOURCE throttled)")/dev")
    run 0 "$REPRISE" prepare -q job.oplog --root throttled --reset
    # throttled_run GROUP [OPTION]...: a replay by a shell in that group
    throttled_run() {
        local group=$1 rc=0
        shift
        bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$REPRISE" replay job.oplog --root throttled \
            --pace afap --cache cold --json=run.json -f -v "$@" >"$out" 2>"$err" || rc=$?
        [[ $rc == [01] ]] || fail "exit code $rc of $*: $(cat "$err")"
    }
    echo "$disk 32000000" >"$group/blkio.throttle.read_bps_device"
    # 67 MB at 32 MB/s.
    for limit in "" "--memory 10G" "--ratio 0.5" "--io-limit read=2G" "--io-limit riops=1000000"; do
        # shellcheck disable=SC2086
        throttled_run "$group" $limit
        equal "$limit: $(value 'r["elapsed_s"] > 1.8')" "$limit: True"
        if [[ -n $limit ]]; then
            contains "$out" "Kept the control group's limit: loop"
            contains "$out" ": reads 30.5 MiB/s."
        else
            lacks "$out" "Kept the control group's limit"
            contains "$out" "The control group that this runs in limits the root's disk: reads 30.5 MiB/s."
            equal "$(value 'r["machine"]["io_limits"]["read_bytes_per_s"]')" 32000000
        fi
    done
    # A stricter one that is asked for holds.
    throttled_run "$group" --io-limit read=16M
    equal "$(value 'r["elapsed_s"] > 3.5')" True
    # What binds others only is left to them: the job itself would not be throttled.
    throttled_run "$group/below" --memory 10G
    lacks "$out" "Kept the control group's limit"
    throttled_run "$group/below"
    lacks "$out" "limits the root's disk"
    equal "$(find "$group" -mindepth 1 -type d)" "$group/below"
    umount throttled
    rmdir "$group/below" "$group"
else
    echo "not tested: throttles of the own control group of version 1"
fi
# On two devices.
if [[ $EUID == 0 ]] && command -v mkfs.btrfs >/dev/null && truncate -s 200M one two && mkdir both; then
    one=$(losetup -f --show one) two=$(losetup -f --show two)
    trap 'umount both 2>/dev/null; losetup -d "$one" "$two" 2>/dev/null; rm -rf "$tmp"' EXIT
    if [[ -n $one && -n $two ]] && mkfs.btrfs -q -f -d raid0 -m raid1 "$one" "$two" >/dev/null 2>&1 && mount "$one" both 2>/dev/null; then
        run 0 "$REPRISE" prepare -q job.oplog --root both
        run 4 "$REPRISE" replay job.oplog --root both --io-limit read=32M
        contains "$err" "both is on 2 devices; the kernel limits each disk alone"
        umount both
    fi
    losetup -d "$one" "$two"
else
    echo "not tested: btrfs on two devices"
fi
# On no device of its own.
if [[ $EUID == 0 ]] && mkdir mem && mount -t tmpfs -o size=100m tmpfs mem 2>/dev/null; then
    trap 'umount mem 2>/dev/null; rm -rf "$tmp"' EXIT
    run 0 "$REPRISE" prepare -q job.oplog --root mem
    limited --root mem --io-limit read=32M
    equal $? 4
    contains "$err" "is on no block device that can be limited"
    # Memory that a limit would not take back: no run that looks as if it had been limited.
    for limit in "--ratio 2" "--memory 100M"; do
        # shellcheck disable=SC2086
        limited --root mem $limit
        equal $? 4
        contains "$err" "${limit% *}: mem has all files that are read in memory (tmpfs), where no limit would take them back"
    done
    run 1 "$REPRISE" sweep job.oplog --root mem --ratio 0.5,1 --runs 1 -o mem.sweep
    contains "$out" "--ratio 1: not run: --ratio: mem has all files that are read in memory"
    umount mem
fi
finish
