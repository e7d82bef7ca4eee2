#!/usr/bin/env bash
# A real log without its names: smaller or hardly larger, the same ops, none of
# the names in it, the same tokens for the same key.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
log=$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog
run 0 "$REPRISE" anonymize "$log" -o "$tmp/a.oplog"
contains "$out" "$tmp/a.oplog: "
contains "$out" "names replaced in a log of"
run 0 "$REPRISE" dump --tables "$tmp/a.oplog"
for name in train_resnet class_0 image_0 dist-packages/torch pymp /data/job; do
    lacks "$out" "$name"
done
cp "$out" "$tmp/anonymous"
run 0 "$REPRISE" dump --tables "$log"
for name in train_resnet class_0 image_0 dist-packages/torch pymp /data/job; do
    contains "$out" "$name" # the check above can fail
done
# Every op is there, with its time, result and sizes.
numbers() { grep '^begin=' "$1" | sed 's/ text=.*//; s/ path=.*//' | md5sum; }
equal "$(numbers "$tmp/anonymous")" "$(numbers "$out")"
contains "$tmp/anonymous" '.jpg"'
contains "$tmp/anonymous" 'text="batch"'

run 2 "$REPRISE" anonymize "$log" -o "$tmp/a.oplog"
contains "$err" "exists"
echo "too short" >"$tmp/key"
run 3 "$REPRISE" anonymize "$log" -o "$tmp/b.oplog" --key-file "$tmp/key"
contains "$err" "shorter than 16 bytes"
echo "long enough for a secret" >"$tmp/key"
run 0 "$REPRISE" anonymize -q "$log" -o "$tmp/b.oplog" --key-file "$tmp/key"
run 0 "$REPRISE" anonymize -q "$log" -o "$tmp/c.oplog" --key-file "$tmp/key"
cmp "$tmp/b.oplog" "$tmp/c.oplog" || fail "the same key gave another log"
cmp -s "$tmp/a.oplog" "$tmp/b.oplog" && fail "a key changed nothing"
run 0 "$REPRISE" anonymize -q "$log" -o "$tmp/d.oplog" --keep /usr/lib
run 0 "$REPRISE" dump --tables --no-ops "$tmp/d.oplog"
contains "$out" "/usr/lib/python3/dist-packages/torch/"
lacks "$out" "/data/job"
run 2 "$REPRISE" anonymize "$log" -o "$tmp/e.oplog" --keep usr

# Nor in what counters tell, nor behind the links of /proc.
mkdir "$tmp/Secretproject"
printf '100 1700000000.000%s <0.000001>\n' \
    '100 openat(AT_FDCWD, "/proc/4711/cwd/secretfile", O_RDONLY) = 3' \
    '046 openat(AT_FDCWD, "/proc/4711/root/srv/secretfolder/secretfile", O_RDONLY) = 4' \
    '200 epoll_create1(0) = 5' \
    '300 read(3, ""..., 100) = 100' >"$tmp/Secretproject/topsecret.out"
run 0 "$REPRISE" import "$tmp/Secretproject/topsecret.out" -o "$tmp/secret.oplog"
run 0 "$REPRISE" anonymize -q "$tmp/secret.oplog" -o "$tmp/told.oplog"
everything() {
    "$REPRISE" dump --tables "$1" && "$REPRISE" info --json -v --files --tasks "$1" && "$REPRISE" info -v --files --tasks "$1"
}
for name in secret Secret; do
    run 0 everything "$tmp/secret.oplog"
    contains "$out" "$name"
    run 0 everything "$tmp/told.oplog"
    lacks "$out" "$name"
    lacks "$tmp/told.oplog" "$name"
done
contains "$out" "clock_set_back"
contains "$out" "/proc/4711/root/srv/n"
finish
