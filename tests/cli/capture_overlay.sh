#!/usr/bin/env bash
# Recordings on overlayfs, as in every container: the pages are those of a file below, and belong to the one that the
# job opened. Needs root, BPF and overlayfs.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

"$REPRISE" capture --check --json >check.json 2>/dev/null || skip "this machine cannot record"
# The layers need a file system that has extended attributes and drops pages when asked.
mkdir lower upper work merged
mount -t overlay overlay -o "lowerdir=$tmp/lower,upperdir=$tmp/upper,workdir=$tmp/work" merged 2>"$err" ||
    skip "no overlayfs can be mounted: $(head -n 1 "$err")"
trap 'umount "$tmp/merged" 2>/dev/null; rm -rf "$tmp"' EXIT
umount merged
size=$((8 << 20))
head -c $size /dev/urandom >lower/of_lower
head -c $size /dev/urandom >upper/of_upper
head -c $size /dev/urandom >lower/mapped
head -c $size /dev/urandom >lower/changed
mount -t overlay overlay -o "lowerdir=$tmp/lower,upperdir=$tmp/upper,workdir=$tmp/work" merged

# The same files without an overlay, to compare with.
mkdir plain
cp lower/* upper/of_upper plain/

drop() {
    sync
    python3 - lower/* upper/* plain/* <<'PYTHON'
import os, sys
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
PYTHON
}
job='
import mmap, os, sys
where = sys.argv[1] + "/"
with open(where + "mapped", "rb") as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    n = sum(m[i] for i in range(0, len(m), 4096))
for name in ("of_lower", "of_upper", "changed"):
    with open(where + name, "rb", buffering=0) as f:
        while f.read(1 << 20): pass
'
# plan LOG: which regime a replay takes by default, and how much was fetched.
plan() {
    rm -rf root
    run 0 "$REPRISE" prepare "$1" --root root --only dataset
    run 0 "$REPRISE" replay "$1" --root root --only dataset --pace afap
}

# "fetched X of Y" of a replay's default.
fetched() { sed -n 's/.*(default: the recording \(fetched [^)]*\)).*/\1/p' "$out"; }

drop
run 0 "$REPRISE" capture -q -o plain.oplog -- python3 -c "$job" plain
plan plain.oplog
expected=$(fetched)
drop
run 0 "$REPRISE" capture -q --raw -o cold.oplog -- python3 -c "$job" merged
run 0 "$REPRISE" __raw cold.raw
grep -q '^BACKING ' "$out" || fail "nothing is said of the files below"
plan cold.oplog
[[ $expected == "fetched "[0-9]*" MiB of "* ]] || fail "the plain recording was not cold: $expected"
equal "$(fetched)" "$expected"

# In memory: nothing is fetched, and how much was there is known.
# Some machines take pages back that nobody used for seconds (DAMON), so it may take another try.
for _ in 1 2 3 4 5 6; do
    run 0 "$REPRISE" capture -q -f -o warm.oplog -- python3 -c "$job" merged
    plan warm.oplog
    grep -q "the recording fetched only " "$out" && break
done
contains "$out" "the recording fetched only "

# Copied up between two recordings, and within one.
echo x >>merged/changed
drop
run 0 "$REPRISE" capture -q -o up.oplog -- sh -c 'cat merged/changed >/dev/null; echo y >>merged/of_lower; cat merged/of_lower >/dev/null'
run 0 "$REPRISE" info up.oplog
lacks "$out" "cache_files_unknown"
plan up.oplog
contains "$out" "the recording fetched "
lacks "$out" "fetched only"

# A lower overlay: its file is not found, which is said, and the regime is that of logs that do not say.
mkdir upper2 work2 merged2
if mount -t overlay overlay -o "lowerdir=$tmp/merged,upperdir=$tmp/upper2,workdir=$tmp/work2" merged2 2>"$err"; then
    trap 'umount "$tmp/merged2" 2>/dev/null; umount "$tmp/merged" 2>/dev/null; rm -rf "$tmp"' EXIT
    run 0 "$REPRISE" capture -o twice.oplog -- cat merged2/mapped
    contains "$err" "files on overlayfs whose pages in memory could not be told"
    run 0 "$REPRISE" info twice.oplog
    contains "$out" "cache_files_unknown"
    plan twice.oplog
    lacks "$out" "fetched only 0 B"
    umount merged2
else
    echo "SKIPPED: an overlay on an overlay, it cannot be mounted: $(head -n 1 "$err")"
fi
umount merged
finish
