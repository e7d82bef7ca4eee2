#!/usr/bin/env bash
# Several ranks of one replay under real launchers: Open MPI's and MPICH's mpirun. What they print, what they refuse, and
# that none of them stays behind, whichever dies.
# plain builds only: the plug-ins for MPI are built without sanitizers
# SPDX-License-Identifier: MIT
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
[[ -e $REPRISE_BUILD_DIR/libreprise_openmpi.so ]] || skip "built without Open MPI (libopenmpi-dev)"
mpirun=$(command -v mpirun.openmpi) || skip "no mpirun of Open MPI (openmpi-bin)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
cd "$tmp" || exit 1
# on N COMMAND...: with Open MPI
on() { local ranks=$1; shift; timeout 120 "$mpirun" --oversubscribe -n "$ranks" "$@"; }
# The processes of this test's binary that were started in this folder.
left() { for one in /proc/[0-9]*; do [[ $(readlink "$one/cwd") == "$tmp"* && $(readlink "$one/exe") == "$(readlink -f "$REPRISE")" ]] && echo "${one#/proc/}"; done; }
gone() {
    for _ in $(seq 50); do [[ -z $(left) ]] && return; sleep 0.1; done
    fail "still there after $1: $(left)"
}

run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-short job.oplog
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live long.oplog

# --- one rank is as without MPI
run "0 1" on 1 "$REPRISE" replay job.oplog --engine null --pace afap
lacks "$out" "1 rank"

# --- copies over ranks, prepared together, one report
run 0 on 4 "$REPRISE" prepare job.oplog --root root
equal "$(grep -c '^done: ' "$out")" 1
run "0 1" on 4 "$REPRISE" replay job.oplog --root root -o run.oplog --json=run.json
contains "$out" "--gpus 4"
contains "$out" "4 ranks on 1 host:"
contains "$out" "started within "
contains "$out" "straggler: rank "
equal "$(grep -c '^what-if: ' "$out")" 1
run 0 python3 - <<'END'
import json
run = json.load(open("run.json"))
rows = run["ranks"]["rows"]
assert [row["rank"] for row in rows] == [0, 1, 2, 3], rows
assert all(row["ops"] == rows[0]["ops"] > 500 for row in rows), rows
assert [row["recorded_ranks"] for row in rows] == ["0", "1", "2", "3"], rows
assert run["ended"] == "complete" and run["gpus"] == "4", run["ended"]
assert run["ops"] == sum(row["ops"] for row in rows), run["ops"]
ranks = run["ranks"]  # they wait for each other after each step
held_up = [row["held_up_ns"] for row in rows]
assert abs(sum(held_up) - sum(row["waited_ns"] for row in rows)) < 1e3 and sum(held_up) > 0, rows
assert abs(ranks["waited_s"] - sum(held_up) / 1e9) < 1e-6, ranks
assert held_up[ranks["straggler"]] == max(held_up) and abs(ranks["straggler_share"] - max(held_up) / sum(held_up)) < 1e-6, ranks
assert run["bytes_read"] == sum(row["bytes_read"] for row in rows), run["bytes_read"]
assert run["elapsed_s"] * 1e9 >= max(row["elapsed_ns"] for row in rows) - 1, run["elapsed_s"]
END
# A rank whose accelerator takes twice as long holds up the others, also where another rank ends the barriers.
run "0 1" on 1 "$REPRISE" replay job.oplog --engine null --json=slow.json : \
    -n 1 "$REPRISE" replay job.oplog --engine null --gpu-speed 0.5 : -n 1 "$REPRISE" replay job.oplog --engine null
run 0 python3 - <<'END'
import json
ranks = json.load(open("slow.json"))["ranks"]
assert ranks["straggler"] == 1 and ranks["straggler_share"] > 0.6, ranks
assert ranks["rows"][1]["waited_ns"] < ranks["rows"][2]["waited_ns"] / 2, ranks
END
# The ranks' logs are one: that of a run without ranks but for its times.
equal "$(ls run*.oplog)" run.oplog
run 0 "$REPRISE" info run.oplog --json=joined.json
contains "$out" "  ranks "
run 0 python3 - <<'END'
import json
assert json.load(open("joined.json"))["summary"]["ops"] >= json.load(open("run.json"))["ops"]
END
# Recorded ranks wait for each other after each step where that is asked for; a log of one rank cannot.
run "0 1" "$REPRISE" replay run.oplog --engine null --sync step -v
contains "$out" "what-if: --sync step"
contains "$out" "steps after which all recorded ranks wait for the slowest"
run 2 "$REPRISE" replay job.oplog --engine null --sync step
contains "$err" "reprise: --sync step: the log has one rank"
run 2 "$REPRISE" replay run.oplog --engine null --sync epoch
contains "$err" "reprise: --sync is 'epoch'"
run 0 "$REPRISE" prepare job.oplog --root alone --gpus 4 -q
run "0 1" "$REPRISE" replay job.oplog --root alone --gpus 4 -o alone.oplog --json=alone.json
run 0 python3 - <<'END'
import json
run, alone = (json.load(open(name)) for name in ("run.json", "alone.json"))
for key in ("ops", "bytes", "bytes_read", "bytes_written", "errors", "mismatches", "tasks", "processes"):
    assert run[key] == alone[key], (key, run[key], alone[key])
END
[[ -z $(find root -name '.reprise-rank*') ]] || fail "files of the ranks are left in the root"
# The root was changed once, and is restored together.
run 0 on 4 "$REPRISE" prepare job.oplog --root root --reset
contains "$out" "done: "
run "0 1" on 2 "$REPRISE" replay job.oplog --root root --runs 2 --gpus 4 --pace afap
contains "$out" "4 recorded ranks on 2 started ones"

# --- MPICH
if mpich=$(command -v mpirun.mpich) && [[ -e $REPRISE_BUILD_DIR/libreprise_mpich.so ]]; then
    run "0 1" timeout 120 "$mpich" -n 3 "$REPRISE" replay job.oplog --engine null
    contains "$out" "3 ranks on 1 host:"
else
    echo "MPICH is not installed: left out"
fi

# --- a log that only rank 0 has; a root that one rank lacks; usage
run "0 1" on 1 "$REPRISE" replay job.oplog --engine null --pace afap : -n 1 sh -c "mkdir -p away; cd away; exec '$REPRISE' replay job.oplog --engine null --pace afap"
contains "$out" "2 ranks on 1 host:"
run 4 on 1 "$REPRISE" replay job.oplog --root root --read-only : -n 1 "$REPRISE" replay job.oplog --root nowhere --read-only
contains "$err" "reprise: rank 1 on host $(uname -n): cannot open the root nowhere"
mkdir unprepared
run 4 on 1 "$REPRISE" replay job.oplog --root root : -n 1 "$REPRISE" replay job.oplog --root unprepared
contains "$err" "reprise: rank 1 on host $(uname -n): the root unprepared is not prepared there, as that of rank 0 on host $(uname -n) is"
run 2 on 2 "$REPRISE" replay job.oplog
equal "$(grep -c 'replay needs --root' "$err")" 1
run 2 on 4 "$REPRISE" replay job.oplog --engine null --gpus 2
contains "$err" "4 ranks were started, but --gpus 2 has 2 to perform"

# --- srun that tells MPI nothing; a build without the plug-in
run 4 env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 "$REPRISE" replay job.oplog --engine null
contains "$err" "--mpi=pmix"
mkdir bare && cp "$REPRISE" bare/reprise
run 4 env OMPI_COMM_WORLD_SIZE=2 bare/reprise replay job.oplog --engine null
contains "$err" "this reprise has no Open MPI"

# --- clocks apart: one rank in a time namespace whose monotonic clock is a day ahead
if unshare --time --monotonic 86400 true 2>/dev/null; then
    run "0 1" on 1 "$REPRISE" replay job.oplog --engine null --json=clock.json : -n 1 unshare --time --monotonic 86400 "$REPRISE" replay job.oplog --engine null
    run 0 python3 - <<'END'
import json
ranks = json.load(open("clock.json"))["ranks"]
assert abs(ranks["rows"][1]["clock_offset_ns"] + 86400e9) < 10e9, ranks
assert ranks["rows"][1]["ops"] == ranks["rows"][0]["ops"], ranks
END
else
    echo "no time namespaces here: clocks apart are left out"
fi

# --- deaths: everybody ends, the cause is named
run 0 on 2 "$REPRISE" prepare long.oplog --root root2
# The process of a rank, of which its workers are children.
rank_pid() {
    for pid in $(left); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$1\$" || continue
        [[ $(readlink "/proc/$(ps -o ppid= -p "$pid" | tr -d ' ')/exe") == "$(readlink -f "$REPRISE")" ]] || { echo "$pid"; return; }
    done
}
# dies NAME CODE TEXT COMMAND: sends what COMMAND says once the ranks run; TEXT must be in what is printed.
dies() {
    "$mpirun" --oversubscribe -n 2 "$REPRISE" replay long.oplog --root root2 -o died.oplog -f >"$out" 2>"$err" &
    local job=$! rc=0
    # Where other tests run beside this one, their processes count, too.
    for _ in $(seq 100); do [[ $(left | wc -l) -ge 4 && -n $(rank_pid 1) ]] && break; sleep 0.1; done
    sleep 1.5
    eval "$4"
    wait "$job" || rc=$?
    [[ " $2 " == *" $rc "* ]] || fail "$1: exit code $rc, expected $2"
    cat "$out" "$err" >all.txt
    contains all.txt "$3"
    gone "$1"
    run 0 on 2 "$REPRISE" prepare long.oplog --root root2 --reset # so no lock is left
}
dies "a worker killed" 4 "interrupted: rank 1 on host $(uname -n): worker " 'kill -KILL $(pgrep -P $(rank_pid 1) | head -n 1)'
dies "a rank killed" 137 "process rank 1 with PID" 'kill -KILL $(rank_pid 1)'
dies "a host that hangs" 4 "cut off: no sign of life" 'kill -STOP $(rank_pid 1)'
dies "Ctrl-C" "1 4 130" "from the launcher: Ctrl-C" 'kill -INT $job'
contains all.txt "2 ranks on 1 host:" # also where a log was asked for, which cannot be joined now
finish
