#!/usr/bin/env bash
# Symbolic links to directories that were there before the job. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
tmp=$(pwd -P)
here=${tmp#/}

# is_same NAME COMMAND: what COMMAND does in the folder NAME, recorded, is done again in NAME.root
is_same() {
    run 0 "$REPRISE" capture -o "$1.oplog" -- sh -c "cd $1; $2"
    mkdir "$1.root"
    run 0 "$REPRISE" prepare "$1.oplog" --root "$1.root"
    run 0 "$REPRISE" replay "$1.oplog" --root "$1.root"
    head -n 1 "$out" | grep -q "SAME: .* 0 differ" || fail "$1: $(head -n 1 "$out")"
}

# Written by one name, read by the other: one directory, not two.
mkdir -p two/t
ln -s t two/link
is_same two 'echo text >link/t.tmp; mv t/t.tmp t/final; cat link/final; mkdir -p link/sub; ls link'
[[ -d two.root/$here/two/t && -L two.root/$here/two/link ]] || fail "the link became a directory"
equal "$(stat -c %s "two.root/$here/two/t/final")" 5

# The paths that the job was given are known by these names, too.
for word in "$tmp/two/link" "$tmp/two/link/final" "$tmp/two/lin[k]" "$tmp/two/link/*nal"; do
    run 0 "$REPRISE" info two.oplog --files --only "$word"
    contains "$out" /two/
done
run 2 "$REPRISE" info two.oplog --files --only "$tmp/two/link/nal"
contains "$err" "--only '$tmp/two/link/nal' matches no file"
mkdir mapped.root
run 0 "$REPRISE" prepare two.oplog --root mapped.root --map "$tmp/two/link=."
run 0 "$REPRISE" replay two.oplog --root mapped.root --map "$tmp/two/link=."
equal "$(stat -c %s mapped.root/final)" 5
run 2 "$REPRISE" prepare two.oplog --root mapped.root --map "$tmp/two/link=." --map "$tmp/two/t=a"
contains "$err" "another --map places $tmp/two/t elsewhere, to which a link leads"
run 0 "$REPRISE" capture -o role.oplog --role "$tmp/two/link=checkpoint" -- cat two/link/final
run 0 "$REPRISE" info role.oplog --files --only checkpoint
contains "$out" two/t/final

# A link that the job switches; the first directory is found by the file that was read there.
mkdir -p switch/v1 switch/v2
echo one >switch/v1/f
echo three >switch/v2/f
ln -s v1 switch/now
is_same switch 'cat now/f; ln -sfn v2 now; cat now/f'
equal "$(readlink "switch.root/$here/switch/now")" v2
equal "$(stat -c %s "switch.root/$here/switch/v1/f" "switch.root/$here/switch/v2/f" | tr '\n' ' ')" "4 6 "

# Files that lost their name, opened again by their descriptors: not what has the name now.
mkdir nameless
is_same nameless 'exec 7<>f; echo old >&7; rm f; echo another >f; cat /dev/fd/7 >got; echo more >>/proc/self/fd/7; exec 7>&-'
equal "$(stat -c %s nameless/f nameless/got "nameless.root/$here/nameless/f" "nameless.root/$here/nameless/got" | tr '\n' ' ')" "8 4 8 4 "
mkdir replaced
is_same replaced 'for i in 1 2 3; do echo first >f; exec 7<>f; echo second$i >t; mv t f; echo text >>/dev/fd/7; exec 7>&-; done'
equal "$(stat -c %s "replaced.root/$here/replaced/f")" 8
for name in nameless replaced; do
    run 0 "$REPRISE" prepare -q --reset "$name.oplog" --root "$name.root"
    run 0 "$REPRISE" replay "$name.oplog" --root "$name.root" --verify content
done

# Names of the link itself.
mkdir -p itself/t
echo text >itself/t/f
ln -s t itself/link
is_same itself 'ls -l; readlink link; cat link/f; mkdir link; mv link moved; cat moved/f; rm moved; mkdir link; echo a >link/f'
equal "$(stat -c %s "itself.root/$here/itself/link/f" 2>&1)" 2

# What is only renamed is what lies there in the end.
mkdir -p passing/ck passing/sub
head -c 10000 /dev/zero >passing/big
is_same passing 'mv ck ck.old; mv big big.old'
[[ -d passing.root/$here/passing/ck.old ]] || fail "a renamed directory is none"
equal "$(stat -c %s "passing.root/$here/passing/big.old")" 10000

# A directory that the job mounts at another place, too.
mkdir -p bind/a bind/b
echo 1 >bind/a/f
if unshare -m mount --bind bind/a bind/b 2>/dev/null; then
    is_same bind 'unshare -m sh -c "mkdir c; mount --bind a b; mount --bind a c; echo 22 >b/g; cat b/f; mv a/g a/h; cat c/h; umount b; echo 3 >b/own"'
    equal "$(cd "bind.root/$here/bind" && find . -type f -printf '%P %s\n' | sort | tr '\n' ' ')" "a/f 2 a/h 3 b/own 2 "
    [[ -d bind.root/$here/bind/b ]] || fail "where it was mounted is no directory"
else
    echo "not tried: bind mounts (they cannot be made here)"
fi
finish
