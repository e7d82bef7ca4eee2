#!/usr/bin/env bash
# What scripts/ensure-packages.sh does with nothing missing, without root, and
# as root; the package tools are stand-ins that write down how they were called.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
script=$REPRISE_SOURCE_DIR/scripts/ensure-packages.sh

mkdir "$tmp/bin"
stand_in() { printf '#!/bin/bash\n%s\n' "$2" >"$tmp/bin/$1"; chmod +x "$tmp/bin/$1"; }
world() { # UID
    stand_in id "echo $1"
    # Everything asked about is installed but what $tmp/missing names.
    stand_in dpkg-query "for p in \"\${@:4}\"; do grep -qxF \"\$p\" '$tmp/missing' || echo \"installed \$p\"; done"
    stand_in apt-get "echo \"\$*\" >>'$tmp/calls'; [[ \$1 == update ]] && touch '$tmp/updated' && exit 0
        [[ -e '$tmp/updated' ]] || exit 100
        : >'$tmp/missing'"
    rm -f "$tmp/updated"
    : >"$tmp/calls"
}
ensure() { PATH=$tmp/bin:$PATH "$script" "$@"; }

world 1000
: >"$tmp/missing"
run 0 ensure build test bench docs
empty "$out"
empty "$err"

printf '%s\n' cmake doctest-dev >"$tmp/missing"
run 4 ensure build test
contains "$err" "  cmake doctest-dev"
contains "$err" "administrator"
contains "$err" "apt-get install --no-install-recommends cmake doctest-dev"
lacks "$err" "ninja-build"
empty "$tmp/calls"

world 0
run 0 ensure build test
equal "$(grep -c install "$tmp/calls")" 2 # before and after the update
equal "$(grep -c update "$tmp/calls")" 1

world 0
echo cmake >"$tmp/missing"
touch "$tmp/updated"
run 0 ensure
equal "$(grep -c update "$tmp/calls")" 0 # lists that work are not fetched again

world 0
echo cmake >"$tmp/missing"
stand_in apt-get "exit 100"
run 4 ensure
contains "$err" "cmake"

run 2 ensure frobnicate
contains "$err" "unknown purpose 'frobnicate'"
finish
