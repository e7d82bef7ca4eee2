#!/usr/bin/env bash
# Checks that every C++ source is formatted by .clang-format, and that rooms
# include only the rooms they may use. --fix rewrites the former in place.
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

failed=0
for file in "${sources[@]}"; do
    if ! clang-format "$file" | cmp -s - "$file"; then
        echo "not formatted: $file"
        failed=1
    fi
done
[[ $failed == 0 ]] || echo "mend with: scripts/check-format.sh --fix"

# The arrows between rooms, as the table of the design page has them. Linking
# enforces them for functions; this also for what lives in headers.
declare -A may=(
    [formats]='formats' [capture]='capture|formats' [calibrate]='calibrate|formats'
    [replay]='replay|formats|calibrate' [analyze]='analyze|formats' [generate]='generate|formats'
)
rooms='formats|capture|calibrate|replay|analyze|generate|cli|tests|examples'
for room in "${!may[@]}"; do
    [[ -d $room ]] || continue
    while IFS=: read -r file line text; do
        if [[ $text =~ \"($rooms)/ ]] && ! [[ ${BASH_REMATCH[1]} =~ ^(${may[$room]})$ ]]; then
            echo "$file:$line: $room may not include ${BASH_REMATCH[1]}/"
            failed=1
        fi
    done < <(grep -rnE '^ *# *include *"' --include='*.h' --include='*.cpp' --include='*.def' "$room" || true)
done
exit $failed
