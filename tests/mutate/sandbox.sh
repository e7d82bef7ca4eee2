#!/usr/bin/env bash
# usage: sandbox.sh SCRATCH [--keep-pids] COMMAND...
# Runs COMMAND where only SCRATCH (as /tmp) and a /dev/shm of its own can be written: a faulty build may remove, write
# or kill anything. Without --keep-pids it also sees no process but its own, and all of them end with it.
# SPDX-License-Identifier: MIT
set -euo pipefail
scratch=$1
shift
flags=(--mount --pid --fork --kill-child --mount-proc)
if [[ $1 == --keep-pids ]]; then
    flags=(--mount)
    shift
fi
[[ $EUID == 0 ]] || flags+=(--user --map-root-user)
# shellcheck disable=SC2016  # expanded inside
exec unshare "${flags[@]}" bash -c '
    mount --make-rprivate / && mount --bind "$1" /tmp || exit 125
    while read -r _ at type _; do
        case $type in proc | sysfs | devpts | devtmpfs | cgroup* | tracefs | debugfs | bpf | mqueue) continue ;; esac
        case $at in /tmp | /tmp/* | /dev/*) continue ;; esac
        mount -o remount,ro,bind "$at" 2>/dev/null || [[ $at != / ]] || exit 125
    done </proc/self/mounts
    mount -t tmpfs tmpfs /dev/shm || exit 125
    shift
    cd /tmp
    exec "$@"' sandbox "$scratch" "$@"
