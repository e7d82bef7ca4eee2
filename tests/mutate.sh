#!/usr/bin/env bash
# usage: tests/mutate.sh [--help] [OPTION...]
# Plants faults in the code that decides, one at a time, runs the tests of its room, and lists the faults that no test
# finds. A command of its own, not part of tests/run.sh: 300 faults take an hour or more. Works in build/mutate.
# SPDX-License-Identifier: MIT
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/mutate/mutate.py" "$@"
