#!/usr/bin/env bash
# The replays of a chain of forks, each process forking the next and waiting for it, and of a process that forks as many
# one after the other: prints how long they take.
#   tests/bench/fork_chain.sh [PROCESSES...]         (default: 50 200 400)
#   tests/bench/fork_chain.sh --strace PROCESSES SECONDS
#       only the log of such a chain, as strace -f -ttt -T writes it; the last process sleeps so long
# SPDX-License-Identifier: MIT
set -euo pipefail

chain() {
    awk -v n="$1" -v sleeps="$2" 'function at(us) { return sprintf("17000%05d.%06d", us / 1000000, us % 1000000) }
        function line(pid, text) { now += 20; printf "%d %s %s\n", 1000 + pid, at(now), text }
        BEGIN {
            for (i = 1; i <= n; i++) {
                if (i == 1) line(i, "openat(AT_FDCWD, \"/data/in\", O_RDONLY) = 3 <0.000010>")
                line(i, "pread64(3, \"x\", 4096, " (i % 16) * 4096 ") = 4096 <0.000010>")
                if (i < n) line(i, "clone(child_stack=NULL, flags=SIGCHLD) = " 1000 + i + 1 " <0.000010>")
            }
            if (sleeps > 0) {
                line(n, "clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=" sleeps ", tv_nsec=0}, NULL) = 0 <" sleeps ".000000>")
                now += sleeps * 1000000
            }
            for (i = n; i >= 1; i--) {
                line(i, "close(3) = 0 <0.000005>")
                line(i, "exit_group(0) = ?")
                line(i, "+++ exited with 0 +++")
                if (i > 1) line(i - 1, "wait4(" 1000 + i ", [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = " 1000 + i " <0.000010>")
            }
        }'
}

# As a shell starts programs.
row() {
    awk -v n="$1" 'function at(us) { return sprintf("17000%05d.%06d", us / 1000000, us % 1000000) }
        function line(pid, text) { now += 20; printf "%d %s %s\n", 1000 + pid, at(now), text }
        BEGIN {
            for (i = 2; i <= n; i++) {
                line(1, "clone(child_stack=NULL, flags=SIGCHLD) = " 1000 + i " <0.000010>")
                line(i, "openat(AT_FDCWD, \"/data/in\", O_RDONLY) = 3 <0.000010>")
                line(i, "pread64(3, \"x\", 4096, " (i % 16) * 4096 ") = 4096 <0.000010>")
                line(i, "close(3) = 0 <0.000005>")
                line(i, "exit_group(0) = ?")
                line(i, "+++ exited with 0 +++")
                line(1, "wait4(" 1000 + i ", [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = " 1000 + i " <0.000010>")
            }
            line(1, "exit_group(0) = ?")
            line(1, "+++ exited with 0 +++")
        }'
}

if [[ ${1-} == --strace ]]; then
    chain "$2" "$3"
    exit
fi
: "${REPRISE:=build/release/reprise}"
reprise=$(realpath "$REPRISE")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for n in "${@:-50 200 400}"; do
    for processes in $n; do
        for shape in chain row; do
            "$shape" "$processes" 0 >"$dir/log.strace"
            "$reprise" import -q -f "$dir/log.strace" -o "$dir/log.oplog"
            "$reprise" prepare -q "$dir/log.oplog" --root "$dir/root-$shape-$processes"
            begin=$(date +%s%N)
            "$reprise" replay -q "$dir/log.oplog" --root "$dir/root-$shape-$processes" --pace afap >/dev/null
            end=$(date +%s%N)
            printf '%4d processes, %-5s: %d ms\n' "$processes" "$shape" $(((end - begin) / 1000000))
        done
    done
done
