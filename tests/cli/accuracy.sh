#!/usr/bin/env bash
# The harness of tests/bench/accuracy without its measurements: resuming, summaries, the page and the chart.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || skip "no python3"
run 0 env PYTHONDONTWRITEBYTECODE=1 python3 "$REPRISE_SOURCE_DIR/tests/bench/accuracy/test_harness.py"
contains "$err" "OK"
finish
