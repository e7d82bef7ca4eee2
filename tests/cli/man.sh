#!/usr/bin/env bash
# There is a man page for reprise and for each command; all are clean troff.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
command -v groff >/dev/null || skip "groff is not installed"

mkdir "$tmp/man1"
run 0 "$REPRISE" __man --all "$tmp/man1"
commands=$("$REPRISE" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
[[ $(wc -w <<<"$commands") -ge 10 ]] || fail "found only these commands: $commands"
equal "$(find "$tmp/man1" -type f | wc -l)" "$(($(wc -w <<<"$commands") + 1))"
for page in "$tmp/man1"/*; do
    run 0 groff -man -Tascii -P-bcu -ww "$page"
    empty "$err"
    for section in NAME SYNOPSIS DESCRIPTION EXAMPLES 'EXIT STATUS'; do
        contains "$out" "$section"
    done
done
run 0 groff -man -Tascii -P-bcu "$tmp/man1/reprise.1"
for command in $commands; do
    contains "$out" "reprise-$command(1)"
done

run 0 "$REPRISE" __man replay
cmp -s "$out" "$tmp/man1/reprise-replay.1" || fail "one page differs from the same page of --all"
run 0 groff -man -Tascii -P-bcu "$tmp/man1/reprise-replay.1"
contains "$out" "reprise replay [OPTION...] LOG"
contains "$out" "--pace PACE"
contains "$out" "reprise(1)"
run 2 "$REPRISE" __man nosuch
run 4 "$REPRISE" __man --all "$tmp/nosuch"
finish
