#!/usr/bin/env bash
# usage: scripts/ensure-packages.sh [PURPOSE...]     (default: build)
# Sees to it that the Debian 12 packages for a purpose are there. Fast where
# they are; root installs what is missing; anyone else is told what an
# administrator has to install. Exit code 4 where something stays missing.
# SPDX-License-Identifier: MIT
set -euo pipefail

declare -A packages=(
    [build]='g++ cmake ninja-build pkg-config libboost1.81-dev libboost-program-options1.81-dev
             libzstd-dev liblz4-dev libxxhash-dev libisal-dev libsimdjson-dev nlohmann-json3-dev libyaml-cpp-dev
             libsqlite3-dev libcairo2-dev libfuse3-dev liburing-dev libjs-chart.js libbpf-dev clang'
    [test]='doctest-dev zlib1g-dev clang-14 clang-format clang-tidy clang lld libclang-rt-14-dev dpkg-dev file
            gzip zstd lz4 btrfs-progs shellcheck man-db ccache strace python3 python3-yaml zsh fish'
    [bench]='libbenchmark-dev liburing-dev fio python3'
    [train]='python3 python3-torch python3-pil python3-numpy'
    [accuracy]='python3 python3-venv python3-torch python3-numpy python3-pil gcc g++ libc6-dev pkg-config libfuse3-dev fuse3 xfsprogs btrfs-progs e2fsprogs util-linux mount
                sqlite3 rsync tar zstd liburing-dev fio qemu-utils mariadb-server-core mariadb-client-core
                libaio-dev libtorch-dev pybind11-dev'
    [peers]='strace linux-perf bpftrace'
    [docs]='man-db groff-base'
    [timeline]='chromium fonts-liberation python3'
    [mpi]='libopenmpi-dev openmpi-bin libmpich-dev mpich slurm-wlm munge iproute2'
    [live]='prometheus python3-jsonschema python3'
)

wanted=()
for purpose in "${@:-build}"; do
    if [[ -z ${packages[$purpose]:-} ]]; then
        echo "ensure-packages: unknown purpose '$purpose', expected: ${!packages[*]}" >&2
        exit 2
    fi
    # shellcheck disable=SC2206  # words are wanted
    wanted+=(${packages[$purpose]})
done

if ! command -v dpkg-query >/dev/null; then
    echo "ensure-packages: this is not Debian; see to it yourself that the equivalents of these are there:" >&2
    echo "  ${wanted[*]}" >&2
    exit 0
fi

find_missing() {
    local installed package
    # shellcheck disable=SC2016  # dpkg-query's own variables
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
    missing=()
    for package in "${wanted[@]}"; do
        grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
    done
}

give_up() {
    echo "reprise needs these Debian packages, which are not installed:" >&2
    echo "  ${missing[*]}" >&2
    echo "$1" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 4
}

find_missing
[[ ${#missing[@]} == 0 ]] && exit 0
[[ $(id -u) == 0 ]] || give_up "Ask an administrator to run, as root:"

echo "installing: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
# The package lists may be absent or old; fetch them only where that matters.
if ! install; then
    apt-get update -qq >>"$log" 2>&1 || true
    if ! install; then
        tail -n 20 "$log" >&2
        find_missing
        give_up "apt-get could not install them (its last words are above). Once it can, run:"
    fi
fi
find_missing
[[ ${#missing[@]} == 0 ]] || give_up "apt-get said it installed them, but they are not there. Run:"
