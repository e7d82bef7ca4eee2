#!/usr/bin/env bash
# Every command explains itself; mistakes on the command line are named.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"

run 0 "$REPRISE" --version
contains "$out" "reprise "
contains "$out" "op log format "
run 0 "$REPRISE" --help
contains "$out" "reprise replay job.oplog --root"
lacks "$out" "__man"
run 2 "$REPRISE"
contains "$err" "usage: reprise"
empty "$out"

commands=$("$REPRISE" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
[[ $(wc -w <<<"$commands") -ge 10 ]] || fail "found only these commands: $commands"
for command in $commands; do
    run 0 "$REPRISE" "$command" --help
    contains "$out" "usage: reprise $command"
    contains "$out" "Example"
    # The example is of this command; options are at most a dozen beside the common ones, and -f of what they write.
    contains "$out" "reprise $command "
    options=$(sed -n '/^Options$/,/^$/p' "$out" | grep -vw -- --force | grep -cE '^ {2}(-|    --)')
    # replay has its what-if questions (--cpu-speed, --gpu-speed) and limits besides, and what makes a result count.
    most=12
    # sweep takes what is varied, and what all runs have in common.
    [[ $command == sweep ]] && most=16
    # What-ifs of access (docs/access.md) are one topic of two commands, less memory (docs/ratios.md) another one; and
    # whoever runs for hours is watched (docs/metrics.md). Ranks may have to be synchronised (docs/scale.md).
    [[ $command == replay ]] && most=40
    [[ $command == predict ]] && most=29  # many accelerators (docs/scale.md), too
    [[ $command == prepare ]] && most=17
    # capture says what it records and what the files are for in one go, finds libraries, and is watched.
    [[ $command == capture ]] && most=17
    [[ $((options - 3)) -le $most ]] || fail "$command has $((options - 3)) options, at most $most"
    [[ $(wc -L <"$out") -le 110 ]] || fail "$command --help is wider than 110 columns"
    run 0 "$REPRISE" help "$command"
    run 2 "$REPRISE" "$command" --no-such-option
    contains "$err" "reprise: $command: "
    contains "$err" "see: reprise $command --help"
done

run 2 "$REPRISE" compeltion bash
contains "$err" "did you mean: completion"
run 2 "$REPRISE" zzzzzz
contains "$err" "reprise: 'zzzzzz' is not a command"
contains "$err" "reprise --help"
run 2 "$REPRISE" $'bad\nname'
contains "$err" "'bad\\nname'"
run 2 "$REPRISE" --frobnicate info
contains "$err" "unknown option '--frobnicate'"
run 2 "$REPRISE" completion
contains "$err" "missing"
run 2 "$REPRISE" completion bash more
contains "$err" "too many arguments"
run 2 "$REPRISE" completion csh
contains "$err" "expected one of: bash, zsh, fish"

# A full disk under standard output is not silence.
if [[ -w /dev/full ]]; then
    rc=0
    "$REPRISE" --help >/dev/full 2>"$err" || rc=$?
    equal "$rc" 4
    contains "$err" "cannot write to standard output"
fi
finish
