# Sourced by tests/cli/*.sh: checks that say what they wanted, a folder that
# goes away, skipping aloud. ctest sets REPRISE (the binary), REPRISE_SOURCE_DIR,
# REPRISE_BUILD_DIR and REPRISE_SANITIZE (empty in plain builds).
# A script with a line "# plain builds only" is left out of sanitizer builds.
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
set -uo pipefail

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

# run CODE COMMAND...: its output is in $out and $err; its exit code must be CODE.
run() {
    local want=$1 rc=0
    shift
    "$@" >"$out" 2>"$err" || rc=$?
    if [[ $rc != "$want" ]]; then
        fail "exit code $rc, expected $want: $*"
        sed 's/^/    out: /' "$out" | head -n 20
        sed 's/^/    err: /' "$err" | head -n 20
    fi
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
