#!/usr/bin/env bash
# capture --with content and prepare --content recorded: prepared files compress as the recorded ones do.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this user cannot record"

mkdir data
for i in $(seq 20); do
    python3 -c "import random; random.seed($i)
print('\n'.join('%d,%d,%.3f,class_%d' % (n, random.randrange(1000), random.random(), n % 7) for n in range(9000)))" >data/$i.csv
    head -c 200000 /dev/urandom >data/$i.jpg
    { head -c 70000 /dev/urandom; head -c 130000 /dev/zero; } >data/half$i
done
job=(sh -c 'cat data/* >/dev/null; echo new >data/log.csv')
run 0 "$REPRISE" capture -q -o plain.oplog -- "${job[@]}"
rm data/log.csv
run 3 "$REPRISE" prepare plain.oplog --root root --content recorded
contains "$err" "does not say how its files compress"
contains "$err" "capture --with content"
[[ ! -e root/.reprise-prepared ]] || fail "a root was made"

run 0 "$REPRISE" capture -q --with content -o job.oplog -- "${job[@]}"
run 0 "$REPRISE" prepare job.oplog --root root --map "$tmp/data=." --content recorded
run 0 "$REPRISE" prepare job.oplog --root plain --map "$tmp/data=."
grep -q '"content": *"recorded"' root/.reprise-prepared || fail "the marker does not say it"
# share FILE...: what zstd -1 makes of it, percent
share() {
    local raw packed
    raw=$(cat "$@" | wc -c)
    packed=$(for file in "$@"; do zstd -1 -q -c "$file" | wc -c; done | awk '{ sum += $1 } END { print sum }')
    echo $((100 * packed / raw))
}
near() { [[ $(($1 - $2)) -le $3 && $(($2 - $1)) -le $3 ]] || fail "$4: $1 %, expected about $2 %"; }
near "$(share root/*.csv)" "$(share data/[0-9]*.csv)" 4 csv
near "$(share root/*.jpg)" 100 1 jpg
near "$(share root/half*)" "$(share data/half*)" 4 "without an ending"
near "$(share plain/*.csv)" 100 1 "random content"
# Of each kind of file, zstd -1 and lz4 make the same within 10 %: sampled evenly, small files whole.
if command -v lz4 >/dev/null; then
    run 0 python3 "$REPRISE_SOURCE_DIR/tests/bench/bench_content.py" --bin "$REPRISE" --dir "$tmp"
else
    echo "not tested: kinds of content, lz4 is not installed"
fi
# The same bytes again, and after a reset.
sum=$(cat root/*.csv root/half* | sha256sum)
run 0 "$REPRISE" replay -q job.oplog --root root --pace afap
run 0 "$REPRISE" prepare -q job.oplog --root root --reset
equal "$(cat root/*.csv root/half* | sha256sum)" "$sum"
# On a file system that compresses it takes less, large files, too.
if mkdir packed && truncate -s 400M image && mkfs.btrfs -q -f image >/dev/null 2>&1 && mount -o loop,compress=zstd:1 image packed 2>/dev/null; then
    trap 'umount packed 2>/dev/null; rm -rf "$tmp"' EXIT
    for i in 1 2 3; do cat data/*.csv data/*.csv; done >big.csv
    run 0 "$REPRISE" capture -q --with content -o big.oplog -- sh -c 'cat big.csv >/dev/null'
    before=$(df --output=used -B1 packed | tail -n 1)
    run 0 "$REPRISE" prepare -q big.oplog --root packed/root --content recorded
    sync -f packed
    used=$(($(df --output=used -B1 packed | tail -n 1) - before))
    [[ $used -lt $(($(stat -c %s big.csv) * 3 / 4)) ]] || fail "$used bytes on the device for $(stat -c %s big.csv)"
    umount packed
else
    echo "not tested: btrfs that compresses cannot be mounted here"
fi
# Files longer than one write have their size, to the byte.
mkdir sizes
for size in 4194303 4194304 4194305 5000000 16777216; do head -c $size /dev/urandom >sizes/$size; done
run 0 "$REPRISE" capture -q --with content -o sizes.oplog -- sh -c 'cat sizes/* >/dev/null'
run 0 "$REPRISE" prepare -q sizes.oplog --root sized --map "$tmp/sizes=." --content recorded
for size in 4194303 4194304 4194305 5000000 16777216; do equal "$(stat -c %s sized/$size)" $size; done
run 0 "$REPRISE" prepare -q sizes.oplog --root sized --map "$tmp/sizes=." --content recorded
run "0 1" "$REPRISE" replay sizes.oplog --root sized --pace afap
contains "$out" "SAME"
# What is made of the log knows it.
run 0 "$REPRISE" anonymize -q job.oplog -o nobody.oplog
run 0 "$REPRISE" prepare -q nobody.oplog --root nobody --content recorded
finish
