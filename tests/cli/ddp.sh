#!/usr/bin/env bash
# A real PyTorch job of four ranks (DistributedDataParallel, gloo): recorded as a whole under torchrun, and as four
# recordings under mpirun that are merged. Needs root and BPF.
# plain builds only
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
python=/usr/bin/python3 # Debian's, where another one comes first
"$python" -c 'import torch.distributed, PIL, numpy, sys; sys.exit(not torch.distributed.is_available())' 2>/dev/null ||
    skip "python3-torch, python3-pil and python3-numpy are not installed"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
train=$REPRISE_SOURCE_DIR/examples/train
"$python" "$train/make_data.py" data --images 80 --tokens 0 >/dev/null || exit 1
job=("$train/train_ddp.py" data/images --batch 5 --width 4 --workers 0)

# checks LOG: four ranks that talked to each other, a replay that keeps their order
checks() {
    run 0 "$REPRISE" info --json "$1"
    cp "$out" info.json
    "$python" - info.json <<'END' || fail "$1: info"
import json
import sys

info = json.load(open(sys.argv[1]))
assert info["ranks"] == 4, info["ranks"]
ranks = {row["peer"]: row for row in info["network"] if row["kind"] == "rank" and row["bytes_received"] > 100000}
assert set(ranks) >= {"rank 0", "rank 1", "rank 2", "rank 3"}, ranks
sent = sum(row["bytes_sent"] for row in ranks.values())
received = sum(row["bytes_received"] for row in ranks.values())
assert 0.9 * sent <= received <= 1.1 * sent, (sent, received)
assert info["summary"]["edges"] > 100, info["summary"]["edges"]
END
    rm -rf root
    run 0 "$REPRISE" prepare -q "$1" --root root
    run "0 1" timeout 300 "$REPRISE" replay -v "$1" --root root --delay sleep
    contains "$out" "job         SAME"
    run "0 1" timeout 300 "$REPRISE" replay -v "$1" --root root --delay sleep --engine null
}

# Debian's PyTorch 1.13 with Python 3.11 cannot do without redirection.
run 0 timeout 300 "$REPRISE" capture -o tree.oplog -- "$python" -m torch.distributed.run --nproc_per_node 4 \
    --master_port 29517 --redirects 1 --tee 1 --log_dir logs "${job[@]}"
contains "$out" "epoch 0: 4 steps"
checks tree.oplog

if ! command -v mpirun >/dev/null; then
    echo "no mpirun: the merged recording is not tested"
    finish
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MASTER_PORT=29518
mpirun --version 2>/dev/null | grep -q 'Open MPI' && slots=(--oversubscribe) || slots=()
run 0 timeout 300 mpirun "${slots[@]}" -n 4 "$REPRISE" capture -o job.oplog -- "$python" "${job[@]}"
run 0 "$REPRISE" merge job.rank*.oplog -o job.oplog --json=merge.json
"$python" - merge.json <<'END' || fail "merge"
import json
import sys

merge = json.load(open(sys.argv[1]))
assert merge["ranks"] == 4 and merge["dropped"] == 0, merge
assert merge["connections"] >= 6, merge  # each with each
assert merge["edges"] > 100, merge
assert [log["rank"] for log in merge["logs"]] == [0, 1, 2, 3], merge
END
checks job.oplog
finish
