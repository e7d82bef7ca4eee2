#!/usr/bin/env bash
# Published MLPerf Storage results of one storage system: fitted on the one accelerator, predicted for the other.
# plain builds only
# SPDX-License-Identifier: MIT
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
table=$(trace mlperf_storage/v1.0_summaries.csv) || skip "no trace mlperf_storage/v1.0_summaries.csv; set REPRISE_TRACES"
cd "$tmp" || exit 1
run 0 python3 "$REPRISE_SOURCE_DIR/tests/bench/cluster/mlperf.py" "$table" --reprise "$REPRISE" --only 8xNDR200_18clients
cat "$out"
contains "$out" "| unet3d A100, 72 on 18 | unet3d H100, 36 on 18 | 93.5 % |"
python3 - "$out" <<'END' || fail "the other accelerator's AU is off by more than 3 points"
import sys
row = next(line for line in open(sys.argv[1], encoding="utf-8") if "36 on 18" in line)
sys.exit(abs(float(row.split("|")[6])) > 3)
END
finish
