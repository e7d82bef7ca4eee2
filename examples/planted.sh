#!/usr/bin/env bash
# usage: examples/planted.sh [RUNS]     [10]
# Plants regressions, and fails unless reprise finds each, and nothing where nothing was planted: a mount option (sync), a
# feature off (ext4 that does not flush the disk's cache, found by power cuts), reads throttled by FUSE, one byte in a million
# corrupted, writes that are one byte short, files that grow. Root. Everything it makes is gone afterwards.
# (tests/bench/regress_trials.sh throttles a device by 5 %.)
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
runs=${1:-10}
reprise=$(realpath "${REPRISE:-build/release/reprise}")
log=${LOG:-$PWD/examples/recorded/py_loader_4workers.oplog}
[[ $EUID == 0 ]] || { echo "planted: loop devices and mounts require root" >&2; exit 4; }

work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-planted-XXXXXX")
devices=() mounts=()
clean_up() {
    local one
    for one in ${mounts[@]+"${mounts[@]}"}; do umount "$one" || umount -l "$one" || true; done
    for one in ${devices[@]+"${devices[@]}"}; do losetup -d "$one" || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
read -ra flags <<<"$(pkg-config --cflags --libs fuse3)"
gcc -std=c11 -O2 -Wall -Wextra examples/planted/broken_fuse.c -o "$work/broken_fuse" "${flags[@]}"

# mounted NAME MKFS MOUNT_OPTIONS: a file system at $work/NAME
mounted() {
    local device
    truncate -s 1G "$work/$1.img"
    device=$(losetup --find --show "$work/$1.img")
    devices+=("$device")
    $2 "$device" >/dev/null 2>&1
    mkdir "$work/$1"
    mount -o "$3" "$device" "$work/$1"
    mounts+=("$work/$1")
}
# broken NAME FAULT...: a FUSE passthrough at $work/NAME
broken() {
    local name=$1
    shift
    mkdir "$work/$name" "$work/$name.below"
    "$work/broken_fuse" "$work/$name.below" "$work/$name" "$@" 2>"$work/$name.log" &
    mounts=("$work/$name" ${mounts[@]+"${mounts[@]}"})
    for _ in $(seq 100); do mountpoint -q "$work/$name" && return; sleep 0.05; done
    echo "planted: broken_fuse does not come up" >&2
    exit 4
}
printf '[suite]\ncuts = 40\n[job loader]\nlog = %s\nreplay = %s\n' "$log" "${REPLAY:---pace afap --cache as-is}" >"$work/suite.ini"

failures=0
# found NAME TEXT COMMAND...: it must fail, and say so
found() {
    local name=$1 text=$2 rc=0
    shift 2
    "$@" >"$work/out" 2>&1 || rc=$?
    if [[ $rc == 1 ]] && grep -q -- "$text" "$work/out"; then
        printf '%-44s found: %s\n' "$name" "$(grep -m 1 -- "$text" "$work/out" | cut -c 1-100)"
    else
        printf '%-44s NOT FOUND (exit code %s)\n' "$name" "$rc"
        sed 's/^/    /' "$work/out" | head -n 30
        failures=$((failures + 1))
    fi
}
# clean NAME COMMAND...: it must pass
clean() {
    local name=$1 rc=0
    shift
    "$@" >"$work/out" 2>&1 || rc=$?
    if [[ $rc == 0 ]]; then
        printf '%-44s passes, as it should\n' "$name"
    else
        printf '%-44s FAILED, although nothing is wrong (exit code %s)\n' "$name" "$rc"
        sed 's/^/    /' "$work/out" | head -n 30
        failures=$((failures + 1))
    fi
}
# Times may vary where content is what is looked at.
wide=(--threshold elapsed=1000% --threshold throughput=1000% --threshold p50=1000% --threshold p99=1000%)
regress() { "$reprise" regress "$work/suite.ini" -q -f -o "$work/runs" "$@"; }

mounted plain "mkfs.ext4 -q -F" defaults
mounted again "mkfs.ext4 -q -F" defaults
mounted sync "mkfs.ext4 -q -F" sync
clean "nothing planted: ext4 and ext4" regress --target a="$work/plain" --target b="$work/again" --runs "$runs"
found "a mount option: sync" "^WORSE: elapsed" regress --target a="$work/plain" --target b="$work/sync" --runs "$runs"

broken none none
broken slow slow 3000
found "reads 3 ms slower (FUSE)" "^WORSE: .*read" regress --target a="$work/none" --target b="$work/slow" --runs "$runs"

clean "nothing planted: FUSE, content checked" regress --target a="$work/none" --runs 1 --verify "${wide[@]}"
broken corrupt corrupt 1000000
found "one byte in a million corrupted (FUSE)" "as written by op" regress --target a="$work/corrupt" --runs 1 --verify "${wide[@]}"
broken short short
found "each 100th write a byte short (FUSE)" "    run 1: " regress --target a="$work/short" --runs 1 "${wide[@]}"
broken append append
found "renamed files get a byte more (FUSE)" "bytes, expected" regress --target a="$work/append" --runs 1 "${wide[@]}"

# Power cuts, of a file system that keeps its promises and of one that does not.
printf '[target a]\nmake = mkfs.ext4 -q -F\n' >>"$work/suite.ini"
clean "power cuts: ext4" regress --target a="$work/plain" --runs 1 --verify "${wide[@]}"
printf 'mount-options = nobarrier\n' >>"$work/suite.ini"
found "a feature off: ext4 without flushes, cut" "without the disk's cache" regress --target a="$work/plain" --runs 1 --verify "${wide[@]}"
[[ $failures == 0 ]] || { echo "planted: $failures not as they should be" >&2; exit 1; }
