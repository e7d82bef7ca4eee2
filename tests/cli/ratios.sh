#!/usr/bin/env bash
# examples/ratios.sh: wrong uses, and a small run where PyTorch is there.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"

script=$REPRISE_SOURCE_DIR/examples/ratios.sh
run 0 "$script" --help
contains "$out" "usage: examples/ratios.sh [--images 28000 | --tokens MIB]"
lacks "$out" "SPDX"
run 2 "$script" --fast
contains "$err" "unknown option --fast"
if [[ $EUID != 0 ]] || ! can_record; then
    skip "this user cannot record"
fi
/usr/bin/python3 -c 'import torch, PIL' 2>/dev/null || skip "python3-torch and python3-pil are not installed"
losetup -f >/dev/null 2>&1 || skip "there is no loop device"

# In a tree of its own, as it works in build/.
mkdir -p "$tmp/tree"
cp -r "$REPRISE_SOURCE_DIR"/{examples,markers,scripts} "$tmp/tree"
cd "$tmp/tree" || exit 1
rc=0
REPRISE_RATIOS_BINARY=$REPRISE timeout 300 examples/ratios.sh --images 300 --ratios 0.02,0.04 >"$out" 2>"$err" || rc=$?
if grep -qE "cgroup|Read-only" "$err"; then
    skip "no limits can be set here: $(head -n 1 "$err")"
fi
# 1: a machine that is too busy for the recording's timing says so.
[[ $rc == 0 || $rc == 1 ]] || { fail "exit code $rc"; tail -n 5 "$out" "$err"; }
contains "$out" "ratio 0.02: epoch 2: 10 steps in "
contains "$out" "beside real"
lacks "$out" "not run"
equal "$(wc -l <build/ratios/real.csv)" 3
equal "$(wc -l <build/ratios/sweep/cells.csv)" 3
# Where the machine was so busy that no run can be believed there is none.
if ! grep -q "no picture: no run can be believed" "$out"; then
    contains "$out" "The picture is build/ratios/sweep/sweep.svg"
    [[ -s build/ratios/sweep/sweep.png ]] || fail "no picture"
fi
! grep -q "$tmp/tree" /proc/mounts || { fail "a mount is left"; umount "$tmp/tree/build/ratios/device"; }
! losetup -a | grep -q "$tmp/tree" || fail "a loop device is left: $(losetup -a)"
[[ ! -e build/ratios/device.img ]] || fail "the image is left"
finish
