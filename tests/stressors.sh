#!/usr/bin/env bash
# usage: tests/stressors.sh [--bin DIR] [--dir DIR] [STRESSOR...]
# Records stress-ng's stressors of files and memory, which call with every argument there is, also bad ones, replays each
# beside itself, and says which was not the same job. Not part of tests/run.sh: ten minutes for all of them. Exit code 1
# where one differs that is not known to. Example: tests/stressors.sh --bin build/release rename xattr
# SPDX-License-Identifier: MIT
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

bin=build/release dir=${TMPDIR:-/tmp} stressors=()
while [[ $# != 0 ]]; do
    case $1 in
        --bin) bin=$2; shift 2 ;;
        --dir) dir=$2; shift 2 ;;
        -*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
        *) stressors+=("$1"); shift ;;
    esac
done
[[ $EUID == 0 ]] || { echo "stressors: skipped: recording needs root" >&2; exit 77; }
command -v stress-ng >/dev/null || { echo "stressors: skipped: missing: stress-ng" >&2; exit 77; }
[[ -x $bin/reprise ]] || { echo "stressors: no reprise in $bin: build it, or say where with --bin" >&2; exit 2; }
reprise=$(realpath "$bin/reprise")
for stressor in "${stressors[@]}"; do
    stress-ng --stressors | tr ' ' '\n' | grep -qxF -- "$stressor" ||
        { echo "stressors: stress-ng has no stressor '$stressor' (stress-ng --stressors lists them)" >&2; exit 2; }
done
if [[ ${#stressors[@]} == 0 ]]; then
    read -ra stressors < <(stress-ng --class 'filesystem?' 2>&1 | sed 's/.*: //')
    stressors+=(aio aiol io-uring revio seek sendfile splice tee vm-splice readahead mmap mmapfork mmapmany mmapfixed msync
        madvise mincore memfd mremap munmap shm dev-shm fork exec)
fi

# Why the result may differ.
known() {
    case $1 in
        bind-mount | binderfs | tmpfs) echo "mounts, which a replay does not make, or ends without" ;;
        iomix) echo "its processes race for one position of a file" ;;
        memfd) echo "holes of memory files, which are found by SEEK_DATA" ;;
        dir) echo "getdents of directories that other processes fill meanwhile" ;;
    esac
}

work=$(mktemp -d "$dir/stressors-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
failed=0 same=0
for stressor in "${stressors[@]}"; do
    rm -rf "${work:?}"/*
    mkdir "$work/job"
    timeout -k 5 60 "$reprise" capture -q -f -o "$work/log" -- stress-ng "--$stressor" 1 "--$stressor-ops" 40 --timeout 4 \
        --seed 1 --temp-path "$work/job" -q >/dev/null 2>"$work/errors"
    if [[ ! -f $work/log ]]; then
        echo "$stressor: not recorded: $(head -1 "$work/errors")"
        failed=1
        continue
    fi
    "$reprise" prepare -q "$work/log" --root "$work/root" >/dev/null 2>"$work/errors" ||
        { echo "$stressor: not prepared: $(head -1 "$work/errors")"; failed=1; continue; }
    # Whether it is the same job; a short one may well not be measured.
    timeout -k 5 120 "$reprise" replay "$work/log" --root "$work/root" --cache as-is -v >"$work/out" 2>&1
    ended=$?
    if [[ $ended -le 1 ]] && ! grep -q "^NOT THE SAME JOB" "$work/out"; then
        same=$((same + 1))
    elif why=$(known "$stressor") && [[ -n $why ]]; then
        echo "$stressor: differs, as known: $why"
    else
        echo "$stressor: exit code $ended: $(head -1 "$work/out")"
        sed -n '/^example differences/,/^the replay/p' "$work/out" | sed -n 2,4p
        failed=1
    fi
done
echo "$same of ${#stressors[@]} stressors: the same job"
exit $failed
