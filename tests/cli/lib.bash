# Sourced by tests/cli/*.sh: checks that say what they wanted, a folder that
# goes away, skipping aloud. ctest sets REPRISE (the binary), REPRISE_SOURCE_DIR,
# REPRISE_BUILD_DIR and REPRISE_SANITIZE (empty in plain builds).
# A script with a line "# plain builds only" is left out of sanitizer builds.
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
set -uo pipefail
# What a recording inherits is the same wherever the tests are started: ctest leaves its log open.
exec </dev/null
for open in /proc/self/fd/*; do
    open=${open##*/}
    ((open <= 2 || open == 255)) || eval "exec $open>&-" # 255: this script
done

: "${REPRISE:?run me by ctest, or set REPRISE to the binary}"
: "${REPRISE_SOURCE_DIR:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/reprise-test-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
out=$tmp/.out err=$tmp/.err
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run CODE COMMAND...: its output is in $out and $err; its exit code must be CODE, or one of those in it: "0 1" of a
# replay that takes time, as a crowded machine cannot keep up.
run() {
    local want=$1 rc=0
    shift
    "$@" >"$out" 2>"$err" || rc=$?
    if [[ " $want " != *" $rc "* ]]; then
        fail "exit code $rc, expected $want: $*"
        sed 's/^/    out: /' "$out" | head -n 20
        sed 's/^/    err: /' "$err" | head -n 20
    fi
}

# can_record: whether this user can record here; $out says how. A yes holds for an hour for all tests of a build, as asking
# takes as long as a recording.
can_record() {
    local kept=${REPRISE_BUILD_DIR:-$(dirname "$REPRISE")}/Testing/can-record-$EUID${REPRISE_CAPTURE_RAW_TRACEPOINTS:+-raw}
    if [[ $kept -nt $REPRISE && -n $(find "$kept" -mmin -60) ]]; then
        cp "$kept" "$out"
        return
    fi
    "$REPRISE" capture --check >"$out" 2>&1 || return
    { mkdir -p "${kept%/*}" && cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"; } 2>/dev/null || true
}

# contains FILE TEXT: a fixed string, on one line.
contains() { grep -qF -- "$2" "$1" || { fail "no '$2' in:"; head -n 30 "$1"; }; }
lacks() { ! grep -qF -- "$2" "$1" || { fail "unexpected '$2' in:"; head -n 30 "$1"; }; }
empty() { [[ ! -s $1 ]] || { fail "expected nothing, found:"; head -n 30 "$1"; }; }
equal() { [[ $1 == "$2" ]] || fail "'$1', expected '$2'"; }

skip() {
    echo "SKIPPED: $*"
    exit 77
}

# storage_model FILE: an ext4 of 1 GB/s
storage_model() {
    cat >"$1" <<'END'
{"storage_model": 1, "host": "h", "directory": "/", "file_system": "ext4", "device": "/dev/x", "measured_unix_s": 1,
 "open_ns": 3000, "open_cold_ns": 20000, "stat_ns": 1700, "close_ns": 500, "make_ns": 40000, "remove_ns": 7000,
 "call_ns": 160, "fsync_ns": 100000,
 "read": [{"bytes": 4096, "ns": 65000}, {"bytes": 4194304, "ns": 4200000}], "write": [{"bytes": 4096, "ns": 2700}],
 "read_bytes_per_s": 1e9, "reads_per_s": 0, "read_burst_ns": 0, "parallelism": 3, "write_bytes_per_s": 1e9,
 "cached_bytes_per_s": 3e10, "read_ahead_bytes": 131072, "request_bytes": 1048576, "dirty_background_bytes": 0,
 "dirty_bytes": 0, "dirty_expire_ns": 30000000000, "cold": true}
END
}

# passes_log FILE...: of /data/FILE, 4 MiB each, in that order, as fio would have logged it; one may come again
passes_log() {
    local at=0 file offset
    echo "fio version 3 iolog"
    for file in "$@"; do
        printf '%s /data/%s add\n%s /data/%s open\n' "$at" "$file" "$at" "$file"
        for ((offset = 0; offset < 4194304; offset += 262144)); do echo "$at /data/$file read $offset 262144"; done
        echo "$at /data/$file close"
        at=$((at + 10))
    done
}

# passes_strace FILE...: the same as strace -f -ttt -T would, 1 ms apart: it says how long calls took
passes_strace() {
    local at=0 file offset
    line() { printf '1 %d.%06d %s\n' $((1700000000 + at / 1000)) $((at % 1000 * 1000)) "$1"; at=$((at + 1)); }
    line 'execve("/bin/job", ["job"], 0x7f) = 0 <0.000010>'
    line 'mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000 <0.000010>'
    for file in "$@"; do
        line "openat(AT_FDCWD, \"/data/$file\", O_RDONLY) = 3 <0.000010>"
        for ((offset = 0; offset < 4194304; offset += 262144)); do
            line "pread64(3, \"x\"..., 262144, $offset) = 262144 <0.000900>"
        done
        line 'close(3) = 0 <0.000010>'
    done
    line 'exit_group(0) = ?'
    line '+++ exited with 0 +++'
}

# as_strace: an iolog of fio (version 3) as strace -f -ttt -T would have logged that job: it says how long calls took
as_strace() {
    python3 -c '
import sys
descriptors, written, lines = {}, set(), [line.split() for line in sys.stdin if line.strip() and not line.startswith("fio")]
for words in lines:
    if words[2] == "write":
        written.add(words[1])
last = 0
for time, name, what, *range_ in lines:
    last = int(time)
    at = "1 %d.%06d" % (1700000000 + last // 1000000, last % 1000000)
    if what == "open":
        descriptors[name] = 3 + len(descriptors)
        how = "O_RDWR" if name in written else "O_RDONLY"
        print(at, f"openat(AT_FDCWD, \"{name}\", {how}) = {descriptors[name]} <0.000001>")
    elif what == "close":
        print(at, f"close({descriptors[name]}) = 0 <0.000001>")
    elif what in ("read", "write"):
        offset, size = range_
        print(at, f"p{what}64({descriptors[name]}, \"x\"..., {size}, {offset}) = {size} <0.000005>")
at = "1 %d.%06d" % (1700000000 + last // 1000000, last % 1000000 + 10)
print(at, "exit_group(0) = ?")
print(at, "+++ exited with 0 +++")'
}

# trace NAME: prints the path of a recorded trace, or fails; use
#   path=$(trace strace/x.strace) || skip "no trace strace/x.strace; set REPRISE_TRACES"
trace() {
    local path=${REPRISE_TRACES:-$REPRISE_SOURCE_DIR/../shared/traces}/$1
    [[ -e $path ]] && echo "$path"
}

# Last line of every script.
finish() {
    [[ $failures == 0 ]] || { echo "$failures checks failed"; exit 1; }
    exit 0
}
