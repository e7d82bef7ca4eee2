#!/usr/bin/env bash
# Processes that append to a file, each under a lock on a range of it: nothing changes places in a replay, however fast it
# goes. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
tmp=$(pwd -P)
here=${tmp#/}

cat >append.py <<'EOF'
import fcntl, hashlib, os, struct, sys
kind = sys.argv[1]
def change(f, what):
    if kind == "posix":
        fcntl.lockf(f, what)
    elif kind == "byte":  # beyond the end of the file
        fcntl.lockf(f, what, 1, 1 << 30, os.SEEK_SET)
    elif kind == "ofd":
        type = fcntl.F_UNLCK if what == fcntl.LOCK_UN else fcntl.F_WRLCK
        fcntl.fcntl(f, 38, struct.pack("hhqqi4x", type, os.SEEK_SET, 0, 0, 0))
for child in range(3):
    if os.fork() == 0:
        f = os.open("journal", os.O_WRONLY | os.O_CREAT)
        for i in range(30):
            hashlib.sha256(b"x" * 100000).digest()
            change(f, fcntl.LOCK_EX)
            os.write(f, b"%8d\n" % os.lseek(f, 0, os.SEEK_END))
            change(f, fcntl.LOCK_UN)
        os._exit(0)
for child in range(3):
    os.wait()
EOF
# Only what is in this folder: beside so little data, what Python reads to start would be most of the job.
for kind in posix byte ofd; do
    rm -f journal
    run 0 "$REPRISE" capture -o $kind.oplog -- python3 append.py $kind
    run 0 "$REPRISE" dump $kind.oplog
    [[ $(grep -Ec "flags=[1-9][0-9]* arg=F_[A-Z_]*SETLK" "$out") == 180 ]] || fail "$kind: the log does not have the locks"
    run 0 "$REPRISE" prepare $kind.oplog --root $kind.root --only "$tmp"
    for _ in 1 2; do
        run 0 "$REPRISE" replay $kind.oplog --root $kind.root --only "$tmp" --pace afap --verify content
        grep -q "^job  *SAME: .* 0 differ" "$out" || fail "$kind: $(head -n 2 "$out")"
        equal "$(stat -c %s $kind.root/$here/journal)" 810
        run 0 "$REPRISE" prepare -q --reset $kind.oplog --root $kind.root --only "$tmp"
    done
done
finish
