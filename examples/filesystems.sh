#!/usr/bin/env bash
# usage: examples/filesystems.sh [SUITE [REGRESS OPTIONS...]]
# ext4, XFS and btrfs, and bcachefs and ZFS where they are there, each on a loop device of its own: replays a suite on all of
# them, and compares them with ext4. Without SUITE: the recorded loader of examples/recorded, 5 runs, content and power
# cuts checked. Root. Everything that it makes is gone afterwards but the suite's folder of runs.
# Exit code: that of reprise regress; 1 is likely, as some file system is slower than ext4.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
reprise=${REPRISE:-build/release/reprise}
size=${SIZE:-2G}
[[ $EUID == 0 ]] || { echo "filesystems: loop devices and mounts require root" >&2; exit 4; }
[[ -x $reprise ]] || { echo "filesystems: no $reprise; build it, or set REPRISE" >&2; exit 4; }

work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-fs-XXXXXX")
devices=() mounts=() pools=()
clean_up() {
    local one
    for one in ${mounts[@]+"${mounts[@]}"}; do umount "$one" || umount -l "$one" || true; done
    for one in ${pools[@]+"${pools[@]}"}; do zpool destroy "$one" || true; done
    for one in ${devices[@]+"${devices[@]}"}; do losetup -d "$one" || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# add NAME MKFS...: a file system of that name, where its tools and the kernel's part are there
add() {
    local name=$1 device
    shift
    command -v "$1" >/dev/null || { echo "filesystems: no $1: $name is left out"; return; }
    truncate -s "$size" "$work/$name.img"
    device=$(losetup --find --show --direct-io=on "$work/$name.img" 2>/dev/null || losetup --find --show "$work/$name.img")
    devices+=("$device")
    mkdir "$work/$name"
    if ! "$@" "$device" >"$work/$name.log" 2>&1 || ! mount "$device" "$work/$name" 2>>"$work/$name.log"; then
        echo "filesystems: $name is left out: $(tail -n 1 "$work/$name.log")"
        return
    fi
    mounts+=("$work/$name")
    targets+=(--target "$name=$work/$name")
    printf '[target %s]\nremount = umount %s && mount %s %s\nmake = %s\nsize = %s\n' \
        "$name" "$work/$name" "$device" "$work/$name" "$*" "$size" >>"$work/targets.ini"
}
targets=()
add ext4 mkfs.ext4 -q -F
add xfs mkfs.xfs -q -f
add btrfs mkfs.btrfs -q -f
add bcachefs bcachefs format --force
if command -v zpool >/dev/null && modprobe zfs 2>/dev/null; then
    truncate -s "$size" "$work/zfs.img"
    pool=reprise$$
    zpool create -m "$work/zfs" "$pool" "$work/zfs.img"
    pools+=("$pool")
    targets+=(--target "zfs=$work/zfs")
    printf '[target zfs]\nremount = zfs unmount %s && zfs mount %s\n' "$pool" "$pool" >>"$work/targets.ini"
else
    echo "filesystems: no ZFS: it is left out"
fi

suite=${1:-}
if [[ -z $suite ]]; then
    printf '[job loader]\nlog = %s\nreplay = --not /usr --delay sleep\n' "$PWD/examples/recorded/py_loader_4workers.oplog" >"$work/suite.ini"
    set -- suite --runs 5 --verify
else
    cp "$suite" "$work/suite.ini"
    # Logs are as from the suite's folder.
    sed -i "s#^log *= *\([^/]\)#log = $(cd "$(dirname "$suite")" && pwd)/\1#" "$work/suite.ini"
fi
shift
cat "$work/targets.ini" >>"$work/suite.ini"
rc=0
"$reprise" regress "$work/suite.ini" "${targets[@]}" -o "$work/runs" "$@" || rc=$?
exit "$rc"
