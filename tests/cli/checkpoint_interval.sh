#!/usr/bin/env bash
# examples/checkpoint-interval.sh: wrong uses, and a job whose checkpoints cost the more the more often they are made.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

script=$REPRISE_SOURCE_DIR/examples/checkpoint-interval.sh
export REPRISE_BINARY=$REPRISE REPRISE_WORK=$tmp/work
run 0 "$script" --help
contains "$out" "usage: examples/checkpoint-interval.sh JOB.ini"
lacks "$out" "SPDX"
storage_model model.json
printf '[t]\nformat=none\nsteps=60\ncompute=1\ncheckpoint_every=7\ncheckpoint_size=2GB\ncheckpoint_bs=16MiB\n' >job.ini
run 2 "$script" job.ini
contains "$err" "a job file and --storage are required"
run 2 "$script" job.ini --fast
contains "$err" "unknown option --fast"
run 2 "$script" job.ini --storage
contains "$err" "--storage requires a value"
run 2 "$script" job.ini --storage model.json --every 3x
contains "$err" "--every is a list of numbers of steps"
printf '[t]\nformat=none\nsteps=9\n' >none.ini
run 2 "$script" none.ini --storage model.json
contains "$err" "none.ini must have exactly one line checkpoint_every="
run 0 "$script" job.ini --storage model.json --every 5,30
contains "$out" "without checkpoints: 60.0 s for 60 steps"
python3 - <<'END' || { fail "what checkpoints cost"; cat "$out"; }
import json
often, seldom, never = (json.load(open(f"work/{name}.json", encoding="utf-8"))["elapsed_s"] for name in ("5", "30", "never"))
# 2 GB at 1 GB/s: 12 times two seconds and more, and twice.
assert 80 < often < 100 and 63 < seldom < 67 and 60 <= never < 60.1, (often, seldom, never)
END
finish
