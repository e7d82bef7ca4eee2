#!/usr/bin/env bash
# Recordings of jobs whose calls depended on where they ran: two file systems, FIFOs, folders above a mapped one, another
# user, pinned CPUs, memory, a job that already ran. A replay does the same job, or says what it cannot know. Needs root
# and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
can_record || skip "this machine cannot record"
chmod 755 "$tmp"
cd "$tmp" || exit 1
mkdir job memory
memory=$tmp/memory
mount -t tmpfs none "$memory" 2>/dev/null || skip "cannot mount a tmpfs"
trap 'umount "$memory"; rm -rf "$tmp"' EXIT
cd job || exit 1

# record NAME COMMAND...; again NAME [OPTION...]: a replay in a root of its own, whose exit code is 0.
record() {
    local name=$1
    shift
    run 0 "$REPRISE" capture -q -f -o "$tmp/$name.oplog" -- "$@"
}
again() {
    local name=$1
    shift
    run 0 "$REPRISE" prepare -q "$tmp/$name.oplog" --root "$tmp/$name.root" "${maps[@]}"
    run 0 "$REPRISE" replay -v "$tmp/$name.oplog" --root "$tmp/$name.root" "$@"
}
maps=()
python=/usr/bin/python3
[[ -x $python ]] || python=python3

# 1. cp and mv between file systems: what failed with EXDEV there works in one root.
head -c 3000000 /dev/urandom >big
record cp bash -c "cp big $memory/big; cp --reflink=auto $memory/big back; mv $memory/big moved; ln back $memory/l 2>/dev/null; cat moved >/dev/null"
"$REPRISE" dump "$tmp/cp.oplog" >cp.txt
grep -q ' rename result=-18' cp.txt && grep -q ' copy_file_range result=-18' cp.txt || fail "nothing failed with EXDEV in the recording"
again cp --pace afap
contains "$out" " + 0 differ"

# 2. A FIFO: one writes, another reads, and each waits for the other to open it.
mkfifo ff
record fifo bash -c 'cat ff >got & sleep 0.3; dd if=big of=ff bs=64k status=none; wait'
"$REPRISE" dump "$tmp/fifo.oplog" >fifo.txt
again fifo --pace afap
contains "$out" " + 0 differ"
contains "$out" "not_a_file"
record fifo_writer bash -c 'dd if=big of=ff bs=64k status=none & sleep 0.3; cat ff >got; rm ff; wait'
again fifo_writer --pace afap
contains "$out" " + 0 differ"

# 3. Parents of a mapped folder.
mkdir -p deep/dir
echo text >deep/dir/file
record real realpath deep/dir/file
maps=(--map "$PWD/deep/dir=.")
again real --pace afap
contains "$out" " + 0 differ"
contains "$out" "no_place"
maps=()

# 4. Another user: refused there and not here, or the other way round.
if command -v setpriv >/dev/null; then
    # theirs ROOT FILE: the other user's root, but for a file.
    theirs() { chown -R 65534:65534 "$1" && chown 0:0 "$1$PWD/$2" && chmod 600 "$1$PWD/$2"; }
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    record refused "${as_nobody[@]}" bash -c 'touch here 2>/dev/null; rm -f big 2>/dev/null; cat big >/dev/null'
    again refused --pace afap
    contains "$out" " + 0 differ"
    contains "$out" "refused"
    [[ ! -e $tmp/refused.root$PWD/here ]] || fail "the replay made a file that the job did not"
    echo kept >stderr
    run 0 bash -c 'exec "$0" capture -q -f -o "$1" -- cat big 2>>stderr' "$REPRISE" "$tmp/inherited.oplog"
    run 0 "$REPRISE" prepare -q "$tmp/inherited.oplog" --root "$tmp/inherited.root"
    theirs "$tmp/inherited.root" stderr
    run 0 "${as_nobody[@]}" "$REPRISE" replay -v "$tmp/inherited.oplog" --root "$tmp/inherited.root" --pace afap
    contains "$out" "not_permitted"
    record reads cat big
    run 0 "$REPRISE" prepare -q "$tmp/reads.oplog" --root "$tmp/reads.root"
    theirs "$tmp/reads.root" big
    run 1 "${as_nobody[@]}" "$REPRISE" replay "$tmp/reads.oplog" --root "$tmp/reads.root" --pace afap
    contains "$out" "refused to this user"
fi

# 5. Tasks that were pinned.
if [[ $(nproc) -gt 1 ]] && command -v taskset >/dev/null; then
    first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    # shellcheck disable=SC2016  # for the inner shell
    record pinned bash -c 'for i in 1 2 3; do taskset -c "$0" "$1" -S -c "sum(range(2000000)); open(\"big\")" & done; wait' "$first" "$python"
    run 0 "$REPRISE" dump --tables --no-ops "$tmp/pinned.oplog"
    contains "$out" '"capture.pinned_tasks"="3"'
    contains "$out" '"capture.pinned_cpus"="1"'
    run 0 "$REPRISE" dump --tables --no-ops "$tmp/cp.oplog"
    lacks "$out" capture.pinned
fi

# 6. Writes to a mapping on tmpfs that was read first.
head -c 8388608 /dev/urandom >"$memory/mapped"
cat >map.py <<'EOF'
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    map = mmap.mmap(file.fileno(), 0)
    total = sum(map[::4096])
    for i in range(0, len(map), 4096):
        map[i] = 1
    map.flush()
EOF
record mapped "$python" -S map.py "$memory/mapped"
run 0 "$REPRISE" prepare -q "$tmp/mapped.oplog" --root "$tmp/mapped.root"
run 0 "$REPRISE" replay "$tmp/mapped.oplog" --root "$tmp/mapped.root" --pace afap
contains "$out" "trust       POOR  writes to 1 mapping of files on tmpfs leave no page fault"
cp "$memory/mapped" on_disk
record disk "$python" -S map.py on_disk
run 0 "$REPRISE" prepare -q "$tmp/disk.oplog" --root "$tmp/disk.root"
run 0 "$REPRISE" replay -v "$tmp/disk.oplog" --root "$tmp/disk.root" --pace afap
lacks "$out" "tmpfs"

# 8. Attached in the middle, ended in the middle.
"$python" -S -c '
import time
file = open("big", "rb")
for i in range(100):
    file.seek(0)
    file.read(4096)
    time.sleep(0.05)' &
job=$!
sleep 0.3
"$REPRISE" capture -q -o "$tmp/attached.oplog" --pid "$job" >"$out" 2>"$err" &
recorder=$!
sleep 2
kill -TERM "$recorder"
wait "$recorder"
kill "$job"
wait "$job" 2>/dev/null
run 0 "$REPRISE" prepare -q "$tmp/attached.oplog" --root "$tmp/attached.root"
run 0 "$REPRISE" replay -v "$tmp/attached.oplog" --root "$tmp/attached.root" --pace afap
contains "$out" "attached to a job that already ran"
contains "$out" "still ran when the recording ended"

finish
