#!/usr/bin/env bash
# A disk that is full when the log of a run is written: the result is printed all the same, and nothing unfinished is left.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
[[ $EUID == 0 ]] || skip "mounts a small tmpfs: needs root"
mkdir full
mount -t tmpfs -o size=64k tmpfs full 2>/dev/null || skip "no tmpfs can be mounted here"
trap 'umount "$tmp/full"; rm -rf "$tmp"' EXIT

python3 - >job.strace <<'END'
import random
random.seed(1)
print('100 1700001000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>')
print('100 1700001000.000200 openat(AT_FDCWD, "/data/in", O_RDONLY) = 3 <0.000020>')
for i in range(20000):
    print(f'100 {1700001000.001 + i * 1e-5:.6f} pread64(3, ""..., 512, {random.randrange(1 << 20)}) = 512 <0.000005>')
print('100 1700001001.000000 +++ exited with 0 +++')
END
run 0 "$REPRISE" import -q job.strace -o job.oplog
run 0 "$REPRISE" prepare -q job.oplog --root root
storage_model model.json
# lost NAME WORD COMMAND...: its log is lost, its result, which has WORD in it, is not
lost() {
    local name=$1 word=$2
    shift 2
    run 4 "$@" -o "full/$name.oplog" --json="$name.json"
    equal "$(head -c 15 "$out")" "LOG NOT WRITTEN"
    contains <(head -n 1 "$out") "LOG NOT WRITTEN: full/$name.oplog: cannot be written: No space left on device"
    contains <(tr -s " \n" " " <"$out") "another file system"
    contains "$out" "$word"
    contains "$name.json" '"output_lost": "full/'"$name"
    equal "$(ls full)" ""
}
lost replay "time  " "$REPRISE" replay -q job.oplog --root root --pace afap
lost predict "predicted " "$REPRISE" predict -q job.oplog --storage model.json
# In a series, too; and where there is space, there is a log.
run 4 "$REPRISE" replay -q job.oplog --root root --pace afap --runs 3 -o full/series.oplog
contains <(head -n 1 "$out") "LOG NOT WRITTEN: full/series.1.oplog:"
equal "$(ls full)" ""
run "0 1" "$REPRISE" replay -q job.oplog --root root --pace afap -o there.oplog --json
lacks "$out" output_lost
[[ -s there.oplog ]] || fail "no log"
# What makes a log of another one leaves nothing unfinished either.
recorded=$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog
for words in "scale --scale 2" anonymize; do
    read -ra made <<<"$words"
    run 4 "$REPRISE" "${made[@]}" -q "$recorded" -o full/made.oplog
    contains <(head -n 1 "$err") "full/made.oplog: cannot be written: No space left on device"
    equal "$(ls full)" ""
done
finish
