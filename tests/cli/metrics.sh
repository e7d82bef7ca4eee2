#!/usr/bin/env bash
# replay --metrics and capture --metrics as people and their clients use them: addresses, pages, several clients, silent
# ones, Ctrl-C.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || skip "no python3"
cd "$tmp" || exit 1
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live job.oplog
run 0 "$REPRISE" prepare -q job.oplog --root root

# The table of docs/metrics.md is what the program prints.
run 0 "$REPRISE" ops --metrics --markdown
sed -n '/^<!-- metrics: begin/,/^<!-- metrics: end/p' "$REPRISE_SOURCE_DIR/docs/metrics.md" | sed '1d;$d' >table.md
cmp -s "$out" table.md || fail "docs/metrics.md is not current: put the output of reprise ops --metrics --markdown between its markers"
run 0 "$REPRISE" ops --metrics
equal "$(($(wc -l <"$out") - 1))" "$(grep -c '^METRIC(' "$REPRISE_SOURCE_DIR/metrics/metrics.def")"

# What is no address is refused before anything begins.
for bad in 9400 :x :70000 nowhere:1 ::1:9400 ""; do
    run 2 "$REPRISE" replay job.oplog --root root --metrics "$bad"
    contains "$err" "--metrics is '$bad', expected [ADDR]:PORT"
done
run 2 "$REPRISE" replay job.oplog --root root --metrics 9400
contains "$err" "give --metrics :9400"
run 4 "$REPRISE" replay job.oplog --root root --metrics 192.0.2.1:0
contains "$err" "cannot serve metrics on 192.0.2.1:0"

# start COMMAND...: in the background as $job, its output in o and e, its address in $url.
start() {
    : >e # the one before it has its address in there
    "$@" >o 2>e &
    job=$!
    url=
    for _ in $(seq 600); do
        url=$(sed -n 's/^metrics: //p' e)
        [[ -n $url ]] && return
        sleep 0.05
    done
    fail "no address: $(cat e)"
}
ended() { # CODES: a crowded machine does not keep the time (1)
    local rc=0
    wait "$job" || rc=$?
    [[ " $1 " == *" $rc "* ]] || fail "exit code $rc, expected one of $1: $(cat e)"
}
client() { python3 "$(dirname "$REPRISE_SOURCE_DIR/tests/cli/metrics.sh")/live/client.py" "$@"; }

start "$REPRISE" replay job.oplog --root root --metrics :0
[[ $url == http://127.0.0.1:*/metrics ]] || fail "not of this machine alone: $url"
port=${url%/metrics} port=${port##*:}
run 0 client pages "$url"
# The port is taken, which is said before anything begins.
run 4 "$REPRISE" replay job.oplog --root root --metrics ":$port"
contains "$err" "cannot serve metrics on 127.0.0.1:$port: Address already in use"
contains "$err" "choose another port, or :0 for a free one"
empty "$out"
run 0 client many "$url"
run 0 client watch "$url" reprise_replay_ops_total
ended "0 1"
contains o "job         SAME"
run 1 client get "$url" # the server is gone with the run

# Several runs are served by one server; counters go on, and the number of the run does.
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-short short.oplog
run 0 "$REPRISE" prepare -q short.oplog --root short
start "$REPRISE" replay short.oplog --root short --runs 3 --metrics :0
run 0 client until "$url" 'reprise_replay_run 3'
ops=$(awk '/^reprise_replay_ops_total/ { sum += $2 } END { print sum }' "$out")
[[ $ops -ge 818 ]] || fail "$ops ops after two runs of 409"
ended "0 1"

# Ctrl-C with a client that is connected and silent: the end is as without. Ended by this test, however slow it is.
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live-long long.oplog
run 0 "$REPRISE" prepare -q long.oplog --root long
start "$REPRISE" replay long.oplog --root long --metrics :0 --json=run.json
client hold "$url" >held 2>&1 &
holder=$!
run 0 client until "$url" 'phase="running"} 1'
for _ in $(seq 2000); do grep -q connected held && break; sleep 0.05; done
kill -INT "$job"
ended 4
contains run.json '"ended": "interrupted: signal 2 (Interrupt)"'
wait "$holder" || fail "the client did not see the end: $(cat held)"
ps -eo args | grep -F "$tmp/long" | grep -v grep && fail "a process is left"

# On all addresses only when said so; -q says where only if nobody could know.
start "$REPRISE" replay -q job.oplog --root root --pace afap --metrics 0.0.0.0:0
[[ $url == http://0.0.0.0:*/metrics ]] || fail "the address: $url"
ended "0 1"
run 0 "$REPRISE" replay -q job.oplog --engine null --pace afap --metrics ":$port"
empty "$err"

# A log's name that is not a name; and no more of its path than that.
mkdir -p 'secret folder'
name=$'a"b\\c\nd.oplog'
cp long.oplog "secret folder/$name"
start "$REPRISE" replay "secret folder/$name" --root long --metrics :0
run 0 client get "$url"
contains "$out" 'log="a\"b\\c\nd.oplog"'
lacks "$out" secret
lacks "$out" /data
run 0 client until "$url" 'phase="running"} 1' # a shell's background job ignores SIGINT until the replay wants it
kill -INT "$job"
ended 4

can_record || { echo "NOT TESTED: this machine cannot record"; finish; }
start "$REPRISE" capture -o rec.oplog --metrics :0 -- sh -c 'echo $$ >pid; while [ ! -e stop ]; do cat pid >copy; sleep 0.02; done'
run 0 client watch "$url" reprise_capture_records_total
run 0 client until "$url" 'reprise_capture_live_tasks [1-9]'
contains "$out" 'reprise_capture_recording 1'
contains "$out" 'reprise_capture_lost_events_total 0'
# The job has none of the server's sockets.
ls -l "/proc/$(cat pid)/fd" >fds
lacks fds socket
taken=${url%/metrics}
run 4 "$REPRISE" capture -o other.oplog --metrics ":${taken##*:}" -- touch ran
[[ ! -e ran ]] || fail "the job ran although its metrics could not be served"
: >stop
ended 0
# Recordings in processes of their own are counted on.
rm stop
start "$REPRISE" capture -o runs.oplog --runs 3 --metrics :0 -- \
    sh -c 'echo x >>times; cat times >copy; [ "$(wc -l <times)" -lt 3 ] || while [ ! -e stop ]; do sleep 0.05; done'
run 0 client until "$url" 'reprise_capture_run 3'
contains "$out" 'reprise_capture_info{log="runs.oplog"} 1'
: >stop
ended 0
finish
