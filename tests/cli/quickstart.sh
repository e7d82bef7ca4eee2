#!/usr/bin/env bash
# The quickstart around a stand-in for reprise: what it shows, what it says that it could not show, what it leaves.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
chmod 755 "$tmp"
mkdir -p "$tmp/tree/examples/recorded" "$tmp/tree/scripts" "$tmp/tree/build/quickstart"
cp "$REPRISE_SOURCE_DIR/examples/quickstart.sh" "$tmp/tree/examples/"
cd "$tmp/tree" || exit 1
chmod 777 build/quickstart
: >examples/recorded/resnet.oplog
printf '#!/bin/sh\n' >scripts/ensure-packages.sh
chmod 755 scripts/ensure-packages.sh

# Writes a result as `replay` does; $SAME, $KEPT and $SLOW are its content, and the limits that it runs under are kept.
cat >"$tmp/reprise" <<'STUB'
#!/usr/bin/env bash
[[ $1 != prepare ]] || mkdir -p "$4"
[[ $1 == replay ]] || exit 0
elapsed=9.71
for word; do
    case $word in
        --json=*) json=${word#--json=} ;;
        *limited.oplog) elapsed=$SLOW ;;
    esac
    [[ $before != --root ]] || root=$word
    before=$word
done
device=$(stat -c %Hd:%Ld "$root" 2>/dev/null)  # others may limit theirs
printf '  "elapsed_s": %s,\n  "recorded_s": 9.496,\n  "same_job": %s,\n    "kept_up": %s,\n' "$elapsed" "$SAME" "$KEPT" >"$json"
echo "$elapsed $(grep "^$device " /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device 2>/dev/null)" >>"$LIMITS"
if [[ -n ${WAIT:-} ]]; then touch "$WAIT"; sleep 60; fi
STUB
chmod 755 "$tmp/reprise"
export REPRISE_QUICKSTART_BINARY=$tmp/reprise LIMITS=$tmp/limits SAME=true KEPT=true SLOW=15.24
: >"$LIMITS"
chmod 666 "$LIMITS"

nothing_left() {
    ! grep -q "$tmp/tree" /proc/mounts || { fail "a mount is left"; umount "$tmp/tree/build/quickstart/device"; }
    ! losetup -a 2>/dev/null | grep -q "$tmp/tree" || fail "a loop device is left: $(losetup -a)"
    [[ -z $(ls -d build/quickstart/device* build/quickstart/root 2>/dev/null) ]] || fail "left: $(ls build/quickstart)"
}

run 0 examples/quickstart.sh --help
contains "$out" "usage: examples/quickstart.sh [DIR]"
lacks "$out" "SPDX"

# A storage of one's own.
run 0 examples/quickstart.sh mine
contains "$out" "The epoch took 9.5 s when it was recorded and 9.7 s here, with cold files."
contains "$out" "Not shown: how the job depends on its storage (the storage is yours)."
[[ -d mine ]] || fail "the directory of the user was removed"
nothing_left

# Another job: a sentence, not silence.
SAME=false run 1 examples/quickstart.sh mine
contains "$err" "quickstart: the replay did not do what the recorded job did"

KEPT=false run 0 examples/quickstart.sh mine
contains "$out" "This machine was too busy or too slow for the recording's timing"

if [[ $EUID != 0 ]] || command -v setpriv >/dev/null; then
    as_user=()
    [[ $EUID != 0 ]] || as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    run 0 "${as_user[@]}" examples/quickstart.sh
    contains "$out" "Not shown: how the job depends on its storage (a device of known speed needs root)."
    nothing_left
fi
rm -f build/quickstart/*

if [[ $EUID != 0 ]] || ! command -v losetup >/dev/null || ! losetup -f >/dev/null 2>&1; then
    echo "SKIPPED: a loop device needs root"
    finish
fi
: >"$LIMITS"
run 0 examples/quickstart.sh
nothing_left
if grep -q "control groups do not limit" "$out"; then
    echo "SKIPPED: $(grep "control groups" "$out")"
    finish
fi
contains "$out" "The epoch took 9.5 s when it was recorded and 9.7 s here, with cold files, and 15.2 s with the device limited to 10 MB/s: there the storage decides."
lacks "$out" "Not shown"
if [[ -e /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device && $(sed -n 's/.*blkio[^:]*://p' /proc/self/cgroup) == / ]]; then
    grep -q "^9.71 *$" "$LIMITS" || fail "the first run was limited: $(cat "$LIMITS")"
    grep -q "^15.24 [0-9:]* 10000000$" "$LIMITS" || fail "the second run was not limited: $(cat "$LIMITS")"
    lacks /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device 10000000
fi
SLOW=9.9 run 0 examples/quickstart.sh
contains "$out" "Not shown: how the job depends on its storage (the device without a limit is hardly faster)."
KEPT=false run 0 examples/quickstart.sh
contains "$out" "Not shown: how the job depends on its storage (the times of a machine that does not keep"
lacks "$out" "the storage decides"

# Ended from outside while it runs.
WAIT=$tmp/waiting setsid examples/quickstart.sh >"$out" 2>"$err" &
script=$!
for _ in $(seq 100); do [[ -e $tmp/waiting ]] && break; sleep 0.1; done
[[ -e $tmp/waiting ]] || fail "the replay never began"
kill -TERM -- -$script
wait $script
equal $? 143
nothing_left
finish
