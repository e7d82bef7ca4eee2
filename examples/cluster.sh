#!/usr/bin/env bash
# usage: examples/cluster.sh [LOG [OPTION...]]
# Replays a recording by eight ranks on four hosts and prints the report. The hosts are network namespaces of this machine
# with names and addresses of their own; mpirun reaches them by a launch agent, as it reaches real ones by ssh. LOG: by
# default a recorded PyTorch training. OPTIONS go to `reprise replay`. Needs root, Open MPI and iproute2.
#
#   RANKS=16 HOSTS=8 examples/cluster.sh job.oplog --pace afap
# SPDX-License-Identifier: MIT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
reprise=${REPRISE:-$here/build/release/reprise}
hosts=${HOSTS:-4} ranks=${RANKS:-8}
log=${1:-$here/examples/recorded/resnet.oplog}
[[ $# -gt 0 ]] && shift

[[ $(id -u) == 0 ]] || { echo "cluster.sh: needs root, for network namespaces" >&2; exit 4; }
for program in mpirun ip unshare; do
    command -v "$program" >/dev/null || { echo "cluster.sh: no $program; install openmpi-bin and iproute2" >&2; exit 4; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-cluster-XXXXXX")
name=rc$$ # of the namespaces and links: at most 15 characters with what follows
clean() {
    for ((i = 1; i <= hosts; ++i)); do
        ip netns pids "$name-$i" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$name-$i" 2>/dev/null || true
    done
    ip netns del "$name-s" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT

# A switch, and hosts on it: node1 is 10.77.0.1.
ip netns add "$name-s"
ip -n "$name-s" link add switch type bridge
ip -n "$name-s" link set switch up
for ((i = 1; i <= hosts; ++i)); do
    ip netns add "$name-$i"
    ip -n "$name-$i" link add eth0 type veth peer name "port$i" netns "$name-s"
    ip -n "$name-s" link set "port$i" master switch up
    ip -n "$name-$i" address add "10.77.0.$i/24" dev eth0
    ip -n "$name-$i" link set eth0 up
    ip -n "$name-$i" link set lo up
done

# What mpirun calls in place of ssh: the host, then the command for its shell.
cat >"$work/agent" <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec $name-\${host##*.} unshare --uts sh -c "hostname node\${host##*.}; \$*"
END
chmod +x "$work/agent"

list=
for ((i = 1; i <= hosts; ++i)); do list+=${list:+,}10.77.0.$i:$(((ranks + hosts - i) / hosts)); done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# mpirun notices within seconds, too, that a host is cut off, after the ranks have; it leaves them time for their result.
settings=(--mca plm_rsh_agent "$work/agent" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0
    --mca oob_tcp_keepalive_time 3 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 2
    --mca odls_base_sigkill_timeout 2
    --mca btl "self,vader,tcp" --mca btl_vader_single_copy_mechanism none --mca hwloc_base_binding_policy none)
on_hosts() {
    ip netns exec "$name-1" unshare --uts sh -c 'hostname node1; exec "$@"' sh \
        mpirun -n "$ranks" --host "$list" --oversubscribe "${settings[@]}" "$@"
}

on_hosts "$reprise" prepare "$log" --root "$work/root"
code=0
# The "hosts" share the processors of this machine, so recorded computing is slept.
on_hosts "$reprise" replay "$log" --root "$work/root" --delay sleep "$@" || code=$?
exit "$code"
