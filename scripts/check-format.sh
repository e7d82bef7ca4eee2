#!/usr/bin/env bash
# Checks that every C++ source is formatted by .clang-format. --fix rewrites them in place.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

list() { # tracked and new files, but not ignored ones
    git ls-files -z --cached --others --exclude-standard -- "$@" 2>/dev/null ||
        find . -path ./build -prune -o -type f \( -name '*.h' -o -name '*.cpp' \) -print0
}
mapfile -d '' -t found < <(list '*.h' '*.cpp')
sources=()
for file in "${found[@]}"; do
    [[ -f $file ]] && sources+=("$file")
done

if [[ ${1:-} == --fix ]]; then
    clang-format -i "${sources[@]}"
    exit 0
fi

if ! printf '%s\0' "${sources[@]}" | xargs -0 -n 40 -P "$(nproc)" clang-format --dry-run -Werror; then
    echo "mend with: scripts/check-format.sh --fix"
    exit 1
fi
