#!/usr/bin/env bash
# The bash completion script completes what the registry declares.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"

run 0 "$REPRISE" completion bash
bash -n "$out" || fail "the script does not parse"
# shellcheck disable=SC1090
source "$out"

complete_words() { # the words typed so far, the last one being completed
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _reprise
    echo "${COMPREPLY[*]}"
}
has() { [[ " $1 " == *" $2 "* ]] || fail "'$2' is not among '$1'"; }

has "$(complete_words reprise '')" completion
equal "$(complete_words reprise compl)" completion
equal "$(complete_words reprise -q compl)" completion
equal "$(complete_words reprise __)" ''
has "$(complete_words reprise --)" --version
equal "$(complete_words reprise completion --ver)" --verbose
equal "$(complete_words reprise completion '')" bash
# Nothing after "--": that is another command's line.
equal "$(complete_words reprise completion -- --v)" ''
# No reply where a file is wanted: bash then completes file names.
equal "$(complete_words reprise nosuch x)" ''
complete -p reprise | grep -q -- '-o default' || fail "no fall-back to file names"
finish
