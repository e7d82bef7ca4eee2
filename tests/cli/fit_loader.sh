#!/usr/bin/env bash
# reprise fit of a real PyTorch DataLoader that was recorded without --torch: batches, workers and steps are those of the
# job, and the job that is made of it reads what the recorded one read.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "python3-torch is not installed"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1

cat >job.py <<'END'
import sys
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        with open("data/s%04d.jpg" % i, "rb") as file:
            data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).float()
        time.sleep(0.001)
        return data


if __name__ == "__main__":
    loader = DataLoader(Files(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=sys.argv[1] == "stay")
    for _ in range(3):
        for batch in loader:
            batch.mean()
            time.sleep(0.004)
END
mkdir data
for ((i = 0; i < 160; ++i)); do
    head -c 30000 /dev/urandom >"data/s$(printf %04d "$i").jpg"
done
for workers in new stay; do
    run 0 timeout 120 "$REPRISE" capture -q -f -o job.oplog -- /usr/bin/python3 job.py "$workers"
    run 0 "$REPRISE" fit -f job.oplog -o job.ini --json=fit.json
    python3 - <<'END' || fail "$workers workers: $(cat "$out")"
import json
fit = json.load(open("fit.json"))
assert fit["differs"] is None, fit["differs"]
words = {word["word"]: word["value"] for word in fit["words"]}
assert [words[word] for word in ("samples", "batch", "loader_workers", "epochs")] == ["160", "8", "2", "3"], words
assert "steps" not in words, words
assert not {"batch", "loader_workers", "steps"} & {word["word"] for word in fit["unseen"]}, fit["unseen"]
END
    run 0 "$REPRISE" generate -q -f job.ini -o again.oplog --json=again.json
    python3 -c 'import json; read = json.load(open("again.json"))["bytes_read"]; assert read == 3 * 160 * 30000, read' ||
        fail "$workers workers: the job reads something else"
done
finish
