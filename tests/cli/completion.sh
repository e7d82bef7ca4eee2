#!/usr/bin/env bash
# The completion scripts complete what the registry declares: in bash always, in zsh and fish where they are installed.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"

has() { [[ " $1 " == *" $2 "* ]] || fail "'$2' is not among '$1'"; }
has_file() { [[ $1 == *job.oplog* ]] || fail "no job.oplog among '$1'"; }  # zsh gives the name without ./
has_not() { [[ " $1 " != *" $2 "* ]] || fail "'$2' is among '$1'"; }

# The same answers from every shell. $1: a function that prints the candidates for the last of its words.
check_shell() {
    local complete=$1
    has "$($complete reprise '')" completion
    has "$($complete reprise '')" help
    equal "$($complete reprise compl)" completion
    equal "$($complete reprise -q compl)" completion
    has_not "$($complete reprise '')" __man
    has "$($complete reprise --)" --version
    has_not "$($complete reprise --)" --pace
    equal "$($complete reprise completion --ver)" --verbose
    has "$($complete reprise completion '')" fish
    has "$($complete reprise replay --)" --pace
    has_not "$($complete reprise info --)" --pace
    has "$($complete reprise replay --pace '')" afap
    equal "$($complete reprise replay --pace ti)" timed
    has "$($complete reprise help '')" predict
    # A value that is a file; an argument that is one.
    has_file "$($complete reprise replay job.oplog -o ./jo)"
    # One that may be missing is not the next word.
    has_file "$($complete reprise replay job.oplog --json=./jo)"
    has "$($complete reprise replay job.oplog --json --)" --pace
    has_file "$($complete reprise info ./jo)"
    # Nothing of reprise after "--": that is another command's line.
    has_not "$($complete reprise completion -- --v)" --verbose
}

cd "$tmp" || exit 1
touch job.oplog

run 0 "$REPRISE" completion bash
cp "$out" reprise.bash
bash -n reprise.bash || fail "the bash script does not parse"
# shellcheck disable=SC1091
source ./reprise.bash
in_bash() { # an empty reply makes bash complete file names
    local word
    COMP_WORDS=()
    for word in "$@"; do # bash splits at =
        if [[ $word == --*=* ]]; then COMP_WORDS+=("${word%%=*}" "=" "${word#*=}"); else COMP_WORDS+=("$word"); fi
    done
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _reprise
    word=${COMP_WORDS[COMP_CWORD]}
    [[ ${#COMPREPLY[@]} != 0 || $word != ./* ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
    echo "${COMPREPLY[*]}"
}
check_shell in_bash
complete -p reprise | grep -q -- '-o default' || fail "no fall-back to file names"

run 0 "$REPRISE" completion fish
cp "$out" reprise.fish
missing=
if command -v fish >/dev/null; then
    in_fish() { # the last word is being completed, so it stays without quotes
        local line=${*:1:$#-1}
        HOME=$tmp fish --no-config -c "source reprise.fish; complete -C '$line ${*: -1}'" 2>>fish.err | cut -f1 | tr '\n' ' ' | sed 's/ $//'
    }
    check_shell in_fish
    empty fish.err
else
    missing+=" fish"
fi

run 0 "$REPRISE" completion zsh
cp "$out" _reprise
if command -v zsh >/dev/null; then
    # Types the line in an interactive zsh, presses tab, and prints what was added as a candidate.
    cat >candidates.zsh <<'EOF'
zmodload zsh/zpty
zpty shell HOME=$PWD zsh -f -i
zpty -w shell 'PS1= RPS1=; stty -echo; autoload -Uz compinit; compinit -u -D; source ./_reprise; bindkey "^I" complete-word
compadd() { local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >>candidates; builtin compadd "$@" }
finished() { print -r -- done >finished }; zle -N finished; bindkey "^X" finished; print -r -- ready >ready'
repeat 200; do [[ -e ready ]] && break; zpty -r -t shell junk; sleep 0.05; done
zpty -w -n shell "$1"$'\t\x18'
repeat 200; do [[ -e finished ]] && break; zpty -r -t shell junk; sleep 0.05; done
[[ -e finished ]]
zpty -d shell
EOF
    in_zsh() {
        rm -f candidates ready finished
        zsh -f candidates.zsh "$*" >/dev/null 2>>zsh.err || fail "zsh did not answer to: $*"
        [[ ! -e candidates ]] || sort -u candidates | tr '\n' ' ' | sed 's/ $//; s/^ *//'
    }
    zsh -n _reprise || fail "the zsh script does not parse"
    check_shell in_zsh
else
    missing+=" zsh"
fi
[[ -z $missing || $failures != 0 ]] || skip "bash was tested; not installed:$missing"
finish
