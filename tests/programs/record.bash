# Sourced by tests/programs/*.sh: sets a program of tests/programs up, records it, checks what was recorded.
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck source=../cli/lib.bash
source "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.bash"
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
programs=$REPRISE_BUILD_DIR/programs

# setup NAME: the files the program finds there, in $tmp/root.
setup() {
    mkdir "$tmp/root"
    case $1 in
        attached) [[ ${attaches:-} ]] || skip "a program to attach to" ;;
        shared_memory) mount_tmpfs size=16m ;;
        huge_pages) mount_tmpfs size=32m,huge=always ;;
        clones) mount_reflinks ;;
    esac
    "$programs/c/$1" "$tmp/root" --setup 2>"$err" && return
    grep -q '^SKIPPED: ' "$err" && skip "$(sed -n 's/^SKIPPED: //p' "$err")"
    cat "$err"
    echo "FAILED: the set-up of $1"
    exit 1
}

# A file system whose files can share blocks, in place of all of $tmp: the replay shares them, too.
mount_reflinks() {
    image=$tmp.img
    trap 'umount "$tmp" 2>/dev/null; rm -rf "$tmp" "$image"' EXIT
    truncate -s 512M "$image"
    mkfs.xfs -q -f "$image" >"$err" 2>&1 || mkfs.btrfs -q -f "$image" >"$err" 2>&1 ||
        skip "neither mkfs.xfs nor mkfs.btrfs makes a file system: $(tail -n 1 "$err")"
    mount -o loop "$image" "$tmp" 2>"$err" || skip "no file system of a loop device can be mounted: $(cat "$err")"
    mkdir "$tmp/root"
}

mount_tmpfs() {
    trap 'umount "$tmp/root"; rm -rf "$tmp"' EXIT
    mount -t tmpfs -o "$1" tmpfs "$tmp/root" 2>"$err" && return
    trap 'rm -rf "$tmp"' EXIT
    skip "no tmpfs ($1) can be mounted: $(cat "$err")"
}

# record_strace OUT.oplog COMMAND...
record_strace() {
    local log=$1
    shift
    run 0 strace -f -ttt -T -yy -v -s 4096 -o "$tmp/job.strace" "$@"
    run 0 "$REPRISE" import -q --from strace "$tmp/job.strace" -o "$log"
}

# check EXPECT LOG [--no-touch]
check() {
    "$programs/check_program" "$@" >"$out" 2>&1 && return
    fail "the log is not what the program did"
    head -c 5000 "$out"
}

# same A B [--no-touch]: B records a replay, in $tmp/copy/job, of A, whose files were in $tmp/root.
same() {
    "$programs/same_ops" "$1" "$2" --map-root "$tmp/root=$tmp/copy/job" "${@:3}" >"$out" 2>&1 && return
    fail "the replay did not do the same"
    head -c 5000 "$out"
}

# Skips where strace cannot show what the program does.
no_strace_for() {
    case $1 in
        pass_fd | messages) skip "strace does not show which open instance a message carries" ;;
        markers) skip "the importer of strace knows no marks" ;;
        chroot) skip "strace names files as the job inside does" ;;
        namespace) skip "the importer of strace follows no mounts" ;;
        pivot) skip "the importer of strace follows no pivot_root and no setns" ;;
        parts) skip "only its raw records are looked at" ;;
        pid_namespace) skip "strace shows what wait4 returns there, not which child that is" ;;
        uring* | aio*) skip "strace shows no asynchronous requests" ;;
    esac
}

# Skips where this machine cannot record, with its reason.
need_capture() {
    can_record && return
    skip "$(head -n 1 "$out")"
}

# record OUT.oplog COMMAND...: until all that the command started has ended; the raw records stay in OUT.raw.
record() {
    local log=$1
    shift
    run 0 "$REPRISE" capture -q --raw --wait-all -o "$log" -- "$@"
}

# check_records EXPECT RAW
check_records() {
    "$programs/check_raw" "$@" >"$out" 2>&1 && return
    fail "the raw records are not as they must be"
    head -c 5000 "$out"
}
