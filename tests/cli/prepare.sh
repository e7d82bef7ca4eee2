#!/usr/bin/env bash
# prepare: the plan, the second run, every option, every refusal.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"

# A job that reads a dataset, appends to a journal, writes a checkpoint by way of a rename and loads a library.
cat >"$tmp/job.strace" <<'STRACE'
100 1700000000.000100 openat(AT_FDCWD, "/usr/lib/libx.so", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
100 1700000000.000200 fstat(3, {st_mode=S_IFREG|0755, st_size=5000, ...}) = 0 <0.000010>
100 1700000000.000300 close(3) = 0 <0.000010>
100 1700000000.000400 openat(AT_FDCWD, "/data/train/a.bin", O_RDONLY) = 3 <0.000010>
100 1700000000.000500 fstat(3, {st_mode=S_IFREG|0640, st_size=3000000, ...}) = 0 <0.000010>
100 1700000000.000600 read(3, "", 65536) = 65536 <0.000010>
100 1700000000.000700 close(3) = 0 <0.000010>
100 1700000000.000800 openat(AT_FDCWD, "/data/train/b.bin", O_RDONLY) = 3 <0.000010>
100 1700000000.000900 fstat(3, {st_mode=S_IFREG|0644, st_size=1000, ...}) = 0 <0.000010>
100 1700000000.001000 read(3, "", 65536) = 1000 <0.000010>
100 1700000000.001100 close(3) = 0 <0.000010>
100 1700000000.001200 openat(AT_FDCWD, "/run1/journal.txt", O_WRONLY|O_APPEND) = 3 <0.000010>
100 1700000000.001300 fstat(3, {st_mode=S_IFREG|0644, st_size=700, ...}) = 0 <0.000010>
100 1700000000.001400 write(3, "", 100) = 100 <0.000010>
100 1700000000.001500 close(3) = 0 <0.000010>
100 1700000000.001600 openat(AT_FDCWD, "/run1/model.pt.tmp", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3 <0.000010>
100 1700000000.001700 write(3, "", 4096) = 4096 <0.000010>
100 1700000000.001800 close(3) = 0 <0.000010>
100 1700000000.001900 rename("/run1/model.pt.tmp", "/run1/model.pt") = 0 <0.000010>
STRACE
log=$tmp/job.oplog
run 0 "$REPRISE" import "$tmp/job.strace" -o "$log"
root=$tmp/root

# What is there, but for the marker: name, type, mode, size, hash.
tree() {
    (cd "$1" && find . -mindepth 1 ! -name .reprise-prepared -printf '%P %y %m %s\n' | sed 's/ d \([0-9]*\) .*/ d \1/' | sort
        find . -type f ! -name .reprise-prepared -exec sha256sum {} + | sort)
}

# Nothing is changed by looking.
run 0 "$REPRISE" prepare "$log" --root "$root" --dry-run
contains "$out" "files to create"
contains "$out" "(will be created)"
contains "$out" "; free: "
contains "$out" "dry run"
[[ ! -e $root ]] || fail "a dry run made the root"

run 0 "$REPRISE" prepare "$log" --root "$root"
contains "$out" "done: "
equal "$(stat -c %s "$root/data/train/a.bin" "$root/data/train/b.bin" "$root/run1/journal.txt" | tr '\n' ' ')" "3000000 1000 700 "
equal "$(stat -c %a "$root/data/train/a.bin")" 640
[[ ! -e $root/usr ]] || fail "a program file was laid out"
[[ ! -e $root/run1/model.pt && ! -e $root/run1/model.pt.tmp ]] || fail "files that the recording makes were laid out"
contains "$root/.reprise-prepared" '"state": "complete"'
gzip -c "$root/data/train/a.bin" >"$tmp/packed"
[[ $(stat -c %s "$tmp/packed") -ge 3000000 ]] || fail "random content compresses"
tree "$root" >"$tmp/fresh"

run 0 "$REPRISE" prepare "$log" --root "$root"
contains "$out" "nothing to do"
run 0 "$REPRISE" -q prepare "$log" --root "$root"
empty "$out"
run 0 "$REPRISE" prepare "$log" --root "$root" --json
contains "$out" '"state": "nothing to do, everything is in place"'
contains "$out" '"fits": true'

# A file of its size whose data is gone, as a copy without data leaves it: named, and written again.
truncate -s 0 "$root/data/train/a.bin"
truncate -s 3000000 "$root/data/train/a.bin"
run 0 "$REPRISE" prepare "$log" --root "$root"
contains "$out" "warning: data is missing in 1 file: data/train/a.bin (has holes); --reset restores it"
contains "$out" "nothing was changed"
run 0 "$REPRISE" prepare "$log" --root "$root" --json
contains "$out" '"lost_data": 1'
run 0 "$REPRISE" prepare "$log" --root "$root" --reset
contains "$out" "done: "
tree "$root" | diff "$tmp/fresh" - >"$tmp/diff" || fail "lost data is not written again: $(head -n 3 "$tmp/diff")"

# A replay's changes, put back.
printf 'x%.0s' {1..100} >>"$root/run1/journal.txt"
head -c 4096 /dev/zero >"$root/run1/model.pt"
rm "$root/data/train/b.bin"
echo mine >"$root/run1/mine"
run 4 "$REPRISE" prepare "$log" --root "$root"
contains "$err" "run1/model.pt (the recording makes it)"
contains "$err" "--reset"
run 0 "$REPRISE" prepare "$log" --root "$root" --reset -n
contains "$out" "created by the log, to remove"
[[ -e $root/run1/model.pt ]] || fail "a dry run removed something"
run 0 "$REPRISE" prepare "$log" --root "$root" --reset
equal "$(cat "$root/run1/mine")" mine
rm "$root/run1/mine"
tree "$root" >"$tmp/again"
cmp -s "$tmp/fresh" "$tmp/again" || { fail "a reset differs from a fresh root"; diff "$tmp/fresh" "$tmp/again"; }

# Options.
run 0 "$REPRISE" prepare "$log" --root "$tmp/zero" --content zero -j 1
equal "$(tr -d '\0' <"$tmp/zero/data/train/a.bin" | wc -c)" 0
[[ $(stat -c %b "$tmp/zero/data/train/a.bin") -gt 5000 ]] || fail "zero content is sparse"
run 0 "$REPRISE" prepare "$log" --root "$tmp/sparse" --content sparse
equal "$(stat -c '%s %b' "$tmp/sparse/data/train/a.bin")" "3000000 0"
run 0 "$REPRISE" prepare "$log" --root "$tmp/mapped" --map /data/train=.,/run1=logs/x
equal "$(stat -c %s "$tmp/mapped/a.bin" "$tmp/mapped/logs/x/journal.txt" | tr '\n' ' ')" "3000000 700 "
run 0 "$REPRISE" prepare "$log" --root "$tmp/mapped"
contains "$out" "nothing to do"
files_in() { (cd "$1" && find . -type f ! -name .reprise-prepared -printf '%P\n' | sort | tr '\n' ' '); }
run 0 "$REPRISE" prepare "$log" --root "$tmp/role" --only program
equal "$(files_in "$tmp/role")" "usr/lib/libx.so "
run 0 "$REPRISE" prepare "$log" --root "$tmp/glob" --only '/data/train/a*' --only '/usr/*'
equal "$(files_in "$tmp/glob")" "data/train/a.bin usr/lib/libx.so "
run 0 "$REPRISE" prepare "$log" --root "$tmp/not" --not '/run1/*'
[[ ! -e $tmp/not/run1 ]] || fail "--not laid out what it leaves out"

# Refusals.
run 2 "$REPRISE" prepare "$log"
contains "$err" "--root is required"
run 2 "$REPRISE" prepare "$log" --root "$root" --content full
contains "$err" "expected one of: random, zero, sparse"
run 2 "$REPRISE" prepare "$log" --root "$root" --map nonsense
contains "$err" "--map 'nonsense': there is no '='"
run 2 "$REPRISE" prepare "$log" --root "$root" --map '/w/a,b=q'
contains "$err" "--map /w/a,b=q matches no file"
run 2 "$REPRISE" prepare "$log" --root "$root" --map '/data=x,/run1'
contains "$err" "--map '/data=x,/run1': in '/run1' there is no '='"
run 2 "$REPRISE" prepare "$log" --root "$root" --map /data=../outside
contains "$err" "NEW leads out of the root"
run 2 "$REPRISE" prepare "$log" --root "$root" -j 0
run 4 "$REPRISE" prepare "$log" --root "$tmp/no/such/root"
contains "$err" "mkdir -p"
run 4 "$REPRISE" prepare "$log" --root "$log"
contains "$err" "not a directory"
run 4 "$REPRISE" prepare "$log" --root /
contains "$err" "root of the file system"
run 4 "$REPRISE" prepare "$log" --root "$tmp/unmarked" --reset
contains "$err" "has no marker"
run 3 "$REPRISE" prepare "$tmp/job.strace" --root "$tmp/x"
[[ ! -e $tmp/x ]] || fail "a root was made for what is no log"
run 3 "$REPRISE" prepare "$tmp/none.oplog" --root "$tmp/x"
mkdir -p "$tmp/used/data/train"
echo precious >"$tmp/used/data/train/a.bin"
run 4 "$REPRISE" prepare "$log" --root "$tmp/used" --json
contains "$err" "data/train/a.bin (has 9 bytes, the recording's had 3000000)"
contains "$out" '"state": "refused"'
equal "$(find "$tmp/used" -type f -exec cat {} +)" precious
mkdir "$tmp/blocked"
echo file >"$tmp/blocked/data"
run 4 "$REPRISE" prepare "$log" --root "$tmp/blocked"
contains "$err" "data (not a directory)"
mkdir "$tmp/outside"
mkdir "$tmp/planted"
ln -s "$tmp/outside" "$tmp/planted/data"
run 4 "$REPRISE" prepare "$log" --root "$tmp/planted"
equal "$(ls -A "$tmp/outside")" ""

# What copies of the job created goes with --reset, also without --gpus.
run 0 "$REPRISE" prepare "$log" --root "$tmp/copies" --gpus 3
tree "$tmp/copies" >"$tmp/before.copies"
run 0 "$REPRISE" replay "$log" --root "$tmp/copies" --gpus 3 --pace afap
[[ -e $tmp/copies/run1/gpu2.model.pt ]] || fail "the third copy wrote nothing: $(ls "$tmp/copies/run1")"
run 0 "$REPRISE" prepare "$log" --root "$tmp/copies" --reset
tree "$tmp/copies" | diff "$tmp/before.copies" - || fail "--reset left what the copies changed"

# What the recording found of extended attributes and of loops of links, a replay finds, too.
cat >"$tmp/names.strace" <<'END'
100 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDONLY|O_CLOEXEC) = 3</data/a> <0.000010>
100 1700000000.000100 fstat(3</data/a>, {st_mode=S_IFREG|0644, st_size=4096, ...}) = 0 <0.000005>
100 1700000000.000200 getxattr("/data/a", "user.label", "seven", 64) = 5 <0.000010>
100 1700000000.000300 getxattr("/data/a", "user.other", 0x7ffd0, 64) = -1 ENODATA (No data available) <0.000010>
100 1700000000.000400 setxattr("/data/a", "user.label", "nine-long", 9, 0) = 0 <0.000010>
100 1700000000.000500 openat(AT_FDCWD, "/data/loop", O_RDONLY) = -1 ELOOP (Too many levels of symbolic links) <0.000010>
100 1700000000.000600 stat("/data/loop/below", 0x7ffd0) = -1 ELOOP (Too many levels of symbolic links) <0.000010>
100 1700000000.000700 read(3</data/a>, "x"..., 4096) = 4096 <0.000010>
100 1700000000.000800 close(3</data/a>) = 0 <0.000010>
100 1700000000.000900 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q "$tmp/names.strace" -o "$tmp/names.oplog"
run 0 "$REPRISE" prepare "$tmp/names.oplog" --root "$tmp/names"
if grep -q "which the file system refused" "$out"; then
    echo "no user attributes on this file system: not tested"
else
    for _ in 1 2; do
        run 0 "$REPRISE" replay "$tmp/names.oplog" --root "$tmp/names" --pace afap --tolerance-results 0
        contains "$out" "SAME: 9 I/O ops as recorded"
        run 0 "$REPRISE" prepare -q "$tmp/names.oplog" --root "$tmp/names" --reset
    done
    # Those of the system, and what does not fit, are said.
    sed 's/user.label", "seven", 64) = 5/security.label", "seven", 64) = 5/' "$tmp/names.strace" >"$tmp/system.strace"
    run 0 "$REPRISE" import -q "$tmp/system.strace" -o "$tmp/system.oplog"
    run 0 "$REPRISE" prepare -q "$tmp/system.oplog" --root "$tmp/system"
    contains "$out" "warning: 1 extended attributes of the system or of links, which prepare cannot give"
fi

# What a rename that failed found: a file below a directory, a directory below a file, a full directory.
cat >"$tmp/renames.strace" <<'END'
100 1700000000.000000 rename("/data/saved", "/data/best") = -1 ENOTDIR (Not a directory) <0.000010>
100 1700000000.000100 rename("/data/model.tmp", "/data/model") = -1 EISDIR (Is a directory) <0.000010>
100 1700000000.000200 rename("/data/step-2", "/data/last") = -1 ENOTEMPTY (Directory not empty) <0.000010>
100 1700000000.000300 link("/data/x", "/data/y") = -1 EEXIST (File exists) <0.000010>
100 1700000000.000400 rename("/data/saved", "/data/kept") = 0 <0.000010>
100 1700000000.000500 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q "$tmp/renames.strace" -o "$tmp/renames.oplog"
run 0 "$REPRISE" prepare -q "$tmp/renames.oplog" --root "$tmp/renames"
for _ in 1 2; do
    run 0 "$REPRISE" replay "$tmp/renames.oplog" --root "$tmp/renames" --pace afap --tolerance-results 0
    contains "$out" "SAME: 5 I/O ops as recorded"
    [[ -d $tmp/renames/data/kept && -d $tmp/renames/data/last && -f $tmp/renames/data/best ]] || fail "no such names"
    run 0 "$REPRISE" prepare -q "$tmp/renames.oplog" --root "$tmp/renames" --reset
done

# Ctrl-C: what is there is whole, the marker says incomplete, nothing half-written stays.
sed 's/st_size=3000000/st_size=6000000000/' "$tmp/job.strace" >"$tmp/large.strace"
run 0 "$REPRISE" import "$tmp/large.strace" -o "$tmp/large.oplog"
if [[ $(df --output=avail -B1 "$tmp" | tail -n 1) -gt 8000000000 ]]; then
    "$REPRISE" prepare "$tmp/large.oplog" --root "$tmp/large" >"$out" 2>"$err" &
    job=$!
    for _ in {1..500}; do
        [[ -s $tmp/large/data/train/a.bin ]] && break
        sleep 0.01
    done
    kill -INT $job
    wait $job
    equal $? 4
    contains "$err" "run the same command again"
    contains "$tmp/large/.reprise-prepared" '"state": "incomplete"'
    [[ ! -e $tmp/large/data/train/a.bin ]] || fail "a half-written file was left"
else
    echo "SKIPPED: the part about Ctrl-C needs 8 GB in $tmp"
fi
finish
