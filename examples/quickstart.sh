#!/usr/bin/env bash
# usage: examples/quickstart.sh [DIR]
# Builds reprise, creates the data set of a bundled recording (one epoch of a PyTorch ResNet-18 over 2 000 JPEGs, two
# loader workers), replays the recording there with cold files, and compares. Without DIR, root gets a loop device, and a
# second replay with the device limited to 10 MB/s, where the storage decides how long the job takes; others use
# build/quickstart/root. Either is removed at the end. With DIR the storage is yours: DIR must not exist, or be empty,
# or be from an earlier quickstart; its 125 MB of data stay.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
work=build/quickstart
given=${1:-}
root=${given:-$work/root}
log=examples/recorded/resnet.oplog
reprise=${REPRISE_QUICKSTART_BINARY:-build/release/reprise} # the tests have built it elsewhere
limit=10                                                    # MB/s
not_shown=
device='' number='' group='' limited_groups=()

scripts/ensure-packages.sh build

mkdir -p "$work"
if [[ -z ${REPRISE_QUICKSTART_BINARY:-} ]]; then
    echo "Building (a few minutes the first time) ..."
    if ! { cmake --preset release -DREPRISE_TESTS=OFF -DREPRISE_BENCH=OFF &&
        cmake --build --preset release -j "$(nproc)" --target reprise; } >"$work/build.log" 2>&1; then
        tail -n 40 "$work/build.log" >&2
        echo "quickstart: the build failed; the full output is in $work/build.log" >&2
        exit 1
    fi
fi

# Only what this script made, in its own build directory.
clean_up() {
    local file
    for file in ${limited_groups[@]+"${limited_groups[@]}"}; do echo "$number 0" >"$file" || true; done
    if [[ -n $group ]]; then rmdir "$group" || true; fi
    if mountpoint -q "$work/device"; then umount "$work/device" || umount -l "$work/device"; fi
    if [[ -n $device ]]; then losetup -d "$device" || true; fi
    rm -rf "$work/device" "$work/device.img" "$work/device.log"
    if [[ $root == "$work/root" && -z $given ]]; then rm -rf "$root"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# An ext4 on a loop device of its own, mounted at $work/device; else $not_shown says why not.
make_device() {
    if [[ $EUID != 0 ]]; then not_shown="a device of known speed needs root"; return 1; fi
    if ! command -v losetup >/dev/null || ! command -v mkfs.ext4 >/dev/null; then
        not_shown="it needs losetup and mkfs.ext4"
        return 1
    fi
    truncate -s 512M "$work/device.img"
    # Past the cache of the file below: else cold would be warm.
    if ! device=$(losetup --find --show --direct-io=on "$work/device.img" 2>"$work/device.log") &&
        ! device=$(losetup --find --show "$work/device.img" 2>"$work/device.log"); then
        device=
        not_shown="there is no loop device: $(tail -n 1 "$work/device.log")"
        return 1
    fi
    mkdir -p "$work/device"
    if ! { mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$device" &&
        mount -o noatime "$device" "$work/device"; } >"$work/device.log" 2>&1; then
        not_shown="the loop device cannot be mounted: $(tail -n 1 "$work/device.log")"
        return 1
    fi
    number=$(cat "/sys/block/${device#/dev/}/dev")
}

# Limits what this script and what it starts reads from the device, by control groups; else $not_shown says why not.
limit_device() {
    local bytes=$((limit * 1000000)) own base=/sys/fs/cgroup
    if [[ -e $base/blkio/blkio.throttle.read_bps_device ]]; then # version 1
        own=$(sed -n 's/^[0-9]*:[^:]*\bblkio\b[^:]*://p' /proc/self/cgroup)
        own=$base/blkio/${own#/}/blkio.throttle.read_bps_device
        if [[ -w $own ]] && echo "$number $bytes" >"$own"; then
            limited_groups=("$own")
            return 0
        fi
    elif grep -qsw io "$base/cgroup.controllers"; then # version 2
        grep -qw io "$base/cgroup.subtree_control" || echo +io >"$base/cgroup.subtree_control" || true
        if mkdir "$base/reprise-quickstart-$$"; then
            group=$base/reprise-quickstart-$$
            if echo "$number rbps=$bytes" >"$group/io.max"; then return 0; fi
        fi
    fi 2>/dev/null
    not_shown="control groups do not limit devices here"
    return 1
}

# Prints the command, then runs it.
run() {
    echo
    echo "\$ reprise $*"
    if [[ -n $group ]]; then
        (echo "$BASHPID" >"$group/cgroup.procs" && exec "$reprise" "$@")
    else
        "$reprise" "$@"
    fi
}

# replay NAME: with cold files. The storage is the question, not the CPUs of this machine: compute takes as long as
# recorded, and is slept. Exit code 1: this machine could not keep the recording's timing and says so; the result is
# complete.
replay() {
    rm -f "$work/$1.oplog" "$work/$1.json"
    run replay "$log" --root "$root" --cache cold --cpu-speed 1 --delay sleep -o "$work/$1.oplog" \
        --json="$work/$1.json" || [ $? = 1 ]
    if ! grep -q '"same_job": true' "$work/$1.json"; then
        echo "quickstart: the replay did not do what the recorded job did; the first lines of its result say why" >&2
        exit 1
    fi
}
seconds() { LC_ALL=C printf %.1f "$(sed -n "s/^  \"$2\": \([0-9.]*\).*/\1/p" "$work/$1.json")"; }

if [[ -z $given ]]; then
    if make_device; then root=$work/device/root; fi
else
    not_shown="the storage is yours"
fi
run prepare "$log" --root "$root" --map /data/job=.
replay run
run compare "$log" "$work/run.oplog"

kept_up() { grep -q '"kept_up": true' "$work/$1.json"; }

summary="The epoch took $(seconds run recorded_s) s when it was recorded and $(seconds run elapsed_s) s here, with cold files"
if [[ -z $not_shown ]] && limit_device; then
    run prepare -q "$log" --root "$root" --reset
    echo
    echo "The same with the device limited to $limit MB/s:"
    replay limited
    summary+=", and $(seconds limited elapsed_s) s with the device limited to $limit MB/s"
    if ! kept_up run || ! kept_up limited; then
        not_shown="the times of a machine that does not keep the recording's timing say little"
    elif awk "BEGIN { exit !($(seconds limited elapsed_s) >= 1.2 * $(seconds run elapsed_s)) }"; then
        summary+=": there the storage decides"
    else
        not_shown="the device without a limit is hardly faster"
    fi
fi
echo
echo "$summary."
if [[ -n $not_shown ]] && ! kept_up run; then
    echo "This machine was too busy or too slow for the recording's timing; the first lines of the result say why."
fi
if [[ -n $not_shown ]]; then
    echo "Not shown: how the job depends on its storage ($not_shown)."
fi
echo "The run's op log is $work/run.oplog, its result as JSON $work/run.json."
