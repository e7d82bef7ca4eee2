#!/usr/bin/env bash
# Ranks started by srun, of a Slurm that this test starts for itself: one node, munge with a key of its own.
# plain builds only: the plug-ins for MPI are built without sanitizers
# SPDX-License-Identifier: MIT
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
[[ $(id -u) == 0 ]] || skip "slurmctld and slurmd need root here"
for program in srun slurmctld slurmd munged; do
    command -v "$program" >/dev/null || skip "no $program (slurm-wlm, munge)"
done
plugins=("$REPRISE_BUILD_DIR"/libreprise_*mpi*.so)
[[ -e ${plugins[0]} ]] || skip "built without MPI (libopenmpi-dev, libmpich-dev)"
cd "$tmp" || exit 1

host=$(uname -n)
mkdir -p state spool munge
chmod 755 "$tmp" munge
head -c 1024 /dev/urandom >munge/key
chmod 600 munge/key
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$tmp/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=p Nodes=$host Default=YES State=UP
END
export SLURM_CONF=$tmp/slurm.conf
end_slurm() {
    for pid in slurmd.pid slurmctld.pid munge/pid; do
        [[ -s $pid ]] || continue
        number=$(cat "$pid")
        kill "$number" 2>/dev/null
        for _ in $(seq 50); do [[ $(ps -o stat= -p "$number") =~ ^$|Z ]] && break; sleep 0.1; done
    done
    cd / && rm -rf "$tmp"
}
trap end_slurm EXIT
munged --key-file="$tmp/munge/key" --socket="$tmp/munge/socket" --pid-file="$tmp/munge/pid" --log-file="$tmp/munge/log" \
    --seed-file="$tmp/munge/seed" --force >munge.out 2>&1 || skip "munged does not start: $(tail -n 1 munge.out)"
slurmctld -f slurm.conf -L "$tmp/slurmctld.log"
slurmd -f slurm.conf -L "$tmp/slurmd.log"
for _ in $(seq 100); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo -h -o %T 2>/dev/null | grep -q idle || skip "Slurm does not come up: $(tail -n 1 slurmctld.log)"

run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-short job.oplog
export OMPI_MCA_btl_vader_single_copy_mechanism=none
types=$(srun --mpi=list 2>&1)
ran=0
for each in pmix:openmpi pmi2:mpich; do
    [[ $types == *${each%:*}* && -e $REPRISE_BUILD_DIR/libreprise_${each#*:}.so ]] || { echo "left out: ${each%:*}"; continue; }
    run "0 1" timeout 60 srun "--mpi=${each%:*}" -n 3 --overcommit "$REPRISE" replay job.oplog --engine null
    contains "$out" "3 ranks on 1 host:"
    contains "$out" "--gpus 3"
    ran=$((ran + 1))
done
[[ $ran -gt 0 ]] || fail "srun has none of pmix and pmi2: $types"
# Without either, no rank knows of the others: none may replay.
run 4 timeout 60 srun --mpi=none -n 2 --overcommit "$REPRISE" replay job.oplog --engine null
contains "$err" "--mpi=pmix"
finish
