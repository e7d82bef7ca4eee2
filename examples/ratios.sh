#!/usr/bin/env bash
# usage: examples/ratios.sh [--images 28000 | --tokens MIB] [--ratios 0.5,1,2,4] [--read 40] [--runs 1] [--keep]
# How does a training job behave when its data are four times the memory? Trains a PyTorch ResNet-18 for three epochs
# over JPEGs (1.7 GB; the accelerator is a sleep of 20 ms a step), records that without any limit, and replays the
# recording with memory for the data divided by 0.5, 1, 2 and 4, on a device limited to 40 MB/s. The job itself runs
# under the same limits, for comparison. Ends with both as a table and a picture, in build/ratios. As root; with these
# sizes 20 minutes and 5 GB of disk, which are given back (--keep: the device stays mounted at build/ratios/device).
# --tokens: in place of that a BERT, whose loaders map a file of so many MiB; at least 1000, as the job itself holds some 250.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

images=28000 tokens=0 ratios=0.5,1,2,4 read=40 runs=1 keep=
while [[ $# != 0 ]]; do
    case $1 in
        --images) images=$2; shift ;;
        --tokens) tokens=$2 images=0; shift ;; # MiB
        --ratios) ratios=$2; shift ;;
        --read) read=$2; shift ;; # MB/s
        --runs) runs=$2; shift ;;
        --keep) keep=1 ;;
        -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) echo "ratios: unknown option $1; --help lists them" >&2; exit 2 ;;
    esac
    shift
done
reprise=${REPRISE_RATIOS_BINARY:-build/release/reprise} # the tests have built it elsewhere
work=$PWD/build/ratios
distinct=2000 # images that are made; the others are copies
python=/usr/bin/python3
fail() { echo "ratios: $*" >&2; exit 4; }

[[ $EUID == 0 ]] || fail "recording, a device of its own and limits need root"
reprise=$(readlink -f "$reprise")
[[ -x $reprise ]] || fail "there is no $reprise; examples/quickstart.sh builds it"
scripts/ensure-packages.sh train
"$reprise" capture --check >/dev/null || fail "this machine cannot record; see: $reprise capture --check"
mkdir -p "$work"
exec 9>"$work/lock"
flock -n 9 || fail "another one runs in $work"

device='' groups=()
clean_up() {
    local group
    for group in ${groups[@]+"${groups[@]}"}; do rmdir "$group" 2>/dev/null || true; done
    [[ -z $keep ]] || { echo "The device stays: umount $work/device; losetup -d $device; rm $work/device.img"; return; }
    if mountpoint -q "$work/device"; then umount "$work/device" || umount -l "$work/device"; fi
    if [[ -n $device ]]; then losetup -d "$device" || true; fi
    rm -rf "$work/device" "$work/device.img"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The data twice (the job's, and the replay's), and checkpoints.
need=$((images * 140 + tokens * 2100 + 300000)) # KiB
[[ $(df --output=avail "$work" | tail -n 1) -gt $need ]] || fail "$work has not the $((need >> 20)) GiB that these sizes need"
truncate -s ${need}K "$work/device.img"
device=$(losetup --find --show --direct-io=on "$work/device.img" || losetup --find --show "$work/device.img")
number=$(cat "/sys/block/${device#/dev/}/dev")
mkdir -p "$work/device"
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$device"
mount -o noatime "$device" "$work/device"

data=$work/device/job
if [[ $tokens == 0 ]]; then
    echo "Making $images images ..."
    $python examples/train/make_data.py "$data" --images $((images < distinct ? images : distinct)) --tokens 0
    for ((copy = 1; copy * distinct < images; ++copy)); do
        for folder in "$data"/images/class_??; do cp -r "$folder" "$folder.$copy"; done
    done
    recorder=() what=images program=train_resnet.py options=(--epochs 3 --model-sleep 0.02)
else
    echo "Making a file of $tokens MiB of tokens ..."
    $python examples/train/make_data.py "$data" --images 0 --tokens $((tokens << 19))
    # Pages that one fault maps for several samples are not faulted again for the others, but under a limit they will be.
    recorder=(--with mapped-uses) what=tokens.bin program=train_bert.py options=(--epochs 3 --steps 0 --length 12288 --batch 64 --model-sleep 0.02)
fi
sync

# Empties the page cache of the device; names are in memory again, as they are in a replay.
forget() {
    umount "$work/device"
    mount -o noatime "$device" "$work/device"
    find "$data/$what" -size +1k -type f | wc -l
}

# Where a group with that controller goes: this script's own (version 1), or the root (version 2).
group_of() {
    local controller=$1 own
    if [[ -d /sys/fs/cgroup/$controller ]]; then
        own=$(sed -n "s/^[0-9]*:[^:]*\b$controller\b[^:]*://p" /proc/self/cgroup)
        if [[ -d /sys/fs/cgroup/$controller$own ]]; then echo "/sys/fs/cgroup/$controller${own%/}"; else echo "/sys/fs/cgroup/$controller"; fi
    else
        grep -qw "${controller/blkio/io}" /sys/fs/cgroup/cgroup.subtree_control ||
            echo "+${controller/blkio/io}" >/sys/fs/cgroup/cgroup.subtree_control
        echo /sys/fs/cgroup
    fi
}

job=("$python" "$PWD/examples/train/$program" "$data/$what" "${options[@]}" --out "$work/device/job/out")
export PYTHONPATH=$PWD/markers/python

echo
echo "\$ reprise capture ${recorder[*]} -o job.oplog -- python3 $program $what ${options[*]}"
forget >/dev/null
"$reprise" capture -f "${recorder[@]}" -o "$work/job.oplog" -- "${job[@]}"

bytes=$(find "$data/$what" -type f -printf '%s\n' | awk '{ sum += int(($1 + 4095) / 4096) * 4096 } END { print sum }')

# real RATIO: the job itself under the limits that its replay gets.
real() {
    local limit memory io begin end read_bytes
    limit=$(awk "BEGIN { print int($bytes / $1 / 4096) * 4096 }")
    memory=$(group_of memory)/ratios-$$ io=$(group_of blkio)/ratios-$$
    groups=("$memory" "$io")
    mkdir -p "$memory" "$io"
    if [[ -e $memory/memory.limit_in_bytes ]]; then
        echo "$limit" >"$memory/memory.limit_in_bytes"
        echo "$number ${read}000000" >"$io/blkio.throttle.read_bps_device"
    else
        echo "$limit" >"$memory/memory.max"
        echo "$number rbps=${read}000000" >"$io/io.max"
    fi
    forget >/dev/null
    begin=$(date +%s.%N)
    if ! (echo "$BASHPID" >"$memory/cgroup.procs"; echo "$BASHPID" >"$io/cgroup.procs"; exec "${job[@]}") >"$work/real.$1.txt" 2>&1; then
        echo "ratio $1: the job itself does not run there: $(tail -n 1 "$work/real.$1.txt")"
        return
    fi
    end=$(date +%s.%N)
    read_bytes=$(sed -n "s/^$number Read //p; s/^$number rbytes=\([0-9]*\).*/\1/p" "$io"/blkio.throttle.io_service_bytes "$io"/io.stat 2>/dev/null || true)
    rmdir "$memory" "$io"
    groups=()
    echo "$1,$(awk "BEGIN { print $end - $begin }"),$read_bytes" >>"$work/real.csv"
    sed "s/^/  ratio $1: /; s/,.*//" "$work/real.$1.txt"
}
echo
echo "The job itself, three epochs with memory for its data ($((bytes >> 20)) MiB) divided by $ratios:"
echo "ratio,elapsed_s,device_read_bytes" >"$work/real.csv"
for ((turn = 0; turn < runs; ++turn)); do
    for ratio in ${ratios//,/ }; do real "$ratio"; done
done

echo
echo "\$ reprise sweep job.oplog --root DIR --ratio $ratios --io-limit read=${read}M --beside real=real.csv"
rc=0
(cd "$work" && "$reprise" sweep job.oplog --root device/replay --ratio "$ratios" --io-limit "read=${read}000000" \
    --runs "$runs" --beside real=real.csv -o sweep -f) || rc=$?
echo
[[ ! -e $work/sweep/sweep.svg ]] || echo "The picture is build/ratios/sweep/sweep.svg (and .png)."
echo "The recording is build/ratios/job.oplog."
exit $rc
