#!/usr/bin/env bash
# A machine whose administrator has switched io_uring off: threads make the requests, as many at a time, and the result says so.
# Changes a setting of the whole machine, so no other test runs meanwhile. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
switch=/proc/sys/kernel/io_uring_disabled
[[ -w $switch ]] || skip "no $switch, or not root"
command -v fio >/dev/null || skip "no fio"
can_record || skip "this machine cannot record"
before=$(<"$switch")
[[ $before == 0 ]] || skip "io_uring is switched off already"
trap 'echo "$before" >"$switch"; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
head -c 4M /dev/urandom >data
run 0 "$REPRISE" capture -q -o a.oplog -- fio --name=j --filename="$tmp/data" --rw=randread --bs=4k --iodepth=8 --direct=1 \
    --ioengine=io_uring --thread --number_ios=1000
run 0 "$REPRISE" prepare -q a.oplog --root root
[[ $failures == 0 ]] || finish # no direct reads here
for setting in 1 2; do # 1: for those without a capability only
    echo "$setting" >"$switch"
    run 0 "$REPRISE" replay -v a.oplog --root root --pace afap --json="run$setting.json"
    echo "$before" >"$switch"
    contains "$out" "job         SAME"
    if [[ $setting == 2 ]]; then
        contains "$out" "threads made its requests"
    else
        lacks "$out" "threads made its requests"
    fi
    python3 - "run$setting.json" <<'PY' || fail "setting $setting: not as many requests in flight"
import json, sys
verdict = json.load(open(sys.argv[1], encoding="utf-8"))["verdict"]
here, recorded = verdict["here"]["requests"], verdict["recorded"]["requests"]
assert here["requests"] == recorded["requests"] == 1000, (here["requests"], recorded["requests"])
assert here["in_flight"]["max"] > recorded["in_flight"]["max"] / 2, (here["in_flight"], recorded["in_flight"])
PY
done
finish
