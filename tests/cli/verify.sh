#!/usr/bin/env bash
# `replay --verify`: names, types, sizes and every byte; each of 100 bytes that are wrong is named, by file, offset and op.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# A job that reads a data set, and writes a checkpoint the way jobs do: beside the old one, synced, renamed over it.
cat >job.strace <<'END'
100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700001000.001000 openat(AT_FDCWD, "/data/in", O_RDONLY) = 3 <0.000020>
100 1700001000.002000 fstat(3, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0 <0.000010>
100 1700001000.003000 pread64(3, ""..., 524288, 0) = 524288 <0.000200>
100 1700001000.004000 pread64(3, ""..., 524288, 524288) = 524288 <0.000200>
100 1700001000.005000 close(3) = 0 <0.000010>
100 1700001000.006000 openat(AT_FDCWD, "/out/model.tmp", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3 <0.000050>
100 1700001000.007000 write(3, ""..., 100001) = 100001 <0.000100>
100 1700001000.008000 pwrite64(3, ""..., 5000, 50000) = 5000 <0.000100>
100 1700001000.009000 pread64(3, ""..., 60000, 40000) = 60000 <0.000100>
100 1700001000.010000 fsync(3) = 0 <0.001000>
100 1700001000.012000 close(3) = 0 <0.000010>
100 1700001000.013000 rename("/out/model.tmp", "/out/model") = 0 <0.000050>
100 1700001000.014000 openat(AT_FDCWD, "/out/log", O_WRONLY|O_CREAT|O_APPEND, 0644) = 3 <0.000050>
100 1700001000.015000 write(3, "a\n", 2) = 2 <0.000050>
100 1700001000.016000 ftruncate(3, 5000) = 0 <0.000050>
100 1700001000.017000 close(3) = 0 <0.000010>
100 1700001000.018000 unlink("/out/old") = 0 <0.000050>
100 1700001000.019000 mkdir("/out/dir", 0755) = 0 <0.000050>
100 1700001000.020000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q job.strace -o job.oplog
prepare() { "$REPRISE" prepare -q job.oplog --root root "$@" >"$out" 2>"$err" || fail "prepare: $(cat "$err")"; }
replay() { "$REPRISE" replay -q job.oplog --root root --pace afap --tolerance-results 0 "$@" >"$out" 2>"$err"; }
found() { python3 -c "import json; print(json.load(open('run.json'))['verify']['found'])"; }

prepare
[[ -f root/out/old && -f root/data/in ]] || fail "the root: $(find root)"
replay --verify content --json=run.json || fail "as it should be: $(cat "$out" "$err")"
equal "$(found)" 0
python3 - <<'END' || fail "what was checked"
import json
verify = json.load(open("run.json"))["verify"]
assert verify["reads"] == 3 and verify["read_bytes"] == 1048576 + 60000, verify
assert verify["bytes"] == 1048576 + 100001 + 5000 and verify["unchecked_bytes"] == 0, verify
END
# What it left is what the replay says it writes, and not what another op would have.
[[ -f root/out/model && ! -e root/out/model.tmp && ! -e root/out/old && -d root/out/dir ]] || fail "the tree"
run 2 "$REPRISE" replay job.oplog --root root --verify tree
contains "$err" "restore it: reprise prepare LOG --root DIR --reset"

# A hundred bytes of the data set, each in its own place: the reads name them, with the op that read them.
prepare --reset
python3 - <<'END'
import json, random
random.seed(5)
places = sorted(random.sample(range(0, 1048576, 7), 100))
with open("root/data/in", "r+b") as file:
    for place in places:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ (1 << random.randrange(8))]))
json.dump(places, open("places.json", "w"))
END
rm -f run.json
replay --verify content --json=run.json && fail "100 wrong bytes: exit code 0"
python3 - <<'END' || fail "the wrong bytes"
import json
places = json.load(open("places.json"))
findings = json.load(open("run.json"))["verify"]["findings"]
kinds = {}
for one in findings:
    assert one["path"] == "/data/in" and one["bytes"] == 1, one
    kinds.setdefault(one["what"], []).append(one["offset"])
    if one["what"] == "read":
        assert one["task"] == 1, one
reads = {one["offset"]: one["op"] for one in findings if one["what"] == "read"}
assert sorted(kinds["read"]) == places, (len(kinds["read"]), len(places))
assert sorted(kinds["content"]) == places, len(kinds["content"])
ops = {op for op in reads.values()}
assert len(ops) == 2, ops
half = {reads[place] for place in places if place < 524288}
assert len(half) == 1, half
END
contains "$out" "NOT THE SAME JOB: 200 things in files are not as it should be"

# Sizes and names without content.
prepare --reset
replay --verify tree || fail "tree: $(cat "$out" "$err")"
prepare --reset
touch root/out/stray
replay --verify tree --json=run.json -f && fail "a stray file: exit code 0"
contains run.json "/out/stray should not be there"
rm root/out/stray
prepare --reset --content zero
run 2 "$REPRISE" replay job.oplog --root root --verify content
contains "$err" "requires random content, and the root has content zero"
run 2 "$REPRISE" replay job.oplog --root root --verify tree --read-only
contains "$err" "--verify checks the job as recorded"

# With O_APPEND, Linux writes at the end, whatever the offset: there the bytes of such a call are looked for.
cat >append.strace <<'END'
100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700001000.001000 openat(AT_FDCWD, "/out/app", O_RDWR|O_CREAT|O_APPEND, 0644) = 3 <0.000050>
100 1700001000.002000 write(3, ""..., 1000) = 1000 <0.000050>
100 1700001000.003000 pwrite64(3, ""..., 100, 0) = 100 <0.000050>
100 1700001000.004000 pwritev(3, [{iov_base=""..., iov_len=60}, {iov_base=""..., iov_len=40}], 2, 300) = 100 <0.000050>
100 1700001000.005000 write(3, ""..., 10) = 10 <0.000050>
100 1700001000.006000 pread64(3, ""..., 1210, 0) = 1210 <0.000050>
100 1700001000.007000 close(3) = 0 <0.000010>
100 1700001000.008000 openat(AT_FDCWD, "/out/plain", O_RDWR|O_CREAT, 0644) = 3 <0.000050>
100 1700001000.009000 write(3, ""..., 1000) = 1000 <0.000050>
100 1700001000.010000 pwritev2(3, [{iov_base=""..., iov_len=100}], 1, 500, RWF_APPEND) = 100 <0.000050>
100 1700001000.011000 pread64(3, ""..., 1100, 0) = 1100 <0.000050>
100 1700001000.012000 close(3) = 0 <0.000010>
100 1700001000.013000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q append.strace -o append.oplog
run 0 "$REPRISE" prepare -q append.oplog --root append
run 0 "$REPRISE" replay -q append.oplog --root append --pace afap --tolerance-results 0 --verify content --json=append.json
equal "$(stat -c %s append/out/app append/out/plain | tr '\n' ' ')" "1210 1100 "
python3 - <<'END' || fail "appends: what was checked"
import json
verify = json.load(open("append.json"))["verify"]
assert verify["found"] == 0 and verify["read_bytes"] == 1210 + 1100 and verify["bytes"] == 1210 + 1100, verify
END

# O_APPEND that F_SETFL takes away; a FIFO that goes, which is a name in the tree, beside a file that stays.
cat >later.strace <<'END'
100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700001000.001000 openat(AT_FDCWD, "/out/app", O_RDWR|O_CREAT|O_APPEND, 0644) = 3 <0.000020>
100 1700001000.002000 pwrite64(3, ""..., 10, 1000) = 10 <0.000100>
100 1700001000.003000 write(3, ""..., 10) = 10 <0.000100>
100 1700001000.004000 fcntl(3, F_SETFL, O_RDONLY) = 0 <0.000010>
100 1700001000.005000 pwrite64(3, ""..., 10, 1000) = 10 <0.000100>
100 1700001000.006000 close(3) = 0 <0.000010>
100 1700001000.007000 lstat("/in/ff", {st_mode=S_IFIFO|0644, st_size=0, ...}) = 0 <0.000010>
100 1700001000.008000 openat(AT_FDCWD, "/in/data", O_RDONLY) = 3 <0.000020>
100 1700001000.009000 read(3, ""..., 5000) = 5000 <0.000200>
100 1700001000.010000 close(3) = 0 <0.000010>
100 1700001000.011000 unlink("/in/ff") = 0 <0.000050>
100 1700001000.012000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q later.strace -o later.oplog
run 0 "$REPRISE" prepare -q later.oplog --root later
[[ -p later/in/ff ]] || fail "no FIFO was prepared"
run 0 "$REPRISE" replay -q later.oplog --root later --pace afap --tolerance-results 0 --verify content --json=later.json
equal "$(stat -c %s later/out/app)" 1010
[[ ! -e later/in/ff ]] || fail "the FIFO is still there"
python3 - <<'END' || fail "later: what was checked"
import json
verify = json.load(open("later.json"))["verify"]
assert verify["found"] == 0 and verify["read_bytes"] == 5000, verify
END

# What is mapped to the root itself is there, and has no name in it.
cat >top.strace <<'END'
100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700001000.001000 openat(AT_FDCWD, "/data", O_RDONLY) = 3 <0.000020>
100 1700001000.002000 fstat(3, {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0 <0.000010>
100 1700001000.003000 fsync(3) = 0 <0.000200>
100 1700001000.004000 close(3) = 0 <0.000010>
100 1700001000.005000 openat(AT_FDCWD, "/data/in", O_RDONLY) = 3 <0.000020>
100 1700001000.006000 read(3, ""..., 5000) = 5000 <0.000200>
100 1700001000.007000 close(3) = 0 <0.000010>
100 1700001000.008000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q top.strace -o top.oplog
for verify in tree content; do
    run 0 "$REPRISE" prepare -q top.oplog --root top --map /data=.
    run 0 "$REPRISE" replay -q top.oplog --root top --pace afap --tolerance-results 0 --verify "$verify"
done
printf '[suite]\nruns = 2\nwarm-up = 0\n[job j]\nlog = top.oplog\nprepare = --map /data=.\nreplay = --pace afap\n' >top.ini
mkdir target
run 0 "$REPRISE" regress -q top.ini --target t=target
finish
