#!/usr/bin/env bash
# Four hosts: network namespaces (examples/cluster.sh). One report of eight ranks, and nothing left of the cluster.
# plain builds only: the plug-ins for MPI are built without sanitizers
# SPDX-License-Identifier: MIT
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
[[ -e $REPRISE_BUILD_DIR/libreprise_openmpi.so ]] || skip "built without Open MPI (libopenmpi-dev)"
[[ $(id -u) == 0 ]] || skip "network namespaces need root"
for program in mpirun ip unshare; do command -v "$program" >/dev/null || skip "no $program (openmpi-bin, iproute2)"; done
ip netns add "reprise$$" 2>/dev/null || skip "no network namespaces here"
ip netns del "reprise$$"
mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "mpirun is not Open MPI's"
cd "$tmp" || exit 1

run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-short job.oplog
run "0 1" env REPRISE="$REPRISE" timeout 200 "$REPRISE_SOURCE_DIR/examples/cluster.sh" job.oplog
contains "$out" "8 ranks on 4 hosts:"
for host in 1 2 3 4; do equal "$(grep -c " node$host " "$out")" 2; done
contains "$out" "started within "

# A host that is cut off: its link goes down once the ranks run. The others print what they have, and why.
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-long long.oplog
env REPRISE="$REPRISE" RANKS=4 timeout 200 "$REPRISE_SOURCE_DIR/examples/cluster.sh" long.oplog >"$out" 2>"$err" &
cluster=$!
workers() { for one in /proc/[0-9]*; do [[ $(readlink "$one/exe") == "$(readlink -f "$REPRISE")" ]] && tr '\0' ' ' <"$one/cmdline" | grep -q 'replay long.oplog .*reprise-cluster-' && echo "${one#/proc/}"; done; }
for _ in $(seq 300); do [[ $(workers | wc -l) -ge 8 ]] && break; sleep 0.2; done
sleep 2
switch=$(ip netns list | grep -o 'rc[0-9]*-s' | head -n 1)
ip -n "$switch" link set port3 down
wait "$cluster" && fail "a cluster that lost a host ends with 0"
contains "$out" "on host node3: cut off: no sign of life"
contains "$out" "4 ranks on 4 hosts:"
for _ in $(seq 100); do [[ -z $(workers) ]] && break; sleep 0.1; done
[[ -z $(workers) ]] || fail "ranks are left: $(workers)"
lacks <(ip netns list) "rc$cluster-"
finish
