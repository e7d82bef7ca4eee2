#!/usr/bin/env bash
# The man page is clean troff and speaks of every command.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v groff >/dev/null || skip "groff is not installed"

run 0 "$REPRISE" __man
cp "$out" "$tmp/reprise.1"
run 0 groff -man -Tascii -P-bcu -ww "$tmp/reprise.1"
empty "$err"
contains "$out" "SYNOPSIS"
contains "$out" "reprise completion"
contains "$out" "EXIT STATUS"
finish
