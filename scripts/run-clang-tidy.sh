#!/usr/bin/env bash
# usage: scripts/run-clang-tidy.sh [BUILD_DIR] [--all] [--seconds N]
# Runs clang-tidy over the project's own sources: those that changed since the
# main branch, or all of them, changed ones first, until the time is used up.
# A source that passed is not looked at again until it or a header changes.
# Says how many were not reached; exits 1 where a source has a finding.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/release
seconds=${REPRISE_TIDY_SECONDS:-180}
all=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --all) all=1 ;;
        --seconds) seconds=$2; shift ;;
        *) build=$1 ;;
    esac
    shift
done
[[ -f $build/compile_commands.json ]] || {
    echo "run-clang-tidy: no $build/compile_commands.json; configure first" >&2
    exit 2
}

rooms=(formats transform capture calibrate replay analyze cli)
mapfile -t sources < <(find "${rooms[@]}" -name '*.cpp' ! -name cupti_collector.cpp | sort)
changed=$(git diff --name-only main... -- '*.cpp' 2>/dev/null; git diff --name-only -- '*.cpp' 2>/dev/null || true)
first=() rest=()
for source in "${sources[@]}"; do
    if grep -qxF "$source" <<<"$changed"; then first+=("$source"); else rest+=("$source"); fi
done
if [[ $all == 0 && ${#first[@]} -gt 0 ]]; then rest=(); fi
queue=("${first[@]}" "${rest[@]}")

# What a verdict depends on: the source, all headers, the settings, the tool.
headers=$({ cat .clang-tidy; find "${rooms[@]}" -name '*.h' -o -name '*.def' 2>/dev/null | sort | xargs -r cat
            clang-tidy --version; } 2>/dev/null | sha256sum | cut -d' ' -f1)
passed_dir=$build/tidy-passed
mkdir -p "$passed_dir"
export build passed_dir headers
deadline=$(($(date +%s) + seconds))
export deadline

check_one() {
    local source=$1 key out
    key=$passed_dir/$({ echo "$headers"; cat "$source"; } | sha256sum | cut -d' ' -f1)
    [[ -e $key ]] && { echo passed; return 0; }
    local left=$((deadline - $(date +%s)))
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

verdicts=$(printf '%s\0' "${queue[@]}" | xargs -0 -r -n1 -P"$(nproc)" bash -c 'check_one "$1"' _)
count() { grep -cx "$1" <<<"$verdicts" || true; }
echo "clang-tidy: $(count passed) passed, $(count failed) failed, $(count unreached) not reached in $seconds s"
[[ $(count failed) == 0 ]]
