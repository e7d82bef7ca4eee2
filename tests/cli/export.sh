#!/usr/bin/env bash
# `reprise export`: what other programs make of the files; fio replays its own.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
sample_log=$REPRISE_BUILD_DIR/programs/sample_log

"$sample_log" sample "$tmp/a.oplog"
"$sample_log" fio "$tmp/f.oplog"

run 0 "$REPRISE" export "$tmp/a.oplog" --to csv -o "$tmp/a.csv"
cmp "$tmp/a.csv" "$REPRISE_SOURCE_DIR/tests/golden/sample.csv" || fail "the CSV differs from the golden one"
contains "$err" "44 ops exported"
contains "$err" "note: the recording lost 2 events: what is missing is not exported."
run 0 "$REPRISE" export "$tmp/a.oplog" --to csv -o - --only dataset --task 2
equal "$(wc -l <"$out")" "$(grep -c -e '^begin' -e ',101,101,2,' "$out")"
lacks "$out" "libc"

run 0 "$REPRISE" export "$tmp/a.oplog" --to perfetto -o "$tmp/a.json.gz" --json
contains "$out" '"ops": 44'
if command -v python3 >/dev/null; then
    python3 - "$tmp/a.json.gz" <<'PYTHON' || fail "the timeline is not what viewers read"
import gzip, json, sys
events = json.load(gzip.open(sys.argv[1], "rt", encoding="utf-8"))["traceEvents"]
stacks, open_spans = {}, {}
for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
    stack = stacks.setdefault((e["pid"], e["tid"]), [])
    while stack and stack[-1] <= e["ts"] + 1e-6: stack.pop()
    assert not stack or e["ts"] + e["dur"] <= stack[-1] + 1e-6, e
    stack.append(e["ts"] + e["dur"])
last = {}
for e in events:
    if e["ph"] not in "BE": continue
    key = (e["pid"], e["tid"])
    assert e["ts"] >= last.get(key, -1e18)
    last[key] = e["ts"]
    open_spans[key] = open_spans.get(key, 0) + (1 if e["ph"] == "B" else -1)
    assert open_spans[key] >= 0
assert not any(open_spans.values())
assert {"X", "B", "E", "M", "C"} <= {e["ph"] for e in events}
PYTHON
else
    echo "SKIPPED: the timeline's structure, no python3"
fi

run 2 "$REPRISE" export "$tmp/a.oplog" --to mp3 -o "$tmp/x"
run 2 "$REPRISE" export "$tmp/a.oplog" --to csv
run 2 "$REPRISE" export "$tmp/a.oplog" --to csv -o "$tmp/a.oplog"
contains "$err" "would overwrite"
run 2 "$REPRISE" export "$tmp/a.oplog" --to fio -o -
run 4 "$REPRISE" export "$tmp/a.oplog" --to csv -o "$tmp/no/such/x.csv"
# A device of our own: as root a mistake would replace that of the machine.
full=/dev/full
if [[ $EUID == 0 ]]; then
    full=$tmp/full
    mknod "$full" c 1 7 2>/dev/null && : 2>/dev/null >>"$full" || full=
fi
if [[ -c $full ]]; then
    run 4 "$REPRISE" export "$tmp/a.oplog" --to csv -o "$full"
    [[ -c $full ]] || fail "a device was replaced by a file"
fi
mkfifo "$tmp/pipe"
timeout 20 cat "$tmp/pipe" >"$tmp/piped" &
run 0 timeout 20 "$REPRISE" export "$tmp/a.oplog" --to csv -o "$tmp/pipe"
wait
cmp "$tmp/a.csv" "$tmp/piped" || fail "a pipe got something else"
[[ -z $(find "$tmp" -name '*.partial') ]] || fail "unfinished files are left"

# Only what prepare lays out, unless asked for: fio stops at the first file that is not there.
run 0 "$REPRISE" export "$tmp/a.oplog" --to fio -o "$tmp/default/"
contains "$err" " excluded: program and system files, which prepare leaves out too (--only all keeps them)"
contains "$tmp/default/replay.fio" "prepare LOG --root ROOT"
cat "$tmp"/default/*.iolog >"$tmp/default.iolog"
lacks "$tmp/default.iolog" libc
run 0 "$REPRISE" export "$tmp/a.oplog" --to fio --only all -o "$tmp/whole/"
lacks "$err" "excluded"
cat "$tmp"/whole/*.iolog >"$tmp/whole.iolog"
contains "$tmp/whole.iolog" libc

run 0 "$REPRISE" export "$tmp/f.oplog" --to fio -o "$tmp/fio/"
contains "$err" "no_fio_action.fstat"
contains "$err" "ops exported to $tmp/fio/replay.fio and 2 iologs"
# Beside each other: what they are called is said, and a file that is there and would not be written is refused.
run 0 "$REPRISE" export "$tmp/f.oplog" --to fio -o "$tmp/beside"
contains "$err" "ops exported to $tmp/beside.fio and 2 iologs"
[[ -f $tmp/beside.1 && -f $tmp/beside.2 && ! -e $tmp/beside ]] || fail "not where it is said"
run 2 "$REPRISE" export "$tmp/f.oplog" --to fio -o "$tmp/beside"
run 0 "$REPRISE" export "$tmp/f.oplog" --to fio -f -q -o "$tmp/beside"
lacks "$err" "exported"
mkdir "$tmp/odd"
echo mine >"$tmp/odd/file"
mkfifo "$tmp/odd/pipe"
for name in /dev/null "$tmp/odd/file" "$tmp/odd/pipe"; do
    for force in "" -f; do
        run 2 "$REPRISE" export "$tmp/f.oplog" --to fio $force -o "$name"
        contains "$err" "fio needs several: -o NAME writes the job file NAME.fio and iologs NAME.1, NAME.2"
    done
done
contains "$err" "$tmp/odd/pipe is a device, pipe or socket"
equal "$(ls "$tmp/odd")" "$(printf 'file\npipe')"
[[ ! -e /dev/null.fio && ! -e /dev/null.1 && $(cat "$tmp/odd/file") == mine ]] || fail "something was written"
# One task's iolog has the name itself, so that -f may replace that one.
run 0 "$REPRISE" export "$tmp/f.oplog" --task 1 --to fio -o "$tmp/one"
contains "$err" "ops exported to $tmp/one.fio and 1 iolog"
run 2 "$REPRISE" export "$tmp/f.oplog" --task 1 --to fio -o "$tmp/one"
contains "$err" "exists"
run 0 "$REPRISE" export "$tmp/f.oplog" --task 1 --to fio -f -o "$tmp/one"
run 2 "$REPRISE" export "$tmp/f.oplog" --task 1 --to fio -f -o /dev/null
[[ ! -e /dev/null.fio ]] || fail "a job file is beside the device"
run 0 "$REPRISE" export "$tmp/f.oplog" --to csv -o "$tmp/f.csv"
contains "$err" "ops exported to $tmp/f.csv"
run 0 "$REPRISE" export "$tmp/f.oplog" --to csv -o -
lacks "$err" " to "
if command -v fio >/dev/null; then
    mkdir -p "$tmp/root/data"
    truncate -s 64K "$tmp/root/data/one" "$tmp/root/data/two"
    run 0 env -C "$tmp/root" IOLOGS="$tmp/fio" fio --output-format=json --output="$tmp/fio.json" "$tmp/fio/replay.fio"
    python3 - "$tmp/fio.json" <<'PYTHON' || fail "fio did not replay what was recorded"
import json, sys
text = open(sys.argv[1]).read()
jobs = {j["jobname"]: j for j in json.loads(text[text.index("{"):])["jobs"]}
one, two = jobs["task-1"], jobs["task-2"]
assert (one["read"]["total_ios"], one["read"]["io_bytes"]) == (4, 16384), one["read"]
assert (one["write"]["total_ios"], one["write"]["io_bytes"]) == (2, 8192), one["write"]
assert (two["read"]["total_ios"], two["read"]["io_bytes"]) == (2, 24576), two["read"]
assert one["error"] == 0 and two["error"] == 0
PYTHON
else
    echo "SKIPPED: the replay by fio, fio is not installed"
fi

# commands FOLDER LOG ROOT: those of its job file
commands() {
    sed -n 's/^;   //p' "$1/replay.fio" |
        sed "s|<folder of this file>|$1|; s|prepare LOG|prepare -q $2|; s|^reprise|\"\$REPRISE\"|; s|ROOT|$3|"
}
# The commands of the job file, with the directories that the job made.
cat >"$tmp/made.strace" <<'END'
100 1700000000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700000000.001000 mkdir("/out", 0777) = 0 <0.000100>
100 1700000000.002000 mkdir("/out/it's", 0777) = 0 <0.000100>
100 1700000000.003000 openat(AT_FDCWD, "/out/it's/model", O_WRONLY|O_CREAT, 0644) = 3 <0.000100>
100 1700000000.004000 write(3, ""..., 4096) = 4096 <0.000100>
100 1700000000.005000 close(3) = 0 <0.000100>
100 1700000000.006000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q "$tmp/made.strace" -o "$tmp/made.oplog"
run 0 "$REPRISE" export "$tmp/made.oplog" --to fio -o "$tmp/made/"
commands "$tmp/made" made.oplog ROOT >"$tmp/made.sh"
contains "$tmp/made.sh" "mkdir -p -- "
if command -v fio >/dev/null; then
    run 0 env -C "$tmp" bash -e made.sh
    equal "$(stat -c %s "$tmp/ROOT/out/it's/model")" 4096
fi

# fio renames nothing: what is renamed, or lies in what is, keeps the name that it had first.
cat >"$tmp/renamed.strace" <<'END'
100 1700000000.000000 execve("/usr/bin/job", ["job"], 0x7ffe /* 1 var */) = 0 <0.000100>
100 1700000000.001000 mkdir("/out", 0777) = 0 <0.000100>
100 1700000000.002000 openat(AT_FDCWD, "/out/f", O_RDWR|O_CREAT, 0644) = 3 <0.000100>
100 1700000000.003000 write(3, ""..., 4096) = 4096 <0.000100>
100 1700000000.004000 rename("/out", "/was") = 0 <0.000100>
100 1700000000.005000 pread64(3, ""..., 1024, 0) = 1024 <0.000100>
100 1700000000.006000 rename("/was/f", "/was/g") = 0 <0.000100>
100 1700000000.007000 rename("/old", "/new") = 0 <0.000100>
100 1700000000.008000 fork() = 101 <0.000100>
101 1700000000.009000 openat(AT_FDCWD, "/was/g", O_RDONLY) = 4 <0.000100>
101 1700000000.010000 read(4, ""..., 4096) = 4096 <0.000100>
101 1700000000.011000 openat(AT_FDCWD, "/new/data", O_RDONLY) = 5 <0.000100>
101 1700000000.012000 read(5, ""..., 2048) = 2048 <0.000100>
101 1700000000.013000 +++ exited with 0 +++
100 1700000000.014000 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q "$tmp/renamed.strace" -o "$tmp/renamed.oplog"
run 0 "$REPRISE" export "$tmp/renamed.oplog" --to fio -o "$tmp/renamed/"
contains "$tmp/renamed/replay.fio" "; fio renames nothing: files keep the names that they had first."
cat "$tmp"/renamed/*.iolog >"$tmp/renamed.iolog"
equal "$(grep -c ' out/f read 0 ' "$tmp/renamed.iolog") $(grep -c ' old/data read 0 2048' "$tmp/renamed.iolog")" "2 1"
lacks "$tmp/renamed.iolog" "was"
lacks "$tmp/renamed.iolog" "new"
if command -v fio >/dev/null; then
    commands "$tmp/renamed" renamed.oplog RENAMED >"$tmp/renamed.sh"
    run 0 env -C "$tmp" bash -e renamed.sh
    equal "$(stat -c %s "$tmp/RENAMED/out/f")" 4096
else
    echo "SKIPPED: the replay by fio of what is renamed, fio is not installed"
fi
finish
