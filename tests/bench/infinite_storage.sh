#!/usr/bin/env bash
# usage: tests/bench/infinite_storage.sh [--bin DIR] [--limit MB/s] [JOB...]
# How well `reprise analyze` says what a job would take with infinitely fast storage: each job is recorded cold on a device
# that is limited to MB/s (20), and runs five times with its data in memory, of which the least counts. On a machine that
# does nothing else. Jobs: resnet, bert, tar, zstd, sha1sum. Needs root, BPF, loop devices, control groups of version 1, and
# python3-torch for the first two. Prints one line a job.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=build/release limit=20 jobs=()
while [[ $# != 0 ]]; do
    case $1 in
        --bin) bin=$2; shift 2 ;;
        --limit) limit=$2; shift 2 ;;
        -*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
        *) jobs+=("$1"); shift ;;
    esac
done
[[ ${#jobs[@]} != 0 ]] || jobs=(resnet bert tar zstd sha1sum)
[[ $EUID == 0 ]] || { echo "infinite_storage: needs root" >&2; exit 77; }
throttle=/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device
[[ -w $throttle ]] || { echo "infinite_storage: no control groups of version 1" >&2; exit 77; }

repository=$PWD
work=$(mktemp -d)
device='' number=''
clean_up() {
    cd /
    if [[ -n $number ]]; then echo "$number 0" >"$throttle" || true; fi
    if mountpoint -q "$work/disk"; then umount "$work/disk" || umount -l "$work/disk"; fi
    if [[ -n $device ]]; then losetup -d "$device" || true; fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

truncate -s 1G "$work/image"
device=$(losetup --find --show --direct-io=on "$work/image" 2>/dev/null || losetup --find --show "$work/image")
number=$(cat "/sys/block/${device#/dev/}/dev")
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$device"
mkdir "$work/disk"
mount -o noatime "$device" "$work/disk"
/usr/bin/python3 examples/train/make_data.py "$work/disk/job" >/dev/null

command_of() {
    case $1 in
        resnet) echo "/usr/bin/python3 $repository/examples/train/train_resnet.py images --width 8" ;;
        bert) echo "/usr/bin/python3 $repository/examples/train/train_bert.py tokens.bin" ;;
        sha1sum) echo "find images -type f -exec sha1sum {} +" ;;
        tar) echo "tar -czf out.tar.gz images" ;;
        zstd) echo "zstd -q -f -T2 -15 -r images --output-dir-flat out.zst" ;;
        *) echo "infinite_storage: no job $1" >&2; return 2 ;;
    esac
}
# Unmounting is not enough: whoever has a mount namespace of his own keeps the file system, and its pages. Programs stay
# in memory.
cold() {
    rm -rf checkpoints out.*; mkdir out.zst
    sync -f .
    python3 - <<'END'
import os
for place, _, names in os.walk("."):
    for name in names:
        file = os.open(os.path.join(place, name), os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
END
    cd /
    umount "$work/disk"
    mount -o noatime "$device" "$work/disk"
    cd "$work/disk/job"
}
sectors() { awk '{print $3}' "/sys/block/${device#/dev/}/stat"; }
seconds() { # COMMAND: how long it takes
    local begin end
    begin=$(date +%s%N)
    bash -c "exec $1" >/dev/null 2>&1
    end=$(date +%s%N)
    echo "scale=3; ($end - $begin) / 1000000000" | bc
}
cd "$work/disk/job"
for job in "${jobs[@]}"; do
    command=$(command_of "$job")
    rm -rf checkpoints out.*; mkdir out.zst
    seconds "$command" >/dev/null # its program is in memory, and its data
    # The least: others on the machine only make it longer.
    real=$(for _ in 1 2 3 4 5; do seconds "$command"; done | sort -n | head -n 1)
    cold
    before=$(sectors)
    echo "$number $((limit * 1000000))" >"$throttle"
    "$repository/$bin/reprise" capture -q -o "$work/$job.oplog" -- bash -c "exec $command" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    echo "$number 0" >"$throttle"
    read_mb=$((($(sectors) - before) * 512 / 1000000))
    [[ $read_mb != 0 ]] || { echo "infinite_storage: $job read nothing from the device" >&2; exit 1; }
    "$repository/$bin/reprise" analyze "$work/$job.oplog" --json >"$work/$job.json"
    python3 - "$job" "$work/$job.json" "$real" "$read_mb" <<'END'
import json, sys
log, real = json.load(open(sys.argv[2]))["logs"][0], float(sys.argv[3])
bounds = log["bounds"]
fast = bounds["infinitely_fast_storage"]["elapsed_ns"] / 1e9
print(f"{sys.argv[1]}: recorded {bounds['recorded_ns'] / 1e9:.2f} s with {sys.argv[4]} MB from the device, modelled {bounds['modelled']['elapsed_ns'] / 1e9:.2f} s, "
      f"with infinitely fast storage {fast:.2f} s; in memory it takes {real:.2f} s: {100 * (fast / real - 1):+.1f} %")
END
done
