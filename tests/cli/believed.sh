#!/usr/bin/env bash
# What keeps a result from being believed is said first: nothing of the job was replayed, events were lost, the sides of
# a comparison found other things in memory, what was to be warm or cold is not, recordings are of different jobs, and
# what strace was not asked for is missing.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# value FILE EXPRESSION: of the JSON r
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }
first() { head -n 1 "$out" | grep -qF -- "$1" || { fail "the first line does not say '$1':"; head -n 3 "$out"; }; }
drop() {
    python3 -c '
import os, sys
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)' "$1"
}

storage_model model.json

# --- small files in a package directory are the job's data here

# small NAME FOLDER ENDING [MORE...]: 300 files of 8,000 bytes in FOLDER are read, 50 us each
small() {
    local i name=$1 path=$2 ending=$3
    shift 3
    {
        echo "fio version 3 iolog"
        for i in $(seq 300); do echo "0 $path/s$i$ending add"; done
        for i in $(seq 300); do
            echo "$((i * 50)) $path/s$i$ending open"
            echo "$((i * 50)) $path/s$i$ending read 0 8000"
            echo "$((i * 50)) $path/s$i$ending close"
        done
        printf '%s\n' "$@"
    } >"$name.log"
    run 0 "$REPRISE" import -q "$name.log" -o "$name.oplog"
}
if can_record; then
    mkdir -p p/dist-packages
    for i in $(seq 300); do head -c 8000 /dev/urandom >"p/dist-packages/s$i.dat"; done
    run 0 "$REPRISE" capture -q -o small.oplog -- sh -c 'cat p/dist-packages/* >/dev/null'
    run 0 "$REPRISE" prepare -q small.oplog --root small
    run 1 "$REPRISE" replay small.oplog --root small
    first "NOT MEASURED: 2.29 MiB of the job's 2."
    contains "$out" "are small files in program directories, left out: --only all keeps them"
    contains "$out" "trust       POOR  "
    lacks "$out" "95 %"
    run 1 "$REPRISE" predict small.oplog --storage model.json
    first "NOT MEASURED: 2.29 MiB of the job's 2."
    contains "$out" "trust POOR: "
    lacks "$out" "95 %"
    run 1 "$REPRISE" predict small.oplog --storage model.json --sweep read=1M,1G
    contains "$out" "--only all keeps them"
    lacks "$out" "GOOD"
    run 0 "$REPRISE" predict small.oplog --storage model.json --only all
    lacks "$out" "NOT MEASURED"
    # A job that also has data of its own is measured.
    head -c 6000000 /dev/urandom >data
    run 0 "$REPRISE" capture -q -o usual.oplog -- sh -c 'cat p/dist-packages/* data >/dev/null'
    run 0 "$REPRISE" predict usual.oplog --storage model.json
    lacks "$out" "NOT MEASURED"
else
    echo "this user cannot record: small files among programs are not tested"
fi

# Nothing at all is left.
small none /home/me/lib/python3.11/site-packages/x .dat
run 1 "$REPRISE" predict none.oplog --storage model.json
first "NOT THE SAME JOB: No I/O op is left: the filter leaves out all 900."
run 1 "$REPRISE" predict none.oplog --storage model.json --json
equal "$(value "$out" 'r["not_same_job"], r["trust"], r["elapsed_interval_s"]')" \
    "(['No I/O op is left: the filter leaves out all 900'], 'poor', None)"
run 0 "$REPRISE" prepare -q none.oplog --root none
run 1 "$REPRISE" replay none.oplog --root none
first "NOT THE SAME JOB: No I/O op was performed: the filter leaves nothing of the log."

# --- --allow-loss

{
    echo "fio version 3 iolog"
    echo "0 /data/f add"
    echo "0 /data/f open"
    for i in $(seq 2000); do echo "$((i * 10)) /data/f read $((i * 4096)) 4096"; done
} >full.log
head -c 30000 full.log >cut.log
run 1 "$REPRISE" import -q cut.log -o cut.oplog
run 0 "$REPRISE" prepare -q cut.oplog --root cut
run 3 "$REPRISE" replay cut.oplog --root cut
run "0 1" "$REPRISE" replay cut.oplog --root cut --allow-loss -o run.oplog
first "job         A PART OF IT (the recording lost "
contains "$out" "trust       POOR  the recording lost "
contains "$out" "(no interval: trust POOR)"
lacks "$out" "SAME: "
run "0 1" "$REPRISE" replay cut.oplog --root cut --allow-loss --json
equal "$(value "$out" 'r["same_job"], r["verdict"]["same_job"], r["lost_events"] > 0, r["verdict"]["trust"]')" \
    "(False, False, True, 'poor')"
run 0 "$REPRISE" info run.oplog
lacks "$out" "(0 lost)"
run 0 "$REPRISE" compare cut.oplog run.oplog
contains "$out" "A PART OF IT (the recording lost "
contains "$out" "POOR"
lacks "$out" "SAME: "
run 0 "$REPRISE" predict cut.oplog --storage model.json --allow-loss -o predicted.oplog
first "A PART OF IT: the recording lost "
contains "$out" "trust POOR: the recording lost "
lacks "$out" "95 %"
run 0 "$REPRISE" info predicted.oplog
lacks "$out" "(0 lost)"

# --- a run that was stopped

printf '[t]\nformat=npz\nsamples=200\nsample_size=100k\nbatch=8\ncompute=1ms\n' >t.ini
run 0 "$REPRISE" generate -q t.ini -o t.oplog
printf '[t]\nformat=npz\nsamples=400\nsample_size=10k\nbatch=8\ncompute=100ms\n' >long.ini
run 0 "$REPRISE" generate -q long.ini -o long.oplog
run 0 "$REPRISE" prepare -q long.oplog --root long
run 124 timeout -s INT 1 "$REPRISE" replay long.oplog --root long -o stopped.oplog
[[ -s stopped.oplog ]] || fail "a run that is stopped leaves no log"
run 0 "$REPRISE" prepare -q stopped.oplog --root stopped
run 3 "$REPRISE" replay stopped.oplog --root stopped
contains "$err" "left_out_stopped"
contains "$err" "use it as it is with --allow-loss"
run 3 "$REPRISE" predict stopped.oplog --storage model.json
run "0 1" "$REPRISE" replay stopped.oplog --root stopped --allow-loss
contains "$out" "job         A PART OF IT (the run it is of stopped early): "
contains "$out" "trust       POOR  the log is of a run that stopped early: "
lacks "$out" "95 %"
run 0 "$REPRISE" predict stopped.oplog --storage model.json --allow-loss
first "A PART OF IT: the run it is of stopped early."
run 0 "$REPRISE" analyze stopped.oplog
first "INCOMPLETE: the run it is of stopped early; what is missing is in no figure."
run 0 "$REPRISE" export stopped.oplog --to csv -o stopped.csv
contains "$err" "note: the run it is of stopped early: what is missing is not exported."
run 1 "$REPRISE" compare stopped.oplog stopped.oplog
first "INCOMPLETE: interrupted"

# --- logs that do not say how long calls took, and runs that took no time

run 0 "$REPRISE" import -q full.log -o full.oplog
run 0 "$REPRISE" prepare -q full.oplog --root full
run "0 1" "$REPRISE" replay full.oplog --root full -o afap.oplog --pace afap
lacks "$out" "how long its calls took"
run "0 1" "$REPRISE" replay full.oplog --root full
contains "$out" "trust       POOR  the log does not say how long its calls took"
contains "$out" "(no interval: trust POOR)"
run "0 1" "$REPRISE" replay full.oplog --root full --pace timed
lacks "$out" "how long its calls took"
run 0 "$REPRISE" predict full.oplog --storage model.json
contains "$out" "trust POOR: the log does not say how long its calls took"
lacks "$out" "95 %"
run 0 "$REPRISE" analyze full.oplog
contains "$out" "not computed: the log does not say how long its calls took"
lacks "$out" "Faster storage hardly helps"
run 0 "$REPRISE" analyze afap.oplog
contains "$out" "not computed: the log is of a run at pace afap"
run "0 1" "$REPRISE" replay t.oplog --engine null -o null.oplog
run 0 "$REPRISE" analyze null.oplog
contains "$out" "not computed: the log is of a run with --engine null"
run 0 "$REPRISE" predict null.oplog --storage model.json
contains "$out" "trust POOR: the log is of a run with --engine null"

# --- what was in memory

run 0 "$REPRISE" prepare -q t.oplog --root root
if [[ $(stat -f -c %T root) != tmpfs ]]; then
    for k in a b; do
        for i in 1 2; do
            [[ $k == b ]] || drop root
            "$REPRISE" replay -q t.oplog --root root --pace afap -o $k.$i.oplog >"$out" 2>"$err"
        done
    done
    run 1 "$REPRISE" compare a.1.oplog a.2.oplog --against b.1.oplog b.2.oplog --junit cache.xml
    first "NOT COMPARABLE: the page cache differs between the sides: the device served "
    contains cache.xml 'name="page cache"'
    contains cache.xml 'failure message="NOT COMPARABLE: '
    lacks "$out" "are mixed"
    "$REPRISE" compare a.1.oplog a.2.oplog --against b.1.oplog b.2.oplog --json >"$out" 2>"$err"
    equal "$(value "$out" 'len(r["warnings"]), r["passed"], r["same_cache"], r["runs"]["a"][0]["device_share"] > 0.9, r["runs"]["b"][0]["device_share"] < 0.01')" \
        "(0, False, False, True, True)"
    "$REPRISE" compare a.1.oplog b.2.oplog --against a.2.oplog b.1.oplog >"$out" 2>"$err"
    contains "$out" "warning: cold and warm runs are mixed in A: the device served from 0 % to 100 % of the bytes read"
    contains "$out" "warning: cold and warm runs are mixed in B"
    "$REPRISE" compare a.1.oplog --against a.2.oplog >"$out" 2>"$err"
    lacks "$out" "warning: "

    # In less memory than there is data (and than the sanitizers take).
    group=/sys/fs/cgroup/memory/reprise-test-$$
    if [[ -z ${REPRISE_SANITIZE:-} && $EUID == 0 ]] && mkdir "$group" 2>/dev/null; then
        trap 'rmdir "$group" 2>/dev/null; rm -rf "$tmp"' EXIT
        drop root
        if echo $((12 << 20)) 2>/dev/null >"$group/memory.limit_in_bytes"; then
            bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" \
                timeout 60 "$REPRISE" replay t.oplog --root root --cache warm --pace afap -v >"$out" 2>"$err"
            grep -q "^cache  *warm (as asked); [0-9.]* [KM]iB of 19.5 MiB in memory before" "$out" ||
                fail "a limit: $(cat "$out" "$err")"
            lacks "$out" "19.5 MiB of 19.5 MiB in memory before"
            contains "$out" "that are read did not stay in memory when they were to be warm"
            contains "$out" "were read into memory before the run, and the kernel took them back"
        fi
    else
        echo "no memory group of version 1 can be made, or sanitizers need more: a container's limit is not tested"
    fi
else
    echo "the temporary directory is a tmpfs: cold and warm are not tested"
fi
if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs ]]; then
    memory=$(mktemp -d /dev/shm/reprise-test-XXXXXX)
    trap 'rm -rf "$tmp" "$memory"; rmdir "${group:-/none}" 2>/dev/null' EXIT
    run 0 "$REPRISE" prepare -q t.oplog --root "$memory/root"
    for how in "--cache cold" --direct; do
        # shellcheck disable=SC2086 # two words
        run 1 "$REPRISE" replay t.oplog --root "$memory/root" $how
        grep -qxF "NOT MEASURED: the root is on tmpfs, which is memory: no regime is cold there, and no storage was measured." \
            <(head -n 2 "$out") || fail "$how on tmpfs: $(head -n 3 "$out")"
        contains "$out" "trust       POOR  the root is on tmpfs"
        lacks "$out" "95 %"
    done
    run "0 1" "$REPRISE" replay t.oplog --root "$memory/root" --cache warm
    lacks "$out" "NOT MEASURED"
    rm -rf "$memory"
else
    echo "/dev/shm is no tmpfs: a root in memory is not tested"
fi

# --- recordings that are not of one job

for n in 100 104 150; do
    head -n $((n + 3)) full.log >some.log
    run 0 "$REPRISE" import -q some.log -o "$n.oplog"
done
run 0 "$REPRISE" prepare -q 150.oplog --root several
run 0 "$REPRISE" prepare 100.oplog 150.oplog --root elsewhere
contains "$err" "warning: 100.oplog has 101 ops and 150.oplog 151 ops: they may not be of the same job"
run 0 "$REPRISE" prepare -q 100.oplog 104.oplog --root again
lacks "$err" "warning: 100.oplog"

# --- strace

# traced NAME LINE...: imported, its output in $out
traced() {
    local name=$1
    shift
    printf '%s\n' "$@" >"$name.strace"
    run 0 "$REPRISE" import "$name.strace" -o "$name.oplog"
}
io=('1 1700000000.000100 openat(AT_FDCWD, "/data/f", O_RDWR) = 3 <0.000010>'
    '1 1700000000.000200 write(3, "x"..., 4096) = 4096 <0.000010>'
    '1 1700000000.000300 close(3) = 0 <0.000010>')
traced filtered "${io[@]}" '1 1700000000.000400 +++ exited with 0 +++'
contains "$out" "calls_filtered"
contains "$out" "(execve, mmap, exit_group; nor has it a sync such as fsync): strace had a filter"
run 0 "$REPRISE" info filtered.oplog
contains "$out" "calls_filtered"
run 0 "$REPRISE" prepare -q filtered.oplog --root filtered
run "0 1" "$REPRISE" replay filtered.oplog --root filtered -v
contains "$out" "warning: calls_filtered 3"
contains "$out" "strace had a filter: syncs or other calls may be missing"
run 0 "$REPRISE" predict filtered.oplog --storage model.json
contains "$out" "trust FAIR: strace had a filter"
traced whole "${io[@]}" '1 1700000000.000400 exit_group(0) = ?' '1 1700000000.000400 +++ exited with 0 +++'
lacks "$out" "calls_filtered"
traced killed "${io[@]}" '1 1700000000.000400 +++ killed by SIGKILL +++'
lacks "$out" "calls_filtered"
traced attached "${io[@]}"
lacks "$out" "calls_filtered"

child=('1 1700000000.000310 vfork() = 7 <0.000010>'
    '1 1700000000.000320 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 8 <0.000010>'
    '1 1700000000.000330 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88) = 9 <0.000010>')
end=('1 1700000000.000400 exit_group(0) = ?' '1 1700000000.000400 +++ exited with 0 +++')
traced alone "${io[@]}" "${child[@]}" "${end[@]}"
contains "$out" "children_unseen"
run 0 "$REPRISE" prepare -q alone.oplog --root alone
run "0 1" "$REPRISE" replay alone.oplog --root alone
contains "$out" "trust       POOR  3 processes or threads that the job started are not in the recording (strace without -f?)"
lacks "$out" "95 %"
run 0 "$REPRISE" predict alone.oplog --storage model.json
contains "$out" "trust POOR: 3 processes or threads that the job started are not in the recording"
traced followed "${io[@]}" "${child[@]}" '7 1700000000.000340 +++ exited with 0 +++' \
    '8 1700000000.000340 exit_group(0) = ?' '9 1700000000.000340 exit(0) = ?' "${end[@]}"
lacks "$out" "children_unseen"

finish
