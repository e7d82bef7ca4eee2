#!/usr/bin/env bash
# `reprise capture` where it is hard: jobs that are many, long, killed, in the background; recorders that are killed or run
# out of disk. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
load=$REPRISE_BUILD_DIR/programs/capture_load
cd "$tmp" || exit 1

# What needs no rights at all.
run 2 "$REPRISE" capture -o x.oplog
contains "$err" "--pid"
run 2 "$REPRISE" capture -- true
run 2 "$REPRISE" capture -o x.oplog --pid 1 -- true
run 2 "$REPRISE" capture -o x.oplog --without calls -- true
contains "$err" "pagecache"
run 2 "$REPRISE" capture -o x.oplog --pid -4
run 2 "$REPRISE" capture -o "$tmp" -- true
: >there.oplog
run 2 "$REPRISE" capture -o there.oplog -- true

rc=0
"$REPRISE" capture --check --json >check.json 2>"$err" || rc=$?
if [[ $rc != 0 ]]; then
    # Where it cannot record, it says so in one sentence with the way round, and runs nothing.
    run 4 "$REPRISE" capture -o no.oplog -- touch ran
    contains "$err" "strace -f -ttt -T -yy -o job.strace"
    [[ ! -e ran ]] || fail "the command ran although it could not be recorded"
    [[ $failures == 0 ]] || finish
    skip "this machine cannot record: $(sed -n 's/.*"refusal": "\(.*\)",*/\1/p' check.json)"
fi
grep -q '"can_record": true' check.json || fail "--check --json does not say that it can record"

# Somebody without rights gets the sentence as well.
if command -v setpriv >/dev/null; then
    chmod 755 "$tmp"
    run 4 setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" capture -o /tmp/reprise-no-$$.oplog -- true
    contains "$err" "needs root"
    contains "$err" "reprise import job.strace"
fi

records() { "$REPRISE" __raw "$1" >"$1.txt" 2>"$1.err"; }
# number FILE KEY: of the summary in JSON
number() { sed -n "s/^ *\"$2\": \(-\{0,1\}[0-9]*\),\{0,1\}$/\1/p" "$1" | head -n 1; }

# A small job, field by field.
run 0 "$REPRISE" capture --raw -o small.oplog -- sh -c 'echo hello >made; exec cat made'
contains "$out" hello
records small.raw
grep -q 'EXEC .* name=sh path0="/' small.raw.txt || fail "the first instruction is not there"
grep -q 'openat(.*created cached} path1="made"' small.raw.txt || fail "the file that was made is not there"
grep -q 'write(1, .*, 6, .*) = 6 .*pos=6 ' small.raw.txt || fail "the write is not there with its position"
grep -q 'EXEC .* name=cat' small.raw.txt || fail "the second program is not there"
grep -q 'SEED_FD .*fd0={2 ' small.raw.txt || fail "the inherited descriptors are not there"
grep -q 'EXIT .*code=0 last' small.raw.txt || fail "the end is not there"
lacks small.raw.txt UNREADABLE
awk '/#/ && $3 != "0/0" && /^(CALL|SPAWN|EXEC|EXIT|SWITCH|FAULT|TOUCH|PAGE_CACHE|STOLEN|FAULTS) / {
        split($4, s, "#"); if (s[2] in seen && seen[s[2]] == $3) print "twice " $3 " " s[2]; seen[s[2]] = $3; n++; if (s[2] > most) most = s[2] }
     END { if (n != most + 1) print "gap: " n " records, last number " most }' small.raw.txt >gaps
empty gaps
run 0 "$REPRISE" info small.oplog
run 0 "$REPRISE" import small.raw -o again.oplog
[[ ! -e again.raw ]] || fail "import leaves a raw file"

# Pages of a mapping's last reference go once munmap has returned: they are told by the range, and the op has the time.
if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs ]]; then
    run 0 "$REPRISE" capture --raw -f -o shm.oplog -- python3 -c '
import mmap, os
size, name = 8 << 20, "/dev/shm/reprise-test-%d" % os.getpid()
fd = os.open(name, os.O_RDWR | os.O_CREAT)
os.unlink(name)
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size)
os.close(fd)
memory[:] = bytes(size)
memory.close()'
    records shm.raw
    grep '^PAGE_CACHE .* evicted .* after=' shm.raw.txt >deferred || fail "no page went after a call"
    bytes=$(sed 's/.* bytes=\([0-9]*\) .*/\1/' deferred | awk '{ sum += $1 } END { print sum }')
    equal "$bytes" $((8 << 20))
    [[ $(grep -c '^PAGE_CACHE' shm.raw.txt) -lt 1000 ]] || fail "$(grep -c '^PAGE_CACHE' shm.raw.txt) records for 4096 pages that came and went"
    took=$(sed 's/.* last=\([0-9]*\) after=\([0-9]*\).*/\1 \2/' deferred | awk '{ ns = $1 - $2; if (ns > most) most = ns } END { print most }')
    "$REPRISE" dump shm.oplog | awk -v took="$took" '/ munmap / && / size=8388608 / { split($2, d, "="); if (d[2] > took) n++ } END { exit n != 1 }' ||
        fail "munmap does not have the $took ns that its pages took"
else
    echo "SKIPPED: /dev/shm is no tmpfs"
fi

# The options end at the command, with and without --.
run 0 "$REPRISE" capture -q -f -o a.oplog sh -c 'echo "$0 $1"' -q --json
equal "$(cat "$out")" "-q --json"

# Exit code, signals, standard streams, working directory and environment are the command's own.
run 7 "$REPRISE" capture -q -f -o a.oplog -- sh -c 'exit 7'
run 134 sh -c '"$1" capture -q -f -o a.oplog -- "$2" crash; exit $?' sh "$REPRISE" "$load"
run 2 "$REPRISE" capture -q -f -o a.oplog -- no-such-program
contains "$err" no-such-program
run 2 "$REPRISE" capture -q -f -o a.oplog -- /etc/passwd
echo in | SOME_VARIABLE=kept "$REPRISE" capture -q -f -o a.oplog -- sh -c 'read x; echo "$x $SOME_VARIABLE $PWD"' >"$out"
equal "$(cat "$out")" "in kept $PWD"
"$REPRISE" capture -q -f -o a.oplog -- sh -c 'trap "exit 5" TERM; : >ready; while :; do sleep 0.05; done' &
recorder=$!
for _ in $(seq 100); do [[ -e ready ]] && break; sleep 0.1; done
kill -TERM $recorder
rc=0
wait $recorder || rc=$?
equal "$rc" 5

# The job itself is killed.
run 137 sh -c '"$1" capture -q -f -o a.oplog -- sh -c "kill -9 \$\$"; exit $?' sh "$REPRISE"
run 0 "$REPRISE" info a.oplog

# As another user.
run 0 "$REPRISE" capture -q -f -o a.oplog --user nobody -- sh -c 'id -un; echo "$HOME $USER"'
equal "$(head -n 1 "$out")" nobody
equal "$(tail -n 1 "$out")" "$(getent passwd nobody | cut -d: -f6) nobody"
SUDO_UID=65534 SUDO_GID=65534 "$REPRISE" capture -q -f -o sudo.oplog -- sh -c 'id -u; echo "${SUDO_UID-gone}"' >"$out"
equal "$(tr '\n' ' ' <"$out")" "65534 gone "
equal "$(stat -c %u sudo.oplog)" 65534
run 2 "$REPRISE" capture -q -f -o a.oplog --user no-such-user -- true

# Limits that reprise changes for itself are the command's as they were.
run 0 bash -c 'ulimit -S -s 512; exec "$@"' bash "$REPRISE" capture -q -f -o a.oplog -- sh -c 'ulimit -s'
equal "$(cat "$out")" 512
run 153 "$REPRISE" capture -q -f -o a.oplog -- sh -c 'kill -XFSZ $$'

# Many processes, many threads, long paths: nothing lost, all there.
echo "some bytes and many more of them" >data
head -c 4096 /dev/zero >>data
run 0 "$REPRISE" capture -f --raw --json --without faults -o many.oplog -- "$load" processes 10000 "$tmp/data"
sed -n '/^{/,$p' "$out" >many.json
equal "$(number many.json tasks)" 10001
equal "$(number many.json lost)" 0
equal "$(number many.json untracked)" 0
equal "$(number many.json still_running)" 0
records many.raw
equal "$(grep -c "^CALL .*openat(.*path1=\"$tmp/data\"" many.raw.txt)" 10000
equal "$(grep -c '^EXIT ' many.raw.txt)" 10001
rm -f many.*

run 0 "$REPRISE" capture -f --raw --json -o threads.oplog -- "$load" threads 1000 "$tmp/data"
sed -n '/^{/,$p' "$out" >threads.json
equal "$(number threads.json tasks)" 1001
equal "$(number threads.json lost)" 0
records threads.raw
equal "$(grep -c '^CALL .*pread64(.*, 1, [0-9]*, .*) = 1 ' threads.raw.txt)" 1000
for offset in 0 1 500 999; do
    grep -q "pread64(.*, 1, $offset, .*) = 1 " threads.raw.txt || fail "the thread of offset $offset is not there"
done
grep -q 'SWITCH .* by [0-9]*/[0-9]* in futex\|SWITCH .* in exit' threads.raw.txt || fail "no wake has a waker"
rm -f threads.*

run 0 "$REPRISE" capture -q -f --raw -o long.oplog -- "$load" long_path
records long.raw
equal "$(awk '/openat\(.*\) = [0-9]+ .*path1="\/\.\/\./ { match($0, /path1="[^"]*"/); print RLENGTH - 8 }' long.raw.txt)" 4095
grep -q 'openat(.*) = -36 .*path1="/\./\.' long.raw.txt || fail "the path that is too long is not there"

# Names of descriptors, of the directory and of the root lead to the job's files: a replay reads and writes them.
head -c 200000 /dev/urandom >1.dat
for name in /dev/stdin /dev/fd/0 /proc/self/fd/0 /proc/thread-self/fd/0 /proc/self/cwd/1.dat "/proc/self/root$tmp/1.dat"; do
    run 0 "$REPRISE" capture -q -f -o link.oplog -- sh -c 'exec cat "$1" <1.dat >/dev/null' sh "$name"
    run 0 "$REPRISE" info --files --json link.oplog
    contains "$out" "\"$tmp/1.dat\""
    lacks "$out" "\"$name\""
    run 0 "$REPRISE" dump --only dataset link.oplog
    [[ $(grep -c " read .*path=\"$tmp/1.dat\"" "$out") -ge 2 ]] || fail "$name: the reads of 1.dat are not there"
done
run 0 "$REPRISE" capture -q -f -o link.oplog -- sh -c 'exec tee /dev/stderr <1.dat 2>e.sum >/dev/null'
run 0 "$REPRISE" dump --not system,program link.oplog
grep -q " open .*path=\"$tmp/e.sum\"" "$out" || fail "tee's /dev/stderr is not the file behind it"
rm -rf link.root
run 0 "$REPRISE" prepare link.oplog --root link.root
run 0 "$REPRISE" replay link.oplog --root link.root --pace afap
equal "$(stat -c %s "link.root$tmp/e.sum")" 200000

# The recording's own files, which the job comes upon: counted, and no part of the data.
mkdir own && cp 1.dat own/
run 0 "$REPRISE" capture -f -o own/job.oplog -- tar -cf own.tar own
contains "$err" "note: "
contains "$err" "calls on files of the recording itself"
run 0 "$REPRISE" info --files --json own/job.oplog
run 0 "$REPRISE" dump --only dataset --no-ops --tables own/job.oplog
grep -q 'file .*role=system.*own/job.raw"' "$out" || grep -q 'file .*own/job.raw".*role=system' "$out" ||
    fail "the raw log is not of the role system: $(grep job.raw "$out")"
grep '1.dat"' "$out" | grep -q 'role=dataset' || fail "the job's own file is no data"

# A --role that matches nothing is told at the end.
run 0 "$REPRISE" capture -f -o role.oplog --role '/nope=dataset' --role "$tmp/1.dat=log" -- cat 1.dat
contains "$err" "warning: 1 patterns of --role that match no file of the log; the first: /nope"
run 0 "$REPRISE" capture -f -o role.oplog --role "$tmp/1.dat=log" -- cat 1.dat
lacks "$err" "--role"

# What a replay says of the page cache: nothing was there before, and a file that the job makes shorter.
run 0 "$REPRISE" capture -q -f -o new.oplog -- sh -c 'echo x >new; cat new >/dev/null'
run 0 "$REPRISE" prepare new.oplog --root new.root
"$REPRISE" replay new.oplog --root new.root --pace afap >"$out" 2>&1
contains "$out" "(default); no file that was there before is read through the page cache"
printf 0123456789 >shorter
run 0 "$REPRISE" capture -q -f -o shorter.oplog -- sh -c 'cat shorter; printf 01234567 >shorter; cat shorter'
run 0 "$REPRISE" prepare shorter.oplog --root shorter.root
"$REPRISE" replay shorter.oplog --root shorter.root --pace afap --cache warm >"$out" 2>&1
contains "$out" "10 B of 10 B in memory before, 8 B after"
# A shell waits for its commands: what they read leads somewhere.
# On a busy machine a shell may get to wait only when the command is over: then once more.
for _ in 1 2 3 4 5; do
    run 0 "$REPRISE" capture -q -f -o one_by_one.oplog -- sh -c 'dd if=1.dat of=/dev/null bs=4k; cksum 1.dat; dd if=1.dat of=/dev/null bs=2k; sleep 0.1'
    run 0 "$REPRISE" info one_by_one.oplog
    grep -q "no consumer was found" "$out" || break
done
lacks "$out" "no consumer was found"

# Two recordings to one place: the second is refused and leaves the first alone, which ends well.
"$REPRISE" capture -o both.oplog -- sh -c ': >both.begun; while [ ! -e both.stop ]; do sleep 0.05; done; cat 1.dat >/dev/null' 2>both.err &
recorder=$!
for _ in $(seq 100); do [[ -e both.begun ]] && break; sleep 0.1; done
for force in --force ''; do
    run 2 "$REPRISE" capture $force -o both.oplog -- touch both.ran
    contains "$err" "another recording is writing "
done
[[ ! -e both.ran ]] || fail "the second recording ran its command"
[[ -s both.raw ]] || fail "the second recording removed the first one's records"
: >both.stop
wait $recorder || fail "the first recording did not end well: $(cat both.err)"
run 0 "$REPRISE" dump both.oplog
contains "$out" "$tmp/1.dat"
[[ ! -e both.raw ]] || fail "the first recording left its records"
run 0 "$REPRISE" capture -q -f -o both.oplog -- true
# Both at once, before any file is there: one of them records, and its log is whole.
for _ in 1 2 3; do
    rm -f race.*
    "$REPRISE" capture -q -o race.oplog -- sleep 0.5 2>race.1 &
    first=$!
    "$REPRISE" capture -q -o race.oplog -- sleep 0.5 2>race.2 &
    second=$!
    codes=0
    wait $first && codes=$((codes + 1))
    wait $second && codes=$((codes + 1))
    equal "$codes" 1
    run 0 "$REPRISE" info race.oplog
done

# In the background: the recording ends with the command and says so, or waits.
run 0 "$REPRISE" capture -f --json -o a.oplog -- "$load" daemon 30 "$tmp/lines"
# On a busy machine the process between the two may still be ending.
[[ $(number "$out" still_running) =~ ^[12]$ ]] || fail "still_running is $(number "$out" still_running)"
run 0 "$REPRISE" capture -f -o a.oplog -- "$load" daemon 30 "$tmp/lines"
contains "$err" " still running; --wait-all records until they exit"
# What comes after the recording is said wherever the log is looked at.
run 0 "$REPRISE" info a.oplog
contains "$out" "tasks_left_running"
run 0 "$REPRISE" info --json a.oplog
contains "$out" '"tasks_left_running"'
"$REPRISE" replay a.oplog --engine null --pace afap >"$out" 2>"$err"
cat "$err" >>"$out"
contains "$out" "warning: tasks_left_running "
run 0 "$REPRISE" info small.oplog
lacks "$out" "tasks_left_running"
run 0 "$REPRISE" capture -f --raw --wait-all --json -o daemon.oplog -- "$load" daemon 20 "$tmp/lines2"
equal "$(number "$out" still_running)" 0
records daemon.raw
equal "$(grep -c '^CALL .*write(.*, 7, .*) = 7 ' daemon.raw.txt)" 20

# The lag counts up to the last drain: the recorder stands still while the job ends.
"$REPRISE" capture -f --json -o lag.oplog -- sh -c ': >begun; sleep 1; : >ended' 2>lag.err >lag.json &
recorder=$!
for _ in $(seq 100); do [[ -e begun ]] && break; sleep 0.1; done
kill -STOP $recorder
for _ in $(seq 100); do [[ -e ended ]] && break; sleep 0.1; done
sleep 1
kill -CONT $recorder
wait $recorder || fail "the stopped recorder: $(cat lag.err)"
[[ $(number lag.json most_lag_ns) -gt 1000000000 ]] || fail "a stall at the end is no lag: $(number lag.json most_lag_ns) ns"
run 0 "$REPRISE" info lag.oplog
rm -f begun ended

# Attached to what runs already: its files have names, its calls are there, it goes on afterwards.
sh -c 'exec 7<"$1"; while [ ! -e stop ]; do sleep 0.05; echo x; done >loop' sh "$tmp/data" &
job=$!
sleep 0.3
run 124 timeout -s INT 3 "$REPRISE" capture -f --raw --json --pid $job -o pid.oplog
[[ $(number "$out" still_running) -ge 1 ]] || fail "the job is not said to run on: $(cat "$out")"
kill -0 $job || fail "the job ended with the recording"
# What is still running is said, without the advice that is for commands.
run 124 timeout -s INT 2 "$REPRISE" capture -f --pid $job -o other.oplog
contains "$err" " still running"
lacks "$err" "--wait-all"
: >stop
wait $job
records pid.raw
grep -q "SEED_FD .* $job/$job .*fd0={7 .*string0=\"$tmp/data\"" pid.raw.txt || fail "an open file is not named"
grep -q "SEED_TASK .* $job/$job " pid.raw.txt || fail "the task is not named"
grep -q "SEED_MAP .* $job/$job .*path0=\"/.*libc" pid.raw.txt || fail "the mappings are not there"
grep -q "CALL .* $job/$job .*write(1, " pid.raw.txt || fail "its calls are not there"
grep -q "SPAWN .* $job/$job " pid.raw.txt || fail "its children are not followed"
# A call that a task is in as the recording begins has what ends it: here a join of a thread that works on.
cat >"$tmp/joins.py" <<'EOF'
import os, threading, time
def work():
    while not os.path.exists("begin"):
        time.sleep(0.02)
    for i in range(3):
        time.sleep(0.02)
        os.stat(".")
thread = threading.Thread(target=work)
thread.start()
thread.join()
os.stat("begin")
EOF
(cd "$tmp" && exec python3 joins.py) &
job=$!
"$REPRISE" capture -q -f --pid $job -o joins.oplog 2>joins.err &
recorder=$!
for _ in $(seq 100); do [[ -e joins.raw || -e joins.oplog.partial ]] && break; sleep 0.1; done
sleep 1
: >"$tmp/begin"
wait $job
wait $recorder
run 0 "$REPRISE" dump joins.oplog
grep -q '^begin=0 .* task=1 .* wait .*edges=\[wake:2' "$out" || { fail "the wait that the job was in has no cause"; grep ' wait ' "$out" | head; }
rm -f "$tmp/begin"
# A signal that comes twice, at once or a moment later, ends the recording once: the op log is made all the same.
for gap in 0 0.01 0.1; do
    rm -f twice.oplog stop
    sh -c 'while [ ! -e stop ]; do sleep 0.05; done' &
    job=$!
    # Background jobs of a script ignore SIGINT.
    "$REPRISE" capture -f --raw --json --pid $job -o twice.oplog 2>twice.err &
    recorder=$!
    for _ in $(seq 100); do [[ -s twice.raw ]] && break; sleep 0.1; done
    sleep 0.5
    kill -TERM $recorder
    sleep $gap
    kill -TERM $recorder 2>/dev/null
    rc=0
    wait $recorder || rc=$?
    equal "$rc" 0
    [[ -s twice.oplog ]] || fail "no op log where the signal came twice, $gap s apart: $(cat twice.err)"
    : >stop
    wait $job
    rm -f twice.raw
done
true &
gone=$!
wait $gone
run 4 "$REPRISE" capture -f --pid $gone -o a.oplog
contains "$err" "no process"
run 2 "$REPRISE" capture -f --cgroup "$tmp" -o a.oplog

# A control group: what is in it, and what enters it.
group=none
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
    [[ -w $folder/cgroup.procs ]] && mkdir "$folder/reprise-test-$$" 2>/dev/null && group=$folder/reprise-test-$$ && break
done
if [[ $group != none ]]; then
    "$REPRISE" capture -q -f --raw --cgroup "$group" -o group.oplog 2>group.err &
    recorder=$!
    for _ in $(seq 100); do [[ -e group.raw ]] && break; sleep 0.1; done
    sleep 1
    sh -c 'echo $$ >"$1"; cat "$2" >/dev/null; sh -c "exec cat $2" >/dev/null' sh "$group/cgroup.procs" "$tmp/data"
    kill -INT $recorder
    wait $recorder || fail "recording a control group: $(cat group.err)"
    rmdir "$group"
    records group.raw
    equal "$(grep -c "^CALL .*openat(.*path1=\"$tmp/data\"" group.raw.txt)" 2
else
    echo "no control group can be made: --cgroup is not tested"
fi

# A recorder that is killed: the job goes on, the records are there.
: >counted
"$REPRISE" capture -q -f -o killed.oplog -- sh -c 'i=0; while [ $i -lt 60 ]; do echo $i; sleep 0.05; i=$((i + 1)); done >counted; : >finished' &
recorder=$!
for _ in $(seq 300); do [[ $(wc -l 2>/dev/null <counted) -ge 30 ]] && break; sleep 0.1; done
kill -9 $recorder
wait $recorder 2>/dev/null
for _ in $(seq 100); do [[ -e finished ]] && break; sleep 0.1; done
[[ -e finished ]] || fail "the job ended with its recorder"
equal "$(tail -n 1 counted)" 59
run 1 "$REPRISE" import killed.raw -o killed.oplog
run 0 "$REPRISE" info killed.oplog
grep -qi 'cut' "$out" || fail "nobody says that the log was cut"
records killed.raw
[[ $(grep -c '^CALL .*write(1, ' killed.raw.txt) -gt 10 ]] || fail "few records survived the recorder"

# A full disk ends the recording, not the job.
mkdir full
if mount -t tmpfs -o size=256k tmpfs full 2>/dev/null; then
    run 4 "$REPRISE" capture -f --raw -o full/a.oplog -- sh -c "'$load' flat_out 2000000 data; : >job_done"
    contains "$err" "before the job"
    [[ -e job_done ]] || fail "a full disk ended the job"
    # Whether the op log has room beside the raw records depends on when the disk was full.
    grep -qE 'full/a.oplog: INCOMPLETE, |NO OP LOG was written' "$err" || fail "an incomplete log is not said to be one"
    contains "$err" "; all that came later is lost, max lag "
    lacks "$err" " 0 lost"
    lacks "$err" "still running"
    umount full
else
    echo "no tmpfs can be mounted: the full disk is not tested"
fi

# Directories that the job renames, moves away and makes again, copies with their modes, and fills below .git: prepare lays
# out what was there, and the replay leaves what the job left.
mkdir -p jobs/old jobs/from/deep
echo one >jobs/old/there
echo two >jobs/from/deep/file
chmod 750 jobs/from/deep
cat >jobs.sh <<'END'
cd jobs
mkdir -p made.tmp/sub; mv made.tmp made
[ -e made/DONE ]; [ -e made/sub/conf ]; echo conf >made/sub/conf
mv old moved; mkdir old; echo more >old/there; cat moved/there old/there
cp -a from copy
cp "$(command -v bash)" bash.img; cat /proc/self/status >/dev/null; cat "$(command -v bash)" >again.img
mkdir -p repo/.git/objects/12; echo data >repo/.git/objects/12/34
END
run 0 "$REPRISE" capture -q -o jobs.oplog bash jobs.sh
run 0 "$REPRISE" prepare -q jobs.oplog --root jobs.root
equal "$(cd "jobs.root$PWD/jobs" && find . -type f | sort | tr '\n' ' ')" "./from/deep/file ./old/there "
run "0 1" "$REPRISE" replay jobs.oplog --root jobs.root
contains "$out" "job         SAME: "
# Of the program nothing is read, and what the job made of it is written.
equal "$(stat -c %s "jobs.root$PWD/jobs/bash.img" "jobs.root$PWD/jobs/again.img")" "$(stat -c %s jobs/bash.img jobs/again.img)"
equal "$(cd "jobs.root$PWD/jobs" && find . -printf '%M %p %y\n' | sort)" "$(cd jobs && find . -printf '%M %p %y\n' | sort)"
rm -rf jobs.root

# All files, devices and the kernel's own among them, which no replay opens.
cat >devices.sh <<'END'
cat jobs/from/deep/file >/dev/null
head -c 10 /dev/urandom | od >/dev/null
grep -c x /proc/self/status
( : </dev/tty ) 2>/dev/null; true
END
run 0 "$REPRISE" capture -q -o devices.oplog bash devices.sh
run 0 "$REPRISE" prepare -q devices.oplog --root devices.root --only all
run "0 1" "$REPRISE" replay devices.oplog --root devices.root --only all
contains "$out" "job         SAME: "
rm -rf devices.root

# A ring that is too small loses records and says so, everywhere.
run 1 "$REPRISE" capture -f --json --raw --ring 64K -o lossy.oplog -- "$load" flat_out 300000 data
[[ $(number "$out" lost) -gt 0 ]] || fail "64 KiB lost nothing: the test shows nothing"
contains "$out" '"part": "the recording lost '
run 1 "$REPRISE" capture -f --ring 64K -o lossy.oplog -- "$load" flat_out 300000 data
head -n 1 "$err" | grep -q '^INCOMPLETE: the recording lost .* replay takes such a log with --allow-loss only; record again with a larger --ring\.$' ||
    fail "lost events are not said first: $(head -n 3 "$err")"
run 5 "$REPRISE" capture -q -f --ring 64K -o lossy.oplog -- sh -c "$load flat_out 300000 data; exit 5"
contains "$err" "INCOMPLETE: the recording lost "
run 0 "$REPRISE" info lossy.oplog
grep -qi 'loss' "$out" || fail "info does not tell the losses"
run 3 "$REPRISE" replay lossy.oplog --engine null --pace afap
grep -q -- '--allow-loss' "$err" || fail "replay does not name --allow-loss"
# A job that removes the folder of the recording: no records are said to be where none are.
mkdir gone
run 4 "$REPRISE" capture -o gone/x.oplog -- rm -r gone
contains "$err" "the raw records are lost: gone/x.raw was removed"
contains "$err" "NO OP LOG was written"
lacks "$err" "retry with"
lacks "$err" "gone/x.oplog: "
finish
