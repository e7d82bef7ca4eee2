#!/usr/bin/env bash
# Ranks of a job: recorders side by side, one per rank, whose logs are merged; one recorder of a launcher and its ranks; what
# `info` says of both. Needs root and BPF.
# plain builds only
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
can_record || skip "this machine cannot record"
command -v python3 >/dev/null || skip "python3 is not installed"
cd "$tmp" || exit 1

# Rank 0 listens; each round it sends 3 000 bytes once it has slept, and rank 1 answers. Rank 1 waits in a poll or in
# the call itself. Both read a file and rank 0 writes one, which rank 1 then reads.
cat >job.py <<'END'
import os
import select
import socket
import time

rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "")))
rounds = 20


def whole(link, size):
    got = b""
    while len(got) < size:
        got += link.recv(size - len(got))
    return got


with open("data.bin", "rb") as file:
    file.read()
if rank == 0:
    listener = socket.create_server(("127.0.0.1", 0))
    with open("port.new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename("port.new", "port")
    link = listener.accept()[0]
else:
    while not os.path.exists("port"):
        time.sleep(0.01)
    link = socket.create_connection(("127.0.0.1", int(open("port").read())))
for i in range(rounds):
    if rank == 0:
        time.sleep(0.005)
        if i == rounds - 1:
            with open("made.bin", "wb") as file:
                file.write(b"x" * 5000)
        link.sendall(b"m" * 3000)
        whole(link, 10)
    else:
        if i % 2:
            select.select([link], [], [])
        whole(link, 3000)
        if i == rounds - 1:
            open("made.bin", "rb").read()
        link.sendall(b"a" * 10)
END
head -c 20000 /dev/urandom >data.bin

# rank NUMBER: recorded by a recorder of its own, as a launcher would start it.
rank() {
    OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=${job:-one} \
        "$REPRISE" capture -f -o job.oplog -- python3 job.py 2>"rank$1.err"
}
rank 0 & first=$!
rank 1 & second=$!
wait "$first" || { fail "rank 0 failed"; cat rank0.err; }
wait "$second" || { fail "rank 1 failed"; cat rank1.err; }
contains rank1.err "rank 1 of 2 (Open MPI), recorded to job.rank1.oplog"
[[ ! -e job.oplog ]] || fail "the ranks wrote to one file"
run 0 "$REPRISE" info job.rank1.oplog
contains "$out" "rank 1 of 2 (Open MPI)"
run 0 "$REPRISE" info --tasks job.rank1.oplog
sed '1,/^Tasks/d' "$out" >tasks.txt
contains tasks.txt python3
lacks tasks.txt reprise # neither recorder is in it

run 0 "$REPRISE" merge job.rank1.oplog job.rank0.oplog -o job.oplog --json=merge.json
contains "$out" "of 2 ranks"
contains "$out" "same clock"
python3 - merge.json <<'END' || fail "the messages of the ranks have not become edges"
import json
import sys

merge = json.load(open(sys.argv[1]))
assert merge["ranks"] == 2 and merge["connections"] == 1 and merge["dropped"] == 0, merge
assert merge["edges"] >= 40, merge  # 20 rounds, both ways
assert merge["files_shared"] > 0, merge
END
run 0 "$REPRISE" info --json --files job.oplog
cp "$out" info.json
python3 - info.json <<'END' || fail "info of the merged log"
import json
import sys

info = json.load(open(sys.argv[1]))
assert info["ranks"] == 2 and info["rank"] is None, (info["ranks"], info["rank"])
ranks = [row for row in info["network"] if row["kind"] == "rank"]
assert sorted(row["peer"] for row in ranks) == ["rank 0", "rank 1"], ranks
assert sorted(row["bytes_received"] for row in ranks) == [200, 60000], ranks
assert all(row["connections"] == 1 for row in ranks), ranks
made = [row for row in info["files"] if row["path"].endswith("/made.bin")]
assert [row["origin"] for row in made] == ["created"], made
END

# The merged log replays in its order: each rank does what it did, and waits for the other.
run 0 "$REPRISE" prepare -q job.oplog --root root
run "0 1" timeout 120 "$REPRISE" replay -v job.oplog --root root --delay sleep -o run.oplog
contains "$out" "job         SAME"
run 0 "$REPRISE" dump job.oplog
grep -q "edge" "$out" || grep -q "after" "$out" || fail "the dump shows no edges"

# Another run is another job; a rank alone is not all of them.
job=two rank 0 & first=$!
rm -f port
cp job.rank1.oplog kept.oplog
job=two rank 1 || fail "rank 1 failed"
wait "$first"
run 3 "$REPRISE" merge job.rank0.oplog kept.oplog -o mixed.oplog
contains "$err" "is of job 'one'"
run 3 "$REPRISE" merge job.rank0.oplog job.rank0.oplog -o mixed.oplog
contains "$err" "once"
run 3 "$REPRISE" merge job.oplog kept.oplog -o mixed.oplog
contains "$err" "one log per rank"
run 2 "$REPRISE" merge job.rank0.oplog -o mixed.oplog
head -c 20000 kept.oplog >cut.oplog
run 3 "$REPRISE" merge job.rank0.oplog cut.oplog -o mixed.oplog
[[ ! -e mixed.oplog && ! -e mixed.oplog.partial ]] || fail "a refused merge left something behind"

# A name of one's own by a variable, as other profilers have it.
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 run 0 "$REPRISE" capture -o 'of-%q{OMPI_COMM_WORLD_RANK}.oplog' -- true
[[ -e of-1.oplog ]] || fail "%q{} was not replaced"
run 2 "$REPRISE" capture -o 'of-%q{NO_SUCH_VARIABLE}.oplog' -- true
contains "$err" "NO_SUCH_VARIABLE is not set"

# One recorder of the launcher and all ranks: the launcher itself is none of them.
cat >launch.sh <<'END'
for ((rank = 0; rank < 2; ++rank)); do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank TORCHELASTIC_RUN_ID=x python3 job.py &
done
wait
END
rm -f port
run 0 "$REPRISE" capture -f -o tree.oplog -- bash launch.sh
run 0 "$REPRISE" info tree.oplog
grep -q "^  ranks  *2 (torchrun)$" "$out" || fail "info does not know the ranks: $(grep ranks "$out")"
run 0 "$REPRISE" info --json tree.oplog
cp "$out" tree.json
python3 - tree.json <<'END' || fail "info of the whole tree"
import json
import sys

info = json.load(open(sys.argv[1]))
assert info["ranks"] == 2, info["ranks"]
ranks = [row for row in info["network"] if row["kind"] == "rank"]
assert sorted(row["bytes_received"] for row in ranks) == [200, 60000], ranks
END
run 0 "$REPRISE" capture -f --without network -o tree.oplog -- true
finish
