#!/usr/bin/env bash
# A real PyTorch DataLoader, whose tensors lie in files in /dev/shm that threads and processes hand to each other: with
# a larger and a smaller data set the replay finds all of them, too.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "python3-torch is not installed"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1

cat >job.py <<'END'
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        with open("data/s%04d.bin" % i, "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).float()


for _ in range(3):
    for batch in DataLoader(Files(), batch_size=4, shuffle=True, num_workers=2):
        batch.mean()
        time.sleep(0.002)
END
mkdir data
for ((i = 0; i < 200; ++i)); do
    head -c 65536 /dev/urandom >"data/s$(printf %04d "$i").bin"
done
run 0 timeout 120 "$REPRISE" capture -q -o job.oplog -- /usr/bin/python3 job.py
for options in "--scale 2" "--scale 3 --seed 2" "--scale 0.5" "--scale 2 --epochs 5"; do
    read -ra words <<<"$options"
    rm -rf root run.json
    run 0 "$REPRISE" scale -q -f job.oplog "${words[@]}" -o scaled.oplog
    run 0 "$REPRISE" prepare -q scaled.oplog --root root
    run "0 1" timeout 120 "$REPRISE" replay -v scaled.oplog --root root --pace afap --json=run.json
    contains "$out" "job         SAME"
    python3 -c 'import json; run = json.load(open("run.json")); assert run["same_job"] and run["mismatches"] == 0' ||
        fail "$options: not the same job"
done
finish
