#!/usr/bin/env bash
# usage: scripts/run-clang-tidy.sh [--all] [--seconds N]
# Runs clang-tidy over the project's own sources: all that changed since the last tag (where there is none: in the last
# five commits). With --all also a part of the rest, another one every day, and all of it is over after N seconds
# (without --all, however long it takes). A source that passed is not looked at again until it or a header changes. Says
# how many were not reached; exits 1 where a source has a finding.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/tidy
seconds=${REPRISE_TIDY_SECONDS:-200}
all=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --all) all=1 ;;
        --seconds) seconds=$2; shift ;;
        *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
# How each source is compiled by itself.
log=$(cmake --preset release -B "$build" -DCMAKE_UNITY_BUILD=OFF -DREPRISE_TESTS=ON 2>&1) || {
    echo "$log" >&2
    exit 2
}

mapfile -t rooms < <(sed -n 's/^\([a-z][^ ]*\) *|.*/\1/p' cmake/rooms.txt | cut -d/ -f1 | sort -u)
rooms+=(cli)
mapfile -t sources < <(find "${rooms[@]}" -name '*.cpp' ! -name cupti_collector.cpp | sort)
base=$(git describe --tags --abbrev=0 2>/dev/null || git rev-parse --verify -q HEAD~5 || git rev-list --max-parents=0 HEAD)
changed=$(git diff --name-only "$base" -- '*.cpp' 2>/dev/null || true)
first=() rest=()
for source in "${sources[@]}"; do
    if grep -qxF "$source" <<<"$changed"; then first+=("$source"); else rest+=("$source"); fi
done
if [[ $all == 0 && ${#first[@]} -gt 0 ]]; then rest=(); fi
if [[ ${#rest[@]} -gt 0 ]]; then
    turn=$(($(date +%s) / 86400 * 37 % ${#rest[@]}))
    rest=("${rest[@]:turn}" "${rest[@]:0:turn}")
fi

# What a verdict depends on: the source, all headers, the settings, the tool.
headers=$({ cat .clang-tidy; find "${rooms[@]}" -name '*.h' -o -name '*.def' 2>/dev/null | sort | xargs -r cat
            clang-tidy --version; } 2>/dev/null | sha256sum | cut -d' ' -f1)
passed_dir=$build/passed
mkdir -p "$passed_dir"
export build passed_dir headers

# check_one SOURCE [DEADLINE]
check_one() {
    local source=$1 deadline=${2:-} key out left=86400
    key=$passed_dir/$({ echo "$headers"; cat "$source"; } | sha256sum | cut -d' ' -f1)
    [[ -e $key ]] && { echo passed; return 0; }
    if [[ -n $deadline ]]; then left=$((deadline - $(date +%s))); fi
    [[ $left -gt 0 ]] || { echo unreached; return 0; }
    local rc=0
    out=$(timeout "$left" clang-tidy --quiet -p "$build" "$source" 2>/dev/null) || rc=$?
    if [[ $rc == 124 ]]; then
        echo unreached
    elif [[ $rc != 0 ]]; then
        printf '%s\n' "${out:-$source: clang-tidy failed with exit code $rc}" >&2
        echo failed
    else
        touch "$key"
        echo passed
    fi
}
export -f check_one

all_of() { # DEADLINE SOURCE...
    local deadline=$1
    shift
    [[ $# == 0 ]] || printf '%s\0' "$@" | xargs -0 -n1 -P"$(nproc)" bash -c 'check_one "$2" "$1"' _ "$deadline"
}
deadline=
[[ $all == 0 ]] || deadline=$(($(date +%s) + seconds))
verdicts=$(all_of "$deadline" "${first[@]}"; all_of "$deadline" "${rest[@]}")
count() { grep -cx "$1" <<<"$verdicts" || true; }
echo "clang-tidy: $(count passed) passed, $(count failed) failed, $(count unreached) not reached (${#first[@]} changed ones first${deadline:+, $seconds s in all})"
[[ $(count failed) == 0 ]]
