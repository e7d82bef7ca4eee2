#!/usr/bin/env bash
# Threads that read one at a time under a mutex do so on slower storage, too: recorded in memory, predicted in virtual
# time where a read takes a millisecond.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"
guarded=$REPRISE_BUILD_DIR/programs/guarded

head -c 100M /dev/zero >data
storage_model model.json
sed -i 's/"bytes": 4096, "ns": 65000/"bytes": 4096, "ns": 1000000/' model.json

# Whether a thread waits for another depends on the moment, so more than once.
for _ in 1 2 3 4 5; do
    run 0 "$REPRISE" capture -q -f -o job.oplog -- "$guarded" "$PWD/data" 4 50
    run 0 "$REPRISE" predict job.oplog --storage model.json --cache cold -f --json=predicted.json
    ! grep -q calls_guarded "$out" || break
done
contains "$out" calls_guarded
# 200 reads of 512 KiB.
read -r elapsed storage < <(python3 -c 'import json; p = json.load(open("predicted.json")); print(p["elapsed_s"], p["storage_s"])')
python3 -c "import sys; sys.exit(not $elapsed >= $storage > 0.2)" || fail "reads one at a time took $elapsed s, of which storage $storage s"
finish
