#!/usr/bin/env bash
# `reprise ops` shows the op table and that of the counters; docs/ops.md and docs/counters.md are what it prints.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"

run 0 "$REPRISE" ops
contains "$out" "pread64"
rows=$(grep -c '^OP(' "$REPRISE_SOURCE_DIR/formats/oplog/ops.def")
equal "$(($(wc -l <"$out") - 1))" "$rows"
run 0 "$REPRISE" ops --json
contains "$out" '"op": "copy_file_range"'
equal "$(grep -c '"id":' "$out")" "$rows"
run 0 "$REPRISE" ops --markdown
cmp -s "$out" "$REPRISE_SOURCE_DIR/docs/ops.md" ||
    fail "docs/ops.md is not current: reprise ops --markdown > docs/ops.md"

run 0 "$REPRISE" ops --counters
rows=$(grep -c '^COUNTER' "$REPRISE_SOURCE_DIR/formats/support/counters.def")
equal "$(($(wc -l <"$out") - 1))" "$rows"
run 0 "$REPRISE" ops --counters --json
contains "$out" '"counter": "dropped_*"'
equal "$(grep -c '"counter":' "$out")" "$rows"
run 0 "$REPRISE" ops --counters --markdown
cmp -s "$out" "$REPRISE_SOURCE_DIR/docs/counters.md" ||
    fail "docs/counters.md is not current: reprise ops --counters --markdown > docs/counters.md"
finish
